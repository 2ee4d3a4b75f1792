import { GatewayError } from '../core/errors.ts'
import { readExactCallerJson } from '../core/exact-json.ts'
import { isPending } from '../core/maybe-promise.ts'
import { type TextPart, withTexts } from '../endpoints/texts.ts'
import { callHook, HookDeadline } from '../hooks/call-hook.ts'
import type { HookCall, RequestResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import type { Admitted, ParsedRequest } from './call-record.ts'
import { CallHookFacts, checkedResult, checkedTexts, denied, frozen, hookFailed } from './hook-facts.ts'
import { checkedAnswer, type HookSaid } from './own-answers.ts'
import { reparse } from './parse.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Request as its caller wrote it, without the content of references. */
export type WrittenRequest = Pick<ParsedRequest, 'body' | 'bytes'>

/** Result of the request hooks. */
export interface HookedOutcome {
  readonly changed: ParsedRequest | undefined
  readonly answered: { readonly hook: CompiledHook; readonly said: HookSaid } | undefined
}

/**
 * Runs the request hooks in order before a hold is created. Each one reads the result of the one before it.
 * @returns The replaced request and the answer of a hook; `undefined` for a missing part.
 * @throws GatewayError `request_denied`, `hook_failed`, or `client_closed_request` if the caller has disconnected.
 */
export async function runRequestHooks(
  context: PipelineContext,
  admitted: Admitted,
  written: WrittenRequest,
  hooks: readonly CompiledHook[],
): Promise<HookedOutcome> {
  const { caller } = admitted
  let changed: ParsedRequest | undefined
  try {
    for (const hook of hooks) {
      const current = changed ?? written
      const deadline = new HookDeadline()
      caller.onDisconnect(() => deadline.abort())
      const model = admitted.chain[0]?.id ?? current.body.model
      const call = new RequestCall(admitted, current, model, deadline)
      // A hook receives only calls of the endpoints that it covers.
      const called = callHook(context.clock, hook.timeoutMs, deadline, () =>
        hook.hook.request?.(call as unknown as HookCall),
      )
      const outcome = isPending(called) ? await called : called
      if (caller.isDisconnected) throw new GatewayError('client_closed_request')
      const units = call.ended()
      let failure: Parameters<typeof hookFailed>[3] | undefined
      if (outcome.kind === 'fault') failure = { hook, point: 'request', ...outcome }
      else {
        const deny = denialOf(outcome.result)
        if (deny !== undefined) {
          admitted.chargedUnits(units)
          throw denied(context, admitted, model, { hook, point: 'request', denial: deny.deny }).error
        }
        try {
          const result = checkedResult<RequestResult>(outcome.result, ['body', 'texts', 'deny', 'answer'])
          const said = result?.answer === undefined ? undefined : saidBy(result, admitted, current)
          if (said === undefined && result !== undefined)
            changed = rewritten(context, admitted, current, result) ?? changed
          admitted.chargedUnits(units)
          if (said !== undefined) return { changed, answered: { hook, said } }
        } catch (error) {
          failure = { hook, point: 'request', fault: 'unusable-result', error }
        }
      }
      const error = failure && hookFailed(context, admitted, model, failure)
      if (error !== undefined) throw error
    }
  } finally {
    caller.onDisconnect(undefined)
  }
  return { changed, answered: undefined }
}

/** @throws TypeError for an answer together with a rewrite, and for an answer that cannot be sent. */
function saidBy(result: RequestResult, admitted: Admitted, current: WrittenRequest): HookSaid {
  if (result.body !== undefined || result.texts !== undefined)
    throw new TypeError('a hook returned an answer and another request')
  return checkedAnswer(result.answer, admitted, current)
}

/** A denial counts even if other members are returned with it. */
export function denialOf(result: unknown): { readonly deny: unknown } | undefined {
  if (typeof result !== 'object' || result === null || !('deny' in result) || result.deny === undefined)
    return undefined
  return { deny: result.deny }
}

/** @throws GatewayError for a body that a caller could not send either, or the error of an impossible change. */
function rewritten(
  context: PipelineContext,
  admitted: Admitted,
  current: WrittenRequest,
  { body, texts }: RequestResult,
): ParsedRequest | undefined {
  let base = current
  let changed: ParsedRequest | undefined
  if (body !== undefined) {
    if (current.bytes === undefined) throw new TypeError('the body of a form cannot be replaced; return texts')
    changed = reparse(context, admitted, { value: body })
    base = changed
  }
  if (texts === undefined) return changed
  const reader = admitted.endpoint.texts
  const parts = reader?.request(base.body) ?? []
  const known = checkedTexts(texts, parts)
  if (base.bytes !== undefined) {
    const { value } = readExactCallerJson(base.bytes, admitted.called.exactMembers)
    return reparse(context, admitted, { value: withTexts(value, parts, known) })
  }
  if (reader?.replace === undefined) throw new TypeError('the texts of this request cannot be replaced')
  return reparse(context, admitted, { form: reader.replace(base.body, known) })
}

/** Maximum number of units of one call, far below the limit of exact numbers. */
const MAX_HOOK_UNITS = 1_000_000_000

type AskedRequest = ConstructorParameters<typeof CallHookFacts>[0] &
  Pick<Admitted, 'isStream' | 'hookUnits' | 'endpoint'>

/** Request in the view of a hook. */
export class RequestCall extends CallHookFacts {
  readonly isStream: boolean
  readonly #admitted: AskedRequest
  readonly #current: WrittenRequest
  #isFrozen = false
  #units = 0
  #isOver = false

  constructor(admitted: AskedRequest, current: WrittenRequest, model: string, deadline: HookDeadline) {
    super(admitted, model, deadline)
    this.isStream = admitted.isStream
    this.#admitted = admitted
    this.#current = current
  }

  get body(): WrittenRequest['body'] {
    if (!this.#isFrozen) frozen(this.#current.body)
    this.#isFrozen = true
    return this.#current.body
  }

  charge(meter: 'hook_unit', units: number): void {
    if (meter !== 'hook_unit') throw new TypeError(`a hook charges hook_unit, and not ${String(meter)}`)
    const known = this.#admitted.hookUnits + this.#units
    if (!(Number.isSafeInteger(units) && units >= 0 && known + units <= MAX_HOOK_UNITS))
      throw new TypeError(`charge: units must be a whole number, at most ${MAX_HOOK_UNITS} for a call`)
    if (this.#isOver) throw new TypeError('charge: this point of the hook has ended')
    this.#units += units
  }

  /** Ends the point: returns the units charged in it, and accepts no more. */
  ended(): number {
    this.#isOver = true
    return this.#units
  }

  texts(): readonly TextPart[] {
    return this.#admitted.endpoint.texts?.request(this.#current.body) ?? []
  }
}
