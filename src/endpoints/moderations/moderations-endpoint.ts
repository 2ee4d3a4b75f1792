import * as z from 'zod'
import { isJsonObject } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import { DETERMINISTIC_ANSWERS } from '../answer-json.ts'
import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { unsupportedField } from '../field-errors.ts'
import { isInline, type MediaInput } from '../media-input.ts'
import { type PassThroughOperation, passThroughIfOffered } from '../operation.ts'
import { checkRequest, jsonSchemaOf, listOf } from '../schema.ts'
import { kindsByName, promptTexts } from '../texts.ts'
import { addWebUrls } from '../web-urls.ts'

/** `POST /v1/moderations` (OpenAI API, "Create moderation"). */
export const moderationsEndpoint = defineEndpoint<ModerationRequest, ModerationsOffer>({
  id: 'moderations',
  path: '/v1/moderations',
  kind: 'moderation',
  servesUnlisted: ({ moderations }) => moderations !== undefined,
  errors: openaiErrors,
  isFree: 'unless-priced',
  defaultModel: 'omni-moderation-latest',
  parse: (body) => checkRequest<ModerationRequest>(moderationSchema(), body),
  requestSchema: () => jsonSchemaOf(moderationSchema(), 'input'),
  isStream: () => false,
  callerUrls: (request) => {
    const urls: CallerUrl[] = []
    for (const [index, part] of (partsOf(request) ?? []).entries()) addWebUrls(part, `input[${index}]`, urls)
    return urls.length === 0 ? undefined : urls
  },
  media: picturesOf,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  texts: promptTexts({ kinds: { input: 'text' }, kindOf: kindsByName({ text: ['text'] }), last: ['input'] }),
  createOperation: ({ moderations }, call) => passThroughIfOffered(moderations, call),
  cached: DETERMINISTIC_ANSWERS,
})

function picturesOf(request: ModerationRequest): readonly MediaInput[] {
  return (partsOf(request) ?? []).flatMap((part): MediaInput[] => {
    if (part.type !== 'image_url') return []
    const { url } = part.image_url
    return [{ kind: 'image', ...(isInline(url) ? { data: url } : {}) }]
  })
}

/**
 * Part of a vendor that handles moderations: servers of OpenAI's dialect. Answers keep the vendor's own categories, because no two
 * vendors mean the same by them.
 */
export interface ModerationsOffer {
  readonly moderations?: PassThroughOperation<ModerationRequest>
}

/** A text, or an image as an address or a `data:` URL. */
export type ModerationPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

/** A request for moderation (OpenAI API, "Create moderation"). */
export interface ModerationRequest {
  /** Model id. Defaults to `omni-moderation-latest`. */
  model: string
  /** One text, several texts with a result each, or parts that are judged together. */
  input: string | string[] | ModerationPart[]
  [field: string]: unknown
}

/** Maximum texts or parts per request. Callers split longer lists themselves. */
export const MAX_MODERATION_INPUTS = 2_048

const part = onDemand(() =>
  z.union([
    z.looseObject({ type: z.literal('text'), text: z.string() }),
    z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: z.string().min(1) }) }),
  ]),
)

/** Rules of the request. Unknown fields are passed on. */
const moderationSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1).optional(),
    input: z.union([
      z.string(),
      listOf(z.string(), MAX_MODERATION_INPUTS).min(1),
      listOf(part(), MAX_MODERATION_INPUTS).min(1),
    ]),
  }),
)

/** Returns the parts of an input, or `undefined` if the input is text. */
export function partsOf({ input }: Pick<ModerationRequest, 'input'>): readonly ModerationPart[] | undefined {
  return Array.isArray(input) && typeof input[0] === 'object' ? (input as ModerationPart[]) : undefined
}

/** A field of chat and Responses: the vendor moderates input and output itself (OpenAI API, `moderation`). */
export const INLINE_MODERATION = 'moderation'

/**
 * Called before the field is dropped for a vendor that does not moderate. Missing scores are reported like any dropped field, but a
 * caller that requested blocking must not get an answer without it. An unknown mode may block too.
 * @throws GatewayError `unsupported_parameter` naming the mode.
 */
export function refuseLostBlocking(moderation: unknown): void {
  const policy = isJsonObject(moderation) ? moderation['policy'] : undefined
  if (!isJsonObject(policy)) return
  for (const side of ['input', 'output']) {
    const rule = policy[side]
    const mode = isJsonObject(rule) ? rule['mode'] : undefined
    if (mode === undefined || mode === null || mode === 'score') continue
    throw unsupportedField(`${INLINE_MODERATION}.policy.${side}.mode`, 'the vendor of this model does not block')
  }
}
