import { isJsonObject } from '../core/json.ts'
import { checkGivenMembers, memberNames } from '../core/known-members.ts'
import type { ModelKind } from '../core/model-kind.ts'
import type { TextPart } from '../endpoints/texts.ts'
import type { AskingCall, GatewayHook, HookHost } from './call-hook.ts'
import type { AnyHook, Denial, EndpointId } from './hook.ts'

/** Settings of a moderation guard. */
export interface ModerationGuardOptions {
  /** Public id of a moderation model. */
  readonly model: string
  /** Minimum score per category at which a text is denied, 0 to 1. The categories are those of the model's vendor. */
  readonly block: Readonly<Record<string, number>>
  /** Checked messages. Default: requests and answers. */
  readonly on?: readonly ('request' | 'answer')[]
  /** Ids of the endpoints that it covers. Default: all with texts except `moderations`, whose callers want the scores. */
  readonly endpoints?: readonly EndpointId[]
  /** Time limit for moderating one request or answer, in milliseconds. Default 2,000. */
  readonly timeoutMs?: number
  /** Effect of a failed moderation. Default `deny`: 503 `hook_failed`. */
  readonly onFailure?: 'deny' | 'allow'
  /** Whether answers that the guard denies are charged. Default true. */
  readonly chargeDenied?: boolean
  /** Message for denied callers. Default: that a rule of the service denied it. */
  readonly message?: string
  /** Name of the hook in events. Default `moderation-guard`. */
  readonly name?: string
}

const MODERATION_GUARD_OPTIONS = memberNames<ModerationGuardOptions>()(
  'model block on endpoints timeoutMs onFailure chargeDenied message name',
)

const OWNER = 'moderationGuard'
const KIND: ModelKind = 'moderation'
const POINTS = ['request', 'answer'] as const

/** Maximum number of texts per call. The calls run one after the other until a text is denied. */
const TEXTS_PER_CALL = 32

/**
 * Creates a hook that checks texts with a moderation model of the gateway, and denies texts with high scores: requests before a hold
 * is created, answers before their callers receive a byte, streams held back to their end. Without moderation, no text passes.
 * @throws TypeError with the option; from `createGateway`, for a model that does not moderate.
 * @example
 * createGateway({ vendors, hooks: [moderationGuard({ model: 'omni-moderation-latest', block: { 'sexual/minors': 0.2 } })] })
 */
export function moderationGuard(options: ModerationGuardOptions): GatewayHook {
  checkGuard(options)
  const { name = 'moderation-guard' } = options
  return { name, forGateway: (host) => guardOf({ ...options, name }, host) }
}

function checkGuard(options: ModerationGuardOptions): void {
  checkGivenMembers(options, MODERATION_GUARD_OPTIONS, OWNER)
  const { model, block, on = POINTS, message } = options
  if (typeof model !== 'string' || model === '') throw new TypeError(`${OWNER}: model must be the id of a model`)
  if (!isJsonObject(block) || Object.keys(block).length === 0)
    throw new TypeError(`${OWNER}: block must name at least one category`)
  for (const [category, score] of Object.entries(block))
    if (!(typeof score === 'number' && score >= 0 && score <= 1))
      throw new TypeError(`${OWNER}: block[${JSON.stringify(category)}] must be a number from 0 to 1`)
  if (!Array.isArray(on) || on.length === 0 || !on.every((point) => POINTS.includes(point)))
    throw new TypeError(`${OWNER}: on must be a list of ${POINTS.join(', ')}`)
  if (message !== undefined && typeof message !== 'string') throw new TypeError(`${OWNER}: message must be a string`)
}

function guardOf(options: ModerationGuardOptions & { readonly name: string }, host: HookHost): AnyHook {
  const { model, block, on = POINTS, endpoints, message, ...common } = options
  const kinds = host.kindsOf(model)
  if (kinds?.includes(KIND) !== true)
    throw new TypeError(
      `${OWNER}: ${kinds === undefined ? 'there is no model' : 'no moderation is offered by the model'} ${JSON.stringify(model)}`,
    )
  const asked = host.endpoints.find(({ kind }) => kind === KIND)
  if (asked === undefined) throw new TypeError(`${OWNER}: the gateway has no endpoint for moderation`)
  const limits = Object.entries(block)
  const deny: Denial = message === undefined ? {} : { message }
  const judged = async (
    call: AskingCall & { texts(): readonly TextPart[] },
  ): Promise<{ readonly deny: Denial } | undefined> => {
    const texts = [...new Set(call.texts().map(({ text }) => text))].filter((text) => text.trim() !== '')
    for (let start = 0; start < texts.length; start += TEXTS_PER_CALL) {
      const input = texts.slice(start, start + TEXTS_PER_CALL)
      const answer = await host.ask(asked.path, { model, input }, call)
      if (resultsOf(answer, input.length).some((scores) => isBlocked(scores, limits))) return { deny }
    }
    return undefined
  }
  return {
    ...common,
    endpoints: endpoints ?? covered(host, on).filter((id) => id !== asked.id),
    ...(on.includes('request') ? { request: judged } : {}),
    ...(on.includes('answer') ? { answer: judged } : {}),
  }
}

/** Returns all endpoints that have texts at the points. */
function covered({ endpoints }: HookHost, on: readonly ('request' | 'answer')[]): EndpointId[] {
  const ids = endpoints
    .filter((endpoint) => (on.includes('request') ? endpoint.hasRequestTexts : endpoint.hasAnswerTexts))
    .map(({ id }) => id)
  return [...new Set(ids)] as EndpointId[]
}

type Scores = Readonly<Record<string, unknown>>

/** @throws TypeError for an answer without scores for every text. */
function resultsOf(answer: unknown, count: number): readonly Scores[] {
  const results: unknown = isJsonObject(answer) ? answer['results'] : undefined
  if (!Array.isArray(results) || results.length !== count) throw new TypeError('not every text was moderated')
  return results.map((result) => {
    const scores = isJsonObject(result) ? result['category_scores'] : undefined
    if (!isJsonObject(scores)) throw new TypeError('the model returned no scores')
    return scores
  })
}

/** @throws TypeError for a category that the model does not know, because unchecked texts must not pass. */
function isBlocked(scores: Scores, limits: readonly (readonly [category: string, score: number])[]): boolean {
  return limits.some(([category, limit]) => {
    const score = scores[category]
    if (typeof score !== 'number') throw new TypeError(`the model returned no score for ${JSON.stringify(category)}`)
    return score >= limit
  })
}
