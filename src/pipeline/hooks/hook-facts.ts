import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { Usage } from '../../core/usage.ts'
import type { AnswerObject, AnswerTexts, TextPart } from '../../endpoints/texts.ts'
import { callHook, HookDeadline, type HookFault, type HookOutcome } from '../../hooks/call-hook.ts'
import {
  type AnswerFacts,
  type AnswerResult,
  type CheckedDenial,
  checkedDenial,
  type HookAnswer,
  type HookFacts,
  type TextVerdict,
  type TextWindow,
} from '../../hooks/hook.ts'
import type { CompiledHook } from '../../hooks/hook-table.ts'
import type { WindowText } from '../../hooks/window-stage.ts'
import type { Principal } from '../../stores/principal.ts'
import type { Parsed, Reserved, Shaped } from '../call-record.ts'
import { attributionOf } from '../charge.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline-context.ts'

/** Point of a hook, as named in events. */
export type HookPoint = 'request' | 'wire' | 'answer' | 'text' | 'failed'

/** Headers of a caller that may carry a credential of the gateway, the host or a vendor. */
const CREDENTIAL_HEADER =
  /^(?:authorization|proxy-authorization|cookie|x-api-key|api-key|x-goog-api-key)$|token|secret/i

/** Whether a header of this name may carry a credential of the caller or the gateway. */
export function carriesCredential(name: string): boolean {
  return CREDENTIAL_HEADER.test(name)
}

type Known = Pick<Shaped, 'requestId' | 'principal' | 'request' | 'endpoint'> & {
  readonly body: { readonly model: string }
}

/** Facts for every point of a hook. Expensive ones are created on demand. */
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

/** Freezes a value and everything inside it, except bytes. */
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
 * Reports a failed hook to the operator. Unchecked input passes only if the hook allows it.
 * @returns The error for the caller, or `undefined` if the input passes.
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
  context.logger.warn('a hook failed and was bypassed', { requestId, hook: hook.name, point, reason: fault, error })
  const named = { requestId, hook: hook.name, point, endpoint: endpoint.id, accountId, keyId, model }
  emit(context, { type: 'hook-bypassed', ...named, reason: fault, error })
  return undefined
}

/** Reads a denial and reports it to the operator. */
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

/** Members that an answer hook may return. */
export const ANSWER_RESULT: readonly string[] = ['texts', 'deny', 'headers']

/**
 * Checks the members of a hook's result.
 * @throws TypeError unless it is undefined or an object with some of these members.
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
 * @throws TypeError that names the unknown or invalid text.
 */
export function checkedTexts(texts: unknown, known: readonly { readonly id: string }[]): ReadonlyMap<string, string> {
  if (!(texts instanceof Map)) throw new TypeError('a hook must return texts as a Map of ids and texts')
  const ids = new Set(known.map(({ id }) => id))
  for (const [id, text] of texts as Map<unknown, unknown>) {
    if (typeof id !== 'string' || !ids.has(id))
      throw new TypeError(`a hook returned a text for ${String(id)}, which does not exist`)
    if (typeof text !== 'string') throw new TypeError(`a hook returned a value that is not a string for ${id}`)
  }
  return texts as ReadonlyMap<string, string>
}

/** Objects that screening an answer needs in addition. */
export interface Screening {
  readonly hooks: readonly CompiledHook[]
  readonly reader: AnswerTexts
}

/** Model and vendor of an answer. */
export interface AnswerOrigin {
  readonly model: { readonly id: string }
  readonly vendor: { readonly id: string }
}

/** Subject of one screening call. */
export interface AnswerScreen {
  readonly context: PipelineContext
  readonly reserved: Reserved
  readonly candidate: AnswerOrigin
  readonly usage: Usage | undefined
  /** Schema that the answer should match. Read before the request is released. */
  readonly jsonSchema: unknown
}

/** Returns the hooks that see an answer, and the facts that they receive about its schema; `undefined` for no hooks. */
export function screeningOf(
  context: PipelineContext,
  { endpoint, body, isStream }: Parsed,
  model: string,
): (Screening & Pick<AnswerScreen, 'jsonSchema'>) | undefined {
  const asked = context.hooks?.of(endpoint)?.answer
  const reader = endpoint.texts?.answer
  if (asked === undefined || reader === undefined) return undefined
  const jsonSchema = frozen(endpoint.texts?.jsonSchema?.(body))
  const facts = { endpoint: endpoint.id, model, isStream, jsonSchema }
  const hooks = asked.filter(({ hook }) => appliesTo(hook, facts))
  return hooks.length === 0 ? undefined : { hooks, reader, jsonSchema }
}

/** A failing `appliesTo` does not exclude the hook. */
function appliesTo(hook: CompiledHook['hook'], facts: AnswerFacts): boolean {
  try {
    return hook.appliesTo === undefined || (hook.appliesTo(facts) as unknown) !== false
  } catch {
    return true
  }
}

/** Calls `answer` of a hook. */
export function callAnswer(
  { context, reserved, candidate, usage, jsonSchema }: AnswerScreen,
  hook: CompiledHook,
  { body, parts }: { readonly body: AnswerObject | undefined; readonly parts: readonly TextPart[] },
): MaybePromise<HookOutcome<AnswerResult | undefined>> {
  const deadline = new HookDeadline()
  const shown = new HookAnswerView(reserved, candidate, { body, parts, usage, jsonSchema }, deadline)
  return callHook(context.clock, hook.timeoutMs, deadline, () => hook.hook.answer?.(shown))
}

/** Calls `text` of a hook. */
export function callWindow(
  { context, reserved, candidate }: AnswerScreen,
  hook: CompiledHook,
  window: WindowText,
): MaybePromise<HookOutcome<TextVerdict>> {
  const deadline = new HookDeadline()
  const shown = new ShownWindow(reserved, candidate, window, deadline)
  return callHook(context.clock, hook.timeoutMs, deadline, () => hook.hook.text?.check(shown))
}

class HookAnswerView extends CallHookFacts implements HookAnswer {
  readonly vendor: string
  readonly usage: Usage | undefined
  readonly isStream: boolean
  readonly jsonSchema: unknown
  readonly #body: AnswerObject | undefined
  readonly #parts: readonly TextPart[]

  constructor(
    reserved: Reserved,
    { model, vendor }: AnswerOrigin,
    answer: {
      readonly body: AnswerObject | undefined
      readonly parts: readonly TextPart[]
      readonly usage: Usage | undefined
      readonly jsonSchema: unknown
    },
    deadline: HookDeadline,
  ) {
    super(reserved, model.id, deadline)
    this.vendor = vendor.id
    this.usage = answer.usage
    this.isStream = answer.body === undefined
    this.jsonSchema = answer.jsonSchema
    this.#body = answer.body
    this.#parts = answer.parts
  }

  get body(): AnswerObject | undefined {
    return frozen(this.#body)
  }

  texts(): readonly TextPart[] {
    return this.#parts
  }
}

/** Window of a text in the view of a hook. */
class ShownWindow extends CallHookFacts implements TextWindow {
  readonly vendor: string
  readonly id: string
  readonly kind: TextWindow['kind']
  readonly index: number
  readonly before: string
  readonly held: string
  readonly fresh: string
  readonly isLast: boolean

  constructor(reserved: Reserved, { model, vendor }: AnswerOrigin, window: WindowText, deadline: HookDeadline) {
    super(reserved, model.id, deadline)
    this.vendor = vendor.id
    this.id = window.id
    this.kind = window.kind
    this.index = window.index
    this.before = window.before
    this.held = window.held
    this.fresh = window.fresh
    this.isLast = window.isLast
  }
}
