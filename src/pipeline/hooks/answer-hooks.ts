import { Buffer } from 'node:buffer'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import type { GatewayError } from '../../core/errors.ts'
import { type ExactMembers, exactJsonText, parseExactJson } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import { type AnswerObject, type TextPart, withTexts } from '../../endpoints/texts.ts'
import type { HookOutcome } from '../../hooks/call-hook.ts'
import type { AnswerResult } from '../../hooks/hook.ts'
import type { CompiledHook } from '../../hooks/hook-table.ts'
import { MAX_HELD_CHARACTERS } from '../../hooks/text-events.ts'
import { byteLengthOf, joinChunks } from '../../wire/chunks.ts'
import type { Reserved } from '../call-record.ts'
import type { PipelineContext } from '../pipeline-context.ts'
import { type FailedResponse, type JsonResponse, uncharged, type VendorResponse } from '../vendor-response.ts'
import {
  ANSWER_RESULT,
  type AnswerScreen,
  callAnswer,
  callWindow,
  checkedResult,
  checkedTexts,
  denied,
  hookFailed,
  type Screening,
  screeningOf,
} from './hook-facts.ts'
import { checkedHeaders, denialOf } from './request-hooks.ts'
import { screenStream } from './screened-stream.ts'

/**
 * Runs the answer hooks in reverse order before the caller receives a byte. A whole answer is returned screened; a stream is
 * screened while it is sent. An answer that is denied as an error is a failure, which determines the charge.
 */
export function runAnswerHooks(
  context: PipelineContext,
  reserved: Reserved,
  response: VendorResponse,
): VendorResponse | Promise<VendorResponse> {
  if (response.kind === 'failed') return response
  const screening = screeningOf(context, reserved, response.candidate.model.id)
  if (screening === undefined) return response
  if (response.kind === 'json') return screenWhole(context, reserved, response, screening)
  return screenStream(context, reserved, response, screening)
}

type ScreeningOfSchema = Screening & Pick<AnswerScreen, 'jsonSchema'>

async function screenWhole(
  context: PipelineContext,
  reserved: Reserved,
  response: JsonResponse,
  screening: ScreeningOfSchema,
): Promise<JsonResponse | FailedResponse> {
  const { candidate, ending, body, dropped } = response
  const { cachePlan } = reserved
  if (cachePlan?.key !== undefined)
    cachePlan.unscreened = { chunks: body.chunks, dropped, isRefusal: body.isRefusal === true }
  const screen = { context, reserved, candidate, usage: ending.usage, jsonSchema: screening.jsonSchema }
  const { answer, error, isCharged } = await screenedWhole(screen, screening, body.chunks)
  if (error !== undefined) return failedAnswer(response, error, isCharged)
  if (answer === undefined) return isCharged ? response : { ...response, ending: uncharged(ending) }
  const chunks = [Buffer.from(writtenAnswer(reserved, answer))]
  const { outputBytes = byteLengthOf(body.chunks) } = body
  const keptAnswer = body.keptAnswer === undefined ? undefined : answer
  return {
    ...response,
    body: { ...body, chunks, outputBytes, keptAnswer },
    ending: isCharged ? ending : uncharged(ending),
  }
}

/** Result of the hooks for a whole answer. */
export interface ScreenedWhole {
  /** Replaced answer, or `undefined` if it stays unchanged. */
  readonly answer: AnswerObject | undefined
  /** Error that replaces the answer, or `undefined` without one. */
  readonly error: GatewayError | undefined
  readonly isCharged: boolean
}

const NO_MEMBERS: ExactMembers = new Map()

const UNCHANGED_ANSWER: ScreenedWhole = { answer: undefined, error: undefined, isCharged: true }

/** Runs the hooks on a whole answer, one after the other. */
export async function screenedWhole(
  screen: AnswerScreen,
  { hooks, reader }: Screening,
  chunks: readonly Uint8Array[],
): Promise<ScreenedWhole> {
  const text = Buffer.from(joinChunks(chunks)).toString('utf8')
  const parsed = isText(screen.reserved)
    ? { text }
    : parseExactJson(text, screen.reserved.endpoint.exactMembers ?? NO_MEMBERS)
  // A task or another receipt has no text.
  if (!isJsonObject(parsed)) return UNCHANGED_ANSWER
  const isLarge = text.length > LARGE_CHARACTERS
  let answer: AnswerObject = parsed
  let isCharged = true
  for (const hook of hooks) {
    if (isLarge) await endOfTurn()
    const parts = reader.whole(answer)
    const outcome = isWithinBound(parts) ? await asked(screen, hook, answer, parts) : TOO_LARGE
    const decision = decided(screen, hook, { answer, parts }, outcome)
    if (decision === undefined) continue
    if (decision.kind === 'texts') {
      answer = parseExactJson(exactJsonText(decision.answer)) as AnswerObject
      reader.replaced?.(answer)
      continue
    }
    isCharged = decision.isCharged
    if (decision.refusal === undefined) return { answer: undefined, error: decision.error, isCharged }
    answer = reader.refusal(answer, decision.refusal)
    break
  }
  return answer === parsed ? UNCHANGED_ANSWER : { answer, error: undefined, isCharged }
}

/** Length of an answer, in characters, above which each hook runs in its own turn of the event loop. */
const LARGE_CHARACTERS = 64 * 1024

const TOO_LARGE = {
  kind: 'fault',
  fault: 'too-large',
  error: new RangeError(`the answer has more than ${MAX_HELD_CHARACTERS} characters of text`),
} as const

/** Returns whether the texts are short enough for hooks: as many characters as a stream may hold back. */
function isWithinBound(parts: readonly TextPart[]): boolean {
  return parts.reduce((sum, { text }) => sum + text.length, 0) <= MAX_HELD_CHARACTERS
}

/** An answer that is not JSON is a single text, and hooks see `{ text }`. */
function isText({ endpoint, body }: Reserved): boolean {
  return endpoint.answerType?.(body) !== undefined
}

/** Returns an answer that hooks have changed in the form that its caller reads. */
export function writtenAnswer(reserved: Reserved, answer: AnswerObject): string {
  return isText(reserved) ? String(answer['text']) : exactJsonText(answer)
}

type Decision =
  | { readonly kind: 'texts'; readonly answer: AnswerObject }
  | {
      readonly kind: 'denied'
      readonly error: GatewayError
      /** Text of the refusal, or `undefined` if the caller gets the error. */
      readonly refusal: string | undefined
      readonly isCharged: boolean
    }

/** A hook that reads only streams sees each text as one window. */
async function asked(
  screen: AnswerScreen,
  hook: CompiledHook,
  answer: AnswerObject,
  parts: readonly TextPart[],
): Promise<HookOutcome<AnswerResult | undefined>> {
  return hook.hook.answer === undefined
    ? await windowsOf(screen, hook, parts)
    : await callAnswer(screen, hook, { body: answer, parts })
}

function decided(
  screen: AnswerScreen,
  hook: CompiledHook,
  { answer, parts }: { readonly answer: AnswerObject; readonly parts: readonly TextPart[] },
  outcome: HookOutcome<AnswerResult | undefined>,
): Decision | undefined {
  const { context, reserved, candidate } = screen
  const model = candidate.model.id
  const fail = (failure: Parameters<typeof hookFailed>[3]): Decision | undefined => {
    const error = hookFailed(context, reserved, model, failure)
    return error && { kind: 'denied', error, refusal: undefined, isCharged: false }
  }
  if (outcome.kind === 'fault') return fail({ hook, point: 'answer', ...outcome })
  const deny = denialOf(outcome.result)
  if (deny !== undefined) {
    const { error, isRefusal } = denied(context, reserved, model, { hook, point: 'answer', denial: deny.deny })
    return { kind: 'denied', error, refusal: isRefusal ? error.message : undefined, isCharged: hook.chargesDenied }
  }
  try {
    const { texts, headers } = checkedResult<AnswerResult>(outcome.result, ANSWER_RESULT) ?? {}
    const added = headers === undefined ? undefined : checkedHeaders(headers)
    const changed = texts && withTexts(answer, parts, checkedTexts(texts, parts))
    if (added !== undefined) reserved.addHeaders(added)
    return changed && { kind: 'texts', answer: changed }
  } catch (error) {
    return fail({ hook, point: 'answer', fault: 'unusable-result', error })
  }
}

async function windowsOf(
  screen: AnswerScreen,
  hook: CompiledHook,
  parts: readonly TextPart[],
): Promise<HookOutcome<AnswerResult | undefined>> {
  const texts = new Map<string, string>()
  for (const { id, kind, index, text: fresh } of parts) {
    const outcome = await callWindow(screen, hook, { id, kind, index, before: '', held: '', fresh, isLast: true })
    if (outcome.kind === 'fault') return outcome
    const verdict: unknown = outcome.result
    if (verdict === undefined) continue
    if (denialOf(verdict) !== undefined) return { kind: 'result', result: verdict as AnswerResult }
    const replace = isJsonObject(verdict) ? verdict['replace'] : undefined
    if (typeof replace !== 'string')
      return {
        kind: 'fault',
        fault: 'unusable-result',
        error: new TypeError('text.check must return { replace } or { deny }'),
      }
    texts.set(id, replace)
  }
  return { kind: 'result', result: texts.size === 0 ? undefined : { texts } }
}

/** The withheld answer is charged to the account, or is the operator's loss. */
function failedAnswer({ candidate, ending }: JsonResponse, error: GatewayError, isCharged: boolean): FailedResponse {
  const told = isCharged ? ending : uncharged(ending)
  return { kind: 'failed', error, candidate, mayHaveBegun: true, ending: { ...told, kind: 'failed', error } }
}
