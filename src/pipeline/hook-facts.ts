import { GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import type { HookDeadline, HookFault } from '../hooks/call-hook.ts'
import { type CheckedDenial, checkedDenial } from '../hooks/denial.ts'
import type { HookFacts } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import type { Principal } from '../stores/principal.ts'
import type { Shaped } from './call-record.ts'
import { emit, type PipelineContext, reportFault } from './pipeline-context.ts'
import { attributionOf } from './usage-draft.ts'

/** The point of a hook, as events name it. */
export type HookPoint = 'request' | 'wire' | 'answer' | 'text' | 'failed'

/** Headers of a caller that may carry a credential, of the gateway, of the host or of a vendor. */
const CREDENTIAL_HEADER =
  /^(?:authorization|proxy-authorization|cookie|x-api-key|api-key|x-goog-api-key)$|token|secret/i

/** May a header of this name hold a credential, of the caller or of the gateway? */
export function carriesCredential(name: string): boolean {
  return CREDENTIAL_HEADER.test(name)
}

type Known = Pick<Shaped, 'requestId' | 'principal' | 'request' | 'endpoint'> & {
  readonly body: { readonly model: string }
}

/** What every point of a hook is told. What costs something is made when the hook asks for it. */
export class CallHookFacts implements HookFacts {
  readonly requestId: string
  readonly endpoint: string
  readonly model: string
  readonly principal: Principal
  readonly #call: Known
  readonly #deadline: HookDeadline

  constructor(call: Known, model: string, deadline: HookDeadline) {
    this.requestId = call.requestId
    this.endpoint = call.endpoint.id
    this.model = model
    this.principal = call.principal
    this.#call = call
    this.#deadline = deadline
  }

  get tags(): readonly string[] {
    return attributionOf(this.#call)?.tags ?? []
  }

  get signal(): AbortSignal {
    return this.#deadline.signal
  }

  header(name: string): string | undefined {
    return carriesCredential(name) ? undefined : this.#call.request.header(name)
  }
}

/** Freezes a value with everything inside it. Bytes are left as they are. */
export function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const member of Object.values(value)) frozen(member)
  return value
}

/** A hook that failed at one point of one call. */
export interface FailedHook {
  readonly hook: CompiledHook
  readonly point: HookPoint
  readonly fault: HookFault
  readonly error: unknown
}

/**
 * A hook has failed: the operator is told, and what it was to check passes only where the hook says so.
 * @returns The error for the caller; undefined: it passes.
 */
export function hookFailed(
  context: PipelineContext,
  call: Known,
  model: string,
  { hook, point, fault, error }: FailedHook,
): GatewayError | undefined {
  const { requestId, principal, endpoint } = call
  const { accountId, keyId } = principal
  if (!hook.isOpen) {
    reportFault(context, requestId, `hook ${hook.name} (${point}, ${fault})`, error)
    return new GatewayError('hook_failed', { cause: error })
  }
  context.logger.warn('a hook failed and was passed over', { requestId, hook: hook.name, point, reason: fault, error })
  const named = { requestId, hook: hook.name, point, endpoint: endpoint.id, accountId, keyId, model }
  emit(context, { type: 'hook-bypassed', ...named, reason: fault, error })
  return undefined
}

/** Reads a denial and tells the operator of it. */
export function denied(
  context: PipelineContext,
  call: Known,
  model: string,
  {
    hook,
    point,
    denial,
  }: { readonly hook: CompiledHook; readonly point: 'request' | 'answer' | 'text'; readonly denial: unknown },
): CheckedDenial {
  const checked = checkedDenial(denial, point === 'request' ? 'request_denied' : 'answer_denied')
  const { requestId, principal, endpoint } = call
  if (checked.fault !== undefined) reportFault(context, requestId, `hook ${hook.name} (${point})`, checked.fault)
  const { accountId, keyId } = principal
  const named = { requestId, hook: hook.name, point, endpoint: endpoint.id, accountId, keyId, model }
  emit(context, { type: 'hook-denied', ...named, code: checked.error.publicCode })
  return checked
}

/** Members of what an answer hook may return. */
export const ANSWER_RESULT: readonly string[] = ['texts', 'deny', 'headers']

/**
 * Checks the members of what a hook has returned.
 * @throws TypeError for anything but undefined and an object with some of these members.
 */
export function checkedResult<Result extends object>(result: unknown, members: readonly string[]): Result | undefined {
  if (result === undefined) return undefined
  if (!isJsonObject(result)) throw new TypeError('a hook must return undefined or an object')
  for (const name of Object.keys(result))
    if (!members.includes(name)) throw new TypeError(`a hook returned an unknown member ${JSON.stringify(name)}`)
  return result as Result
}

/**
 * Checks texts that a hook has returned.
 * @throws TypeError naming the text that does not exist, or is none.
 */
export function checkedTexts(texts: unknown, known: readonly { readonly id: string }[]): ReadonlyMap<string, string> {
  if (!(texts instanceof Map)) throw new TypeError('a hook must return texts as a Map of ids and texts')
  const ids = new Set(known.map(({ id }) => id))
  for (const [id, text] of texts as Map<unknown, unknown>) {
    if (typeof id !== 'string' || !ids.has(id))
      throw new TypeError(`a hook returned a text for ${String(id)}, which is not there`)
    if (typeof text !== 'string') throw new TypeError(`a hook returned something else than a text for ${id}`)
  }
  return texts as ReadonlyMap<string, string>
}
