import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, isSet, numbersAt, objectOf, textOf } from '../../core/json.ts'
import type { ModelUsage, Usage } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatCompletion, FinishReason } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import type { VendorCall, WireAnswer } from '../vendor.ts'
import { CompletionCollector } from './completion-collector.ts'
import { expectedAnswerTool } from './messages-tools.ts'
import { usageAtTier } from './vendor-cost.ts'

/**
 * Reads a whole Messages answer as a chat completion, as the events of its stream, so that both have the same result. Returns
 * `undefined` if it is not a `message` object.
 */
export function chatFromWire(
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): { completion: ChatCompletion; usage: Usage | undefined } | undefined {
  const message = parseAnswerJson(new TextDecoder().decode(answer.body), 'input')
  if (!isJsonObject(message) || message['type'] !== 'message' || !Array.isArray(message['content'])) return undefined
  const collector = new CompletionCollector()
  const reader = new AnswerReader(collector, expectedAnswerTool(call.request))
  reader.read({ type: 'message_start', message })
  for (const [index, block] of message['content'].entries()) {
    // A call without an id cannot be answered.
    if (isJsonObject(block) && block['type'] === 'tool_use' && typeof block['id'] !== 'string') continue
    reader.read({ type: 'content_block_start', index, content_block: block })
    reader.read({ type: 'content_block_stop', index })
  }
  reader.read({ type: 'message_delta', delta: message })
  reader.read({ type: 'message_stop' })
  const { usage } = reader
  const completion = collector.completion(call, usage)
  return completion === undefined ? undefined : { completion, usage }
}

/** A parsed event of the vendor. */
type MessagesEvent = Readonly<Record<string, unknown>>

/** A content block whose end has not been read. */
type OpenBlock =
  | { readonly kind: 'text' }
  /** `answer` blocks are tool uses whose input is the JSON answer. `startInput` is the input given at the start. */
  | { readonly kind: 'answer'; readonly startInput: unknown; hasJson: boolean }
  | { readonly kind: 'tool'; readonly toolIndex: number; readonly startInput: unknown; hasJson: boolean }
  | { readonly kind: 'thinking'; thinking: string; signature: string }
  /** Blocks that a chat answer does not have. */
  | { readonly kind: 'other' }

/** Reads the events of one answer and passes their content to a writer. */
export class AnswerReader {
  isComplete = false
  readonly #writer: ChatStreamWriter
  readonly #answerTool: string | undefined
  readonly #blocks = new Map<unknown, OpenBlock>()
  /** Number of opened tool calls, and index of the next one, because callers count tool calls and not blocks. */
  #toolCount = 0
  #counts = readMessagesUsage(undefined)
  #stopReason: unknown
  #refusal: string | undefined
  #hasStarted = false

  /** @param answerTool Tool whose input is the answer, if the request wants JSON. */
  constructor(writer: ChatStreamWriter, answerTool: string | undefined) {
    this.#writer = writer
    this.#answerTool = answerTool
  }

  get usage(): Usage | undefined {
    return normalisedUsage(this.#counts)
  }

  /** Reads one event. Unknown ones, and `ping`, are skipped, as the vendor requires. Returns whether it was a delta of text. */
  read(event: MessagesEvent): boolean {
    switch (event['type']) {
      case 'message_start':
        this.#startMessage(objectOf(event['message']))
        break
      case 'content_block_start':
        this.#startBlock(event['index'], objectOf(event['content_block']))
        break
      case 'content_block_delta':
        return this.#readDelta(this.#blocks.get(event['index']), objectOf(event['delta']))
      case 'content_block_stop':
        this.#closeBlock(event['index'])
        break
      case 'message_delta':
        this.#readMessageDelta(objectOf(event['delta']), event['usage'])
        break
      case 'message_stop':
        this.#finish()
    }
    return false
  }

  /** Reads a delta of text. */
  readText(text: string): void {
    this.#open('')
    this.#writer.text(text)
  }

  #startMessage({ id, usage }: MessagesEvent): void {
    this.#counts = latestUsage(this.#counts, readMessagesUsage(usage))
    this.#open(textOf(id))
  }

  #open(id: string): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#writer.start(id)
  }

  #startBlock(index: unknown, start: MessagesEvent): void {
    // A repeated index begins another block.
    this.#closeBlock(index)
    this.#open('')
    this.#blocks.set(index, this.#openedBlock(start))
  }

  #openedBlock(start: MessagesEvent): OpenBlock {
    const { type, text, thinking, signature, data, id, name, input } = start
    if (type === 'text') {
      if (typeof text === 'string' && text !== '') this.#writer.text(text)
      return { kind: 'text' }
    }
    if (type === 'thinking') {
      if (typeof thinking === 'string' && thinking !== '') this.#writer.reasoning(thinking)
      return { kind: 'thinking', thinking: textOf(thinking), signature: textOf(signature) }
    }
    if (type === 'redacted_thinking' && typeof data === 'string') {
      this.#writer.thinkingBlock({ type: 'redacted_thinking', data })
      return { kind: 'other' }
    }
    if (type !== 'tool_use' || typeof name !== 'string') return { kind: 'other' }
    if (name === this.#answerTool) return { kind: 'answer', startInput: input, hasJson: false }
    const toolIndex = this.#toolCount++
    this.#writer.toolCall({ index: toolIndex, id: textOf(id), name })
    return { kind: 'tool', toolIndex, startInput: input, hasJson: false }
  }

  #readDelta(block: OpenBlock | undefined, delta: MessagesEvent): boolean {
    const { type } = delta
    if (type === 'text_delta') {
      this.readText(textOf(delta['text']))
      return true
    }
    this.#open('')
    if (type === 'input_json_delta') this.#addInputJson(block, textOf(delta['partial_json']))
    if (type === 'thinking_delta') {
      const thinking = textOf(delta['thinking'])
      if (thinking !== '') this.#writer.reasoning(thinking)
      if (block?.kind === 'thinking') block.thinking += thinking
    }
    if (type === 'signature_delta' && block?.kind === 'thinking') block.signature += textOf(delta['signature'])
    return false
  }

  #addInputJson(block: OpenBlock | undefined, json: string): void {
    if (json === '' || (block?.kind !== 'tool' && block?.kind !== 'answer')) return
    block.hasJson = true
    if (block.kind === 'tool') this.#writer.toolCallArguments(block.toolIndex, json)
    else this.#writer.text(json)
  }

  /** Writes content that had to wait for the whole block. */
  #closeBlock(index: unknown): void {
    const block = this.#blocks.get(index)
    if (block === undefined) return
    this.#blocks.delete(index)
    if (block.kind === 'tool' && !block.hasJson) {
      this.#writer.toolCallArguments(block.toolIndex, inputJson(block.startInput))
    }
    if (block.kind === 'answer' && !block.hasJson) this.#writer.text(inputJson(block.startInput))
    if (block.kind === 'thinking' && block.signature !== '') {
      this.#writer.thinkingBlock({ type: 'thinking', thinking: block.thinking, signature: block.signature })
    }
  }

  #readMessageDelta(delta: MessagesEvent, usage: unknown): void {
    this.#counts = latestUsage(this.#counts, readMessagesUsage(usage))
    this.#stopReason = delta['stop_reason'] ?? this.#stopReason
    this.#refusal = refusalText(delta['stop_details']) ?? this.#refusal
  }

  // Writes the reason at the end, because several message_delta events may arrive, and the last one counts.
  #finish(): void {
    this.#open('')
    for (const index of [...this.#blocks.keys()]) this.#closeBlock(index)
    if (this.#refusal !== undefined) this.#writer.refusal(this.#refusal)
    this.#writer.finish(finishReason(this.#stopReason, this.#toolCount > 0))
    this.isComplete = true
  }
}

// The start contains an empty object, and a tool without arguments sends no deltas.
function inputJson(startInput: unknown): string {
  return isJsonObject(startInput) ? exactJsonText(startInput) : '{}'
}

const FINISH_REASONS: ReadonlyMap<unknown, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['compaction', 'stop'],
  ['tool_use', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'content_filter'],
])

/**
 * Maps a `stop_reason`. An unknown one becomes `content_filter`. A stop with tool calls is always `tool_calls`, because agents only
 * react to that. `tool_use` without a call is a JSON answer that arrived through a tool.
 */
function finishReason(stopReason: unknown, hasToolCalls: boolean): FinishReason {
  const reason = FINISH_REASONS.get(stopReason) ?? (typeof stopReason === 'string' ? 'content_filter' : 'stop')
  return reason === 'stop' && hasToolCalls ? 'tool_calls' : reason
}

/** Returns the vendor's explanation of a refusal, from `stop_details`. */
function refusalText(stopDetails: unknown): string | undefined {
  if (!isJsonObject(stopDetails) || stopDetails['type'] !== 'refusal') return undefined
  const { explanation } = stopDetails
  return typeof explanation === 'string' && explanation !== '' ? explanation : undefined
}

/** Members of `usage` with the tokens of one sampling or of a whole call. Input excludes tokens read from or written to the cache. */
const COUNTS = {
  inputTokens: 'input_tokens',
  cacheWriteTokens: 'cache_creation_input_tokens',
  // Part of the tokens above with a lifetime of an hour. The last event of a stream does not repeat it.
  cacheWrite1hTokens: 'cache_creation.ephemeral_1h_input_tokens',
  cacheReadTokens: 'cache_read_input_tokens',
  outputTokens: 'output_tokens',
  thinkingTokens: 'output_tokens_details.thinking_tokens',
} as const

type MessagesCounts = Partial<Record<keyof typeof COUNTS, number>>

/** Usage as Anthropic reports it. */
interface MessagesUsage extends MessagesCounts {
  webSearches?: number
  serviceTier?: unknown
  /** Samplings of the call. Absent for one with the counts above. */
  iterations?: readonly Iteration[]
}

/** One sampling of a call. */
interface Iteration {
  /** Whether the counts of the call exclude the sampling, as for summaries of the conversation. */
  readonly isExtra: boolean
  /** The vendor's model id, or `undefined` for the called model. */
  readonly model: string | undefined
  readonly counts: MessagesCounts
}

/** Reads a `usage` object. Implausible numbers are kept, because settlement checks them; all other values are skipped. */
export function readMessagesUsage(value: unknown): MessagesUsage {
  const { service_tier: tier, iterations, ...others } = objectOf(value)
  const tools = others['server_tool_use']
  const usage: MessagesUsage = {
    ...numbersAt(value, COUNTS),
    ...numbersAt(tools, { webSearches: 'web_search_requests' }),
  }
  // The vendor sends null if none of its own tools was used (Anthropic, API reference, "Usage").
  if (tools === null) usage.webSearches = 0
  if (isSet(tier)) usage.serviceTier = tier
  if (Array.isArray(iterations) && iterations.length > 0)
    usage.iterations = iterations.filter(isJsonObject).map(iterationOf)
  return usage
}

/**
 * Reads an entry of `usage.iterations` (Anthropic, "Compaction" and "Advisor tool"). The counts of the call exclude summaries, and
 * the usage of an advisor, which is billed at the advisor's price.
 */
function iterationOf(iteration: Readonly<Record<string, unknown>>): Iteration {
  const { type, model } = iteration
  const isOfAnother = type !== 'message' && type !== 'compaction' && typeof model === 'string' && model !== ''
  return {
    isExtra: type !== undefined && type !== 'message',
    model: isOfAnother ? model : undefined,
    counts: numbersAt(iteration, COUNTS),
  }
}

/**
 * Joins the counts of two events of a stream. Later counts are cumulative, so they replace earlier ones and are never added
 * (Anthropic, "Streaming messages").
 */
export function latestUsage(earlier: MessagesUsage, later: MessagesUsage): MessagesUsage {
  const usage = { ...earlier, ...later }
  const { cacheWriteTokens: total, cacheWrite1hTokens: ofAnHour } = earlier
  // A later event may report only the total of cache writes.
  const isHourAlone = ofAnHour !== undefined && ofAnHour > 0 && ofAnHour === total
  if (isHourAlone && later.cacheWrite1hTokens === undefined && later.cacheWriteTokens !== undefined)
    usage.cacheWrite1hTokens = later.cacheWriteTokens
  return usage
}

/**
 * Converts Anthropic's counts to totals that include their parts (Anthropic, "Prompt caching": total input is the sum of fresh,
 * cache-written and cache-read tokens), over all samplings of the call. Returns `undefined` if the vendor reported no count.
 */
export function normalisedUsage(counts: MessagesUsage): Usage | undefined {
  const { webSearches, serviceTier, iterations } = counts
  const totals = totalsOf(iterations === undefined ? counts : allSamplings(counts, iterations))
  if (totals === undefined) return undefined
  const otherModels = iterations === undefined ? [] : otherModelsOf(iterations)
  const usage = {
    ...totals,
    ...(webSearches === undefined ? {} : { webSearches }),
    ...(otherModels.length === 0 ? {} : { otherModels }),
  }
  return usageAtTier(usage, serviceTier)
}

function totalsOf(counts: MessagesCounts): Usage | undefined {
  const { inputTokens, cacheWriteTokens, cacheWrite1hTokens, cacheReadTokens, outputTokens, thinkingTokens } = counts
  const hasInput = inputTokens !== undefined || cacheWriteTokens !== undefined || cacheReadTokens !== undefined
  if (!hasInput && outputTokens === undefined) return undefined
  return {
    ...(hasInput ? { inputTokens: (inputTokens ?? 0) + (cacheWriteTokens ?? 0) + (cacheReadTokens ?? 0) } : {}),
    ...(cacheReadTokens === undefined ? {} : { cachedInputTokens: cacheReadTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens }),
    ...(cacheWrite1hTokens === undefined ? {} : { cacheWrite1hTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(thinkingTokens === undefined ? {} : { reasoningTokens: thinkingTokens }),
  }
}

/**
 * Adds up what the called model consumed. The vendor reports some counts for the first sampling only and others as a sum, so the
 * larger value was billed. Summaries are in neither.
 */
function allSamplings(counts: MessagesCounts, iterations: readonly Iteration[]): MessagesCounts {
  const own = iterations.filter(({ model }) => model === undefined)
  const sumOf = (name: keyof MessagesCounts, ofExtra: boolean): number =>
    own.reduce((sum, { isExtra, counts: part }) => (isExtra === ofExtra ? sum + (part[name] ?? 0) : sum), 0)
  const totals: MessagesCounts = { ...counts }
  for (const name of Object.keys(COUNTS) as (keyof MessagesCounts)[]) {
    const total = Math.max(counts[name] ?? 0, sumOf(name, false)) + sumOf(name, true)
    if (counts[name] !== undefined || total > 0) totals[name] = total
  }
  return totals
}

function otherModelsOf(iterations: readonly Iteration[]): ModelUsage[] {
  return iterations.flatMap(({ model, counts }) => {
    const usage = totalsOf(counts)
    return model === undefined || usage === undefined ? [] : [{ model, usage }]
  })
}

/** Reads a `usage` object of a whole answer. */
export function usageFrom(value: unknown): Usage | undefined {
  return normalisedUsage(readMessagesUsage(value))
}
