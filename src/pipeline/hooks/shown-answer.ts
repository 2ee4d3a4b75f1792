import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { Usage } from '../../core/usage.ts'
import type { AnswerObject, AnswerTexts, TextPart } from '../../endpoints/texts.ts'
import { callHook, HookDeadline, type HookOutcome } from '../../hooks/call-hook.ts'
import type { AnswerFacts, AnswerResult, HookAnswer, TextVerdict, TextWindow } from '../../hooks/hook.ts'
import type { CompiledHook } from '../../hooks/hook-table.ts'
import type { WindowText } from '../../hooks/window-stage.ts'
import type { Parsed, Reserved } from '../call-record.ts'
import type { PipelineContext } from '../pipeline-context.ts'
import { CallHookFacts, frozen } from './hook-facts.ts'

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
