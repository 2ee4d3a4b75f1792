import { Buffer } from 'node:buffer'
import { isJsonObject, objectOf } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'
import { type ChatAnnotation, chatUsage, type FinishReason } from '../../endpoints/chat/chat-completion.ts'
import { completionTextBytes } from '../../endpoints/chat/chat-operation.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import { replaceString } from '../../wire/json-edits.ts'
import type { AnswerBody, BrokenChat, VendorCall } from '../vendor.ts'
import {
  type AnswerRepair,
  failedChoice,
  isErrorEnvelope,
  markedCacheTime,
  mendContentParts,
  type ReadDialect,
} from './openai-chat-dialect.ts'
import { answerMark, argumentsText, inventedCallId } from './streamed-tool-calls.ts'
import { tellsPurchasePrice, usageAtTier, withoutPurchasePrice } from './vendor-cost.ts'

/**
 * Passes a JSON chat response through: the vendor's bytes with the model id replaced. It is serialized again only if the vendor
 * omits members that callers rely on (`refusal` and `logprobs`, null if unused) or uses a non-standard finish reason.
 */
export function passChatBody(
  chunks: readonly Uint8Array[],
  call: VendorCall<ChatRequest>,
  dialect: ReadDialect = {},
): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const completion = readCompletion(bytes.toString('utf8'))
  if (completion === undefined) {
    const broken = brokenCompletion(bytes, call, dialect)
    return broken && { ...broken, chunks: [] }
  }
  const isMended = mendParts(completion, dialect.answerRepair)
  const usage = usageIn(completion, call, dialect)
  const outputBytes = completionTextBytes(completion)
  const { billedUsage, isBilled } = call
  const mended = shownUsage(completion['usage'], usage, billedUsage?.(usage, outputBytes), isBilled)
  if (mended !== undefined || isMended || !completion.choices.every(isRegular)) {
    const body = mended === undefined ? completion : { ...completion, usage: mended }
    return { chunks: [rewritten(body, call)], usage, outputBytes }
  }
  const { model } = completion
  if (model === call.publicModel) return { chunks, usage, outputBytes }
  const renamed = replaceString(bytes, 'model', model, call.publicModel) ?? rewritten(completion, call)
  return { chunks: [renamed], usage, outputBytes }
}

/**
 * Returns the vendor's usage for the caller: with the charged counts, and without the operator's cost if the caller is billed.
 * Returns `undefined` if no change is needed. Members other than counts stay unchanged.
 */
export function shownUsage(
  wire: unknown,
  reported: Usage | undefined,
  billed: Usage | undefined,
  isBilled: boolean | undefined,
): Record<string, unknown> | undefined {
  if (isBilled !== true || !tellsPurchasePrice(wire)) return billedWireUsage(wire, reported, billed)
  const shown = withoutPurchasePrice(wire) as Record<string, unknown>
  return billedWireUsage(shown, reported, billed) ?? shown
}

function billedWireUsage(
  wire: unknown,
  reported: Usage | undefined,
  billed: Usage | undefined,
): Record<string, unknown> | undefined {
  const counts = billed ?? reported
  if (counts === undefined) return undefined
  const isSaid =
    isJsonObject(wire) &&
    wire['completion_tokens'] === reported?.outputTokens &&
    wire['prompt_tokens'] === reported?.inputTokens
  if (isSaid && reported !== undefined && isSameUsage(reported, counts)) return undefined
  return { ...objectOf(wire), ...chatUsage(counts) }
}

function isRegular(choice: WireChoice): boolean {
  return (
    choice['logprobs'] !== undefined &&
    choice.message['refusal'] !== undefined &&
    openaiFinishReason(choice['finish_reason']) === choice['finish_reason'] &&
    hasWholeCalls(choice.message['tool_calls'])
  )
}

/** Whether clients can use the calls: they select them by `type`, answer by `id`, and read arguments as text. */
function hasWholeCalls(calls: unknown): boolean {
  return (
    !Array.isArray(calls) ||
    calls.every(
      (call) => isJsonObject(call) && typeof call['type'] === 'string' && hasId(call) && hasTextArguments(call),
    )
  )
}

function hasTextArguments({ function: called }: Record<string, unknown>): boolean {
  return !isJsonObject(called) || typeof called['arguments'] === 'string'
}

function hasId({ id }: Record<string, unknown>): boolean {
  return typeof id === 'string' && id.trim() !== ''
}

function mendParts(completion: WireCompletion, repair: AnswerRepair | undefined): boolean {
  let changed = false
  const { choices } = completion
  for (let index = 0; index < choices.length; index++) if (mendContentParts(choices[index]!.message)) changed = true
  return repair?.whole(completion) === true || changed
}

function rewritten(completion: WireCompletion, call: VendorCall<ChatRequest>): Buffer {
  const mark = answerMark(completion['id'], call.nowMs)
  const choices = completion.choices.map((choice) => ({
    ...choice,
    message: {
      ...choice.message,
      ...(hasWholeCalls(choice.message['tool_calls'])
        ? {}
        : { tool_calls: wholeCalls(choice.message['tool_calls'], mark) }),
      refusal: choice.message['refusal'] ?? null,
    },
    logprobs: choice['logprobs'] ?? null,
    finish_reason: endReason(choice['finish_reason'], hasCalls(choice.message)),
  }))
  return Buffer.from(JSON.stringify({ ...completion, model: call.publicModel, choices }))
}

function wholeCalls(calls: unknown, answerId: string): unknown {
  if (!Array.isArray(calls)) return calls
  return calls.filter(isJsonObject).map((call, index) => ({
    ...call,
    type: typeof call['type'] === 'string' ? call['type'] : 'function',
    ...(hasId(call) ? {} : { id: inventedCallId(answerId, index) }),
    ...(hasTextArguments(call) ? {} : { function: withText(call['function'] as Record<string, unknown>) }),
  }))
}

function withText(called: Record<string, unknown>): Record<string, unknown> {
  return { ...called, arguments: argumentsText(called['arguments']) }
}

/**
 * Reads a whole answer of the dialect as the only chunk of a stream, so that both have the same content. Returns `undefined` if it is
 * not a chat completion.
 */
export function chunkOfCompletion(body: Uint8Array, dialect: ReadDialect): Record<string, unknown> | undefined {
  const completion = readCompletion(asBuffer(body).toString('utf8'))
  if (completion === undefined) return undefined
  mendParts(completion, dialect.answerRepair)
  const choices = completion.choices.map((choice, index) => {
    const calls = choice.message['tool_calls']
    const indexed = Array.isArray(calls) ? separateCalls(calls.filter(isJsonObject)) : calls
    return { index, ...choice, delta: { ...choice.message, tool_calls: indexed } }
  })
  return { ...completion, choices }
}

/** Numbers the calls of a whole answer, and takes repeated ids from them: in a stream, a known id continues its call. */
function separateCalls(calls: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  const ids = new Set<unknown>()
  return calls.map((call, index) => {
    const { id } = call
    if (ids.has(id)) return { ...call, id: '', index }
    ids.add(id)
    return { ...call, index }
  })
}

/**
 * Reads a whole answer that the vendor could not finish, or an error in a 2xx, with its reported usage: OpenRouter counts output
 * before a model's failure. Returns `undefined` without a report.
 */
export function brokenCompletion(
  body: Uint8Array,
  call: VendorCall<ChatRequest>,
  dialect: ReadDialect,
): BrokenChat | undefined {
  const answer = parseAnswerJson(asBuffer(body).toString('utf8'))
  if (!isJsonObject(answer) || !isFailed(answer) || dialect.streamFailure === undefined) return undefined
  const usage = usedOf(usageIn(answer, call, dialect))
  return usage && { failure: dialect.streamFailure(answer), usage }
}

/** Returns the usage of a whole answer, completed from the request and the answer around it. */
function usageIn(
  { usage, service_tier }: Record<string, unknown>,
  call: VendorCall<ChatRequest>,
  dialect: ReadDialect,
): Usage | undefined {
  const marked = usageAsMarked(openaiUsage(usage), markedCacheTime(call, dialect))
  return usageAtTier(marked, service_tier, call.request['service_tier'])
}

function isFailed(answer: Record<string, unknown>): boolean {
  return isErrorEnvelope(answer) || failedChoice(answer['choices']) !== undefined
}

/** A choice of a whole answer, typed as far as it was checked. */
interface WireChoice extends Record<string, unknown> {
  message: Record<string, unknown>
}

/** A whole answer of the dialect, typed as far as it was checked. */
interface WireCompletion extends Record<string, unknown> {
  choices: WireChoice[]
}

/**
 * Reads the text of a JSON response. Returns `undefined` if it is not a chat completion: not JSON, an error in a 2xx, no choices, a
 * choice without a message, or one that the vendor could not finish.
 */
function readCompletion(text: string): WireCompletion | undefined {
  const body = parseAnswerJson(text, 'arguments')
  return isCompletion(body) ? body : undefined
}

function isCompletion(body: unknown): body is WireCompletion {
  if (!isJsonObject(body) || isErrorEnvelope(body)) return false
  const choices = body['choices']
  return (
    Array.isArray(choices) && choices.length > 0 && choices.every(hasMessage) && failedChoice(choices) === undefined
  )
}

function hasMessage(choice: unknown): boolean {
  return isJsonObject(choice) && isJsonObject(choice['message'])
}

/** Returns the reasoning text of a message or delta, under either of its two names. */
export function reasoningText(message: Record<string, unknown>): string {
  // Some servers send both, one of them empty.
  const text = message['reasoning_content'] || message['reasoning']
  return typeof text === 'string' ? text : ''
}

/** Returns the web sources of a message or delta. If a server sends no positions, they are all 0. */
export function annotationsIn({ annotations }: Record<string, unknown>): ChatAnnotation[] {
  if (!Array.isArray(annotations)) return []
  return annotations.filter(isJsonObject).flatMap(({ type, url_citation: source }): ChatAnnotation[] => {
    if (type !== 'url_citation' || !isJsonObject(source) || typeof source['url'] !== 'string') return []
    const { url, title, start_index: start, end_index: end } = source
    const place = { start_index: typeof start === 'number' ? start : 0, end_index: typeof end === 'number' ? end : 0 }
    return [{ type, url_citation: { ...place, url, title: typeof title === 'string' ? title : '' } }]
  })
}

// Finish reasons of the dialect and of servers that imitate it.
const REASONS: ReadonlyMap<unknown, FinishReason> = new Map<unknown, FinishReason>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['function_call', 'function_call'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_use', 'tool_calls'],
  ['model_context_window_exceeded', 'length'],
  ['safety', 'content_filter'],
  ['sensitive', 'content_filter'],
])

/** Maps a vendor's finish reason to one of the five values. Other values never reach callers. */
export function openaiFinishReason(value: unknown): FinishReason {
  return REASONS.get(value) ?? 'stop'
}

/** Returns the reason of a choice that has ended: the vendor's, or else derived from its content. */
export function endReason(value: unknown, hasToolCalls: boolean): FinishReason {
  if (value !== undefined && value !== null && value !== '') return openaiFinishReason(value)
  return hasToolCalls ? 'tool_calls' : 'stop'
}

function hasCalls({ tool_calls: calls }: Record<string, unknown>): boolean {
  return Array.isArray(calls) && calls.length > 0
}

/** Usage while it is read. */
export type MutableUsage = { -readonly [Field in keyof Usage]: Usage[Field] }

const NO_DETAILS: Readonly<Record<string, unknown>> = {}

/**
 * Reads `usage` of the OpenAI dialect: `prompt_tokens` already includes cached and cache-written tokens, and `completion_tokens`
 * includes reasoning. If the total shows that the completion excludes reasoning, it is added (as at xAI). Numbers are passed on
 * unchanged, plausible or not; anything else counts as missing. Never throws. Returns `undefined` if the value is not an object.
 */
export function openaiUsage(value: unknown): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = isJsonObject(value['prompt_tokens_details']) ? value['prompt_tokens_details'] : NO_DETAILS
  const output = isJsonObject(value['completion_tokens_details']) ? value['completion_tokens_details'] : NO_DETAILS
  const usage: MutableUsage = {}
  if (typeof value['prompt_tokens'] === 'number') usage.inputTokens = value['prompt_tokens']
  const cached = cachedTokens(value, input)
  if (cached !== undefined) usage.cachedInputTokens = cached
  addCacheWrites(usage, input)
  // Servers report zero for every chat, which adds nothing to the total.
  const { audio_tokens: heard } = input
  if (typeof heard === 'number' && heard !== 0) usage.inputAudioTokens = heard
  if (typeof value['completion_tokens'] === 'number') usage.outputTokens = value['completion_tokens']
  if (typeof output['reasoning_tokens'] === 'number') usage.reasoningTokens = output['reasoning_tokens']
  addUnincludedCounts(usage, value['total_tokens'])
  return usage
}

/**
 * Adds cache writes and the part with a lifetime of an hour: OpenAI's name, those of other servers, and the lifetimes of DashScope
 * and LiteLLM.
 */
export function addCacheWrites(usage: MutableUsage, details: Readonly<Record<string, unknown>>): void {
  const written =
    details['cache_write_tokens'] ?? details['cache_creation_input_tokens'] ?? details['cache_creation_tokens']
  if (typeof written !== 'number') return
  usage.cacheWriteTokens = written
  const lifetimes = details['cache_creation'] ?? details['cache_creation_token_details']
  if (!isJsonObject(lifetimes)) return
  const { ephemeral_1h_input_tokens: ofAnHour, ephemeral_5m_input_tokens: ofMinutes } = lifetimes
  if (typeof ofAnHour === 'number') usage.cacheWrite1hTokens = ofAnHour
  // DashScope omits the others, and servers without lifetimes send null for each.
  else if (typeof ofMinutes === 'number') usage.cacheWrite1hTokens = 0
}

/**
 * Adds the lifetime that the marks of the prompt request if the report has none (OpenRouter). The longest mark applies to all cache
 * writes, as in the hold.
 */
export function usageAsMarked(usage: Usage | undefined, cacheTime: CacheTime): Usage | undefined {
  if (cacheTime !== 'hour' || usage?.cacheWriteTokens === undefined || usage.cacheWrite1hTokens !== undefined)
    return usage
  return { ...usage, cacheWrite1hTokens: usage.cacheWriteTokens }
}

/** Returns the usage of a chunk as its server sent it. Older streams of Groq have it only under `x_groq`. */
export function chunkUsage({ usage, x_groq: groq }: Readonly<Record<string, unknown>>): unknown {
  return isJsonObject(usage) || !isJsonObject(groq) ? usage : groq['usage']
}

/** Returns the count from the members of OpenAI, Moonshot, Mistral (two) and DeepSeek's older one. */
function cachedTokens(usage: Record<string, unknown>, details: Record<string, unknown>): number | undefined {
  const misnamed = usage['prompt_token_details']
  return (
    countOf(details['cached_tokens']) ??
    countOf(usage['cached_tokens']) ??
    countOf(usage['num_cached_tokens']) ??
    countOf(isJsonObject(misnamed) ? misnamed['cached_tokens'] : undefined) ??
    countOf(usage['prompt_cache_hit_tokens'])
  )
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** Adds cached tokens to the input, and reasoning to the output, if the total shows that they are not included. */
export function addUnincludedCounts(usage: MutableUsage, total: unknown): void {
  if (isCacheBeside(total, usage)) usage.inputTokens = usage.inputTokens! + usage.cachedInputTokens!
  if (isReasoningBeside(total, usage)) usage.outputTokens = usage.outputTokens! + usage.reasoningTokens!
}

/** Whether the total shows that the output excludes reasoning. */
function isReasoningBeside(total: unknown, { inputTokens, outputTokens, reasoningTokens = 0 }: Usage): boolean {
  if (inputTokens === undefined || outputTokens === undefined || !(reasoningTokens > 0)) return false
  return total === inputTokens + outputTokens + reasoningTokens
}

/** Whether the total shows that the prompt excludes cached tokens. */
function isCacheBeside(total: unknown, usage: Usage): boolean {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens = 0 } = usage
  if (inputTokens === undefined || outputTokens === undefined || cachedInputTokens === undefined) return false
  if (!(cachedInputTokens > inputTokens)) return false
  const sum = inputTokens + cachedInputTokens + outputTokens
  return total === sum || total === sum + reasoningTokens
}

/** Whether a report has each billed count. The answer does not count the usage of other models. */
export function isSameUsage(reported: Usage, billed: Usage): boolean {
  for (const name in billed)
    if (name !== 'otherModels' && billed[name as keyof Usage] !== reported[name as keyof Usage]) return false
  return true
}
