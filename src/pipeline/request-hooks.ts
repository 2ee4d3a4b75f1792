import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { isPending } from '../core/maybe-promise.ts'
import { type TextPart, withTexts } from '../endpoints/texts.ts'
import { callHook, HookDeadline } from '../hooks/call-hook.ts'
import type { HookCall, RequestResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import type { Admitted, ParsedRequest } from './call-record.ts'
import { CallHookFacts, checkedResult, checkedTexts, denied, frozen, hookFailed } from './hook-facts.ts'
import { reparse } from './parse.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** A request as its caller wrote it, without what it refers to. */
export type WrittenRequest = Pick<ParsedRequest, 'body' | 'bytes'>

/**
 * Asks the hooks about a request, in their order, before anything is held: each one reads what the one before it has made of it.
 * @returns The request in its place; undefined: it stays as it is.
 * @throws GatewayError `request_denied`, `hook_failed`, or `client_closed_request` when the caller has left.
 */
export async function runRequestHooks(
  context: PipelineContext,
  admitted: Admitted,
  written: WrittenRequest,
  hooks: readonly CompiledHook[],
): Promise<ParsedRequest | undefined> {
  const { caller } = admitted
  let changed: ParsedRequest | undefined
  try {
    for (const hook of hooks) {
      const current = changed ?? written
      const deadline = new HookDeadline()
      caller.onDisconnect = () => deadline.abort()
      const model = admitted.chain[0]?.id ?? current.body.model
      const call = new RequestCall(admitted, current, model, deadline)
      // A hook is handed calls of the endpoints only that it covers.
      const called = callHook(context.clock, hook.timeoutMs, deadline, () =>
        hook.hook.request?.(call as unknown as HookCall),
      )
      const outcome = isPending(called) ? await called : called
      if (caller.isDisconnected) throw new GatewayError('client_closed_request')
      let failure: Parameters<typeof hookFailed>[3] | undefined
      if (outcome.kind === 'fault') failure = { hook, point: 'request', ...outcome }
      else {
        const deny = denialOf(outcome.result)
        if (deny !== undefined)
          throw denied(context, admitted, model, { hook, point: 'request', denial: deny.deny }).error
        try {
          const result = checkedResult<RequestResult>(outcome.result, ['body', 'texts', 'deny'])
          if (result !== undefined) changed = rewritten(context, admitted, current, result) ?? changed
        } catch (error) {
          failure = { hook, point: 'request', fault: 'unusable-result', error }
        }
      }
      const error = failure && hookFailed(context, admitted, model, failure)
      if (error !== undefined) throw error
    }
  } finally {
    caller.onDisconnect = undefined
  }
  return changed
}

/** A denial counts whatever else is returned with it. */
export function denialOf(result: unknown): { readonly deny: unknown } | undefined {
  if (typeof result !== 'object' || result === null || !('deny' in result) || result.deny === undefined)
    return undefined
  return { deny: result.deny }
}

/** @throws what cannot be done: GatewayError for a body that a caller could not send either. */
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
    const value: unknown = JSON.parse(Buffer.from(base.bytes).toString('utf8'))
    return reparse(context, admitted, { value: withTexts(value, parts, known) })
  }
  if (reader?.replace === undefined) throw new TypeError('the texts of this request cannot be replaced')
  return reparse(context, admitted, { form: reader.replace(base.body, known) })
}

class RequestCall extends CallHookFacts {
  readonly isStream: boolean
  readonly #admitted: Admitted
  readonly #current: WrittenRequest
  #isFrozen = false

  constructor(admitted: Admitted, current: WrittenRequest, model: string, deadline: HookDeadline) {
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

  texts(): readonly TextPart[] {
    return this.#admitted.endpoint.texts?.request(this.#current.body) ?? []
  }
}
