import { randomUUID } from 'node:crypto'
import { isJsonObject } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatCompletion } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { type EventFrame, EventFrameError, EventFrameReader } from '../../wire/event-frames.ts'
import { firstHeader } from '../../wire/headers.ts'
import { awsStreamFailure } from '../shared/aws-error.ts'
import { CompletionCollector } from '../shared/completion-collector.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import { AnswerReader } from '../shared/messages-answer.ts'
import { expectedAnswerTool } from '../shared/messages-tools.ts'
import { usageFrom } from '../shared/messages-usage.ts'
import type { BrokenChat, VendorCall, VendorFailure, WireAnswer } from '../vendor.ts'

type Members = Readonly<Record<string, unknown>>

/** Stop reasons in terms of Messages. Other reasons have the same name. */
const STOP_REASONS: ReadonlyMap<unknown, string> = new Map([
  ['guardrail_intervened', 'refusal'],
  ['content_filtered', 'refusal'],
])

/** Reasons for output of the model that the service cannot read. */
const FAILED_STOPS: ReadonlySet<unknown> = new Set(['malformed_model_output', 'malformed_tool_use'])

/**
 * Reads a whole answer of Converse as a chat completion, block by block as in a stream. Returns `undefined` if it is malformed or
 * the model failed.
 */
export function converseFromWire(
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): { completion: ChatCompletion; usage: Usage | undefined } | undefined {
  const body = parseAnswerJson(new TextDecoder().decode(answer.body), 'input')
  const message = isJsonObject(body) && isJsonObject(body['output']) ? body['output']['message'] : undefined
  if (!isJsonObject(body) || !isJsonObject(message) || !Array.isArray(message['content'])) return undefined
  const { stopReason } = body
  if (FAILED_STOPS.has(stopReason)) return undefined
  const collector = new CompletionCollector()
  const reader = new AnswerReader(collector, expectedAnswerTool(call.request))
  reader.read({
    type: 'message_start',
    message: { id: firstHeader(answer.headers, 'x-amzn-requestid') ?? randomUUID() },
  })
  for (const [index, block] of message['content'].entries()) {
    reader.read({ type: 'content_block_start', index, content_block: startOf(membersOf(block)) })
    reader.read({ type: 'content_block_stop', index })
  }
  reader.read(stopEvent(stopReason))
  reader.read(usageEvent(body))
  reader.read({ type: 'message_stop' })
  const { usage } = reader
  const completion = collector.completion(call, usage)
  return completion === undefined ? undefined : { completion, usage }
}

/** Reads a whole answer in which the model failed and that the service bills. */
export function converseBroken(answer: WireAnswer): BrokenChat | undefined {
  const body = membersOf(parseAnswerJson(new TextDecoder().decode(answer.body), 'input'))
  const usage = usedOf(usageFrom(usageEvent(body)['usage']))
  if (!FAILED_STOPS.has(body['stopReason']) || usage === undefined) return undefined
  return { failure: { ...failedStop(body['stopReason']), status: answer.status }, usage }
}

function failedStop(stopReason: unknown): VendorFailure {
  return invalidResponse(`the model ended its answer with ${String(stopReason)}`)
}

/**
 * Reads a stream of Converse: frames of a binary event stream. There is no end mark: an answer is complete after its stop reason,
 * and usage follows that.
 * @param apiKeys Removed from the text of an exception inside the stream.
 */
export function converseDecoder(
  call: VendorCall<ChatRequest>,
  writer: ChatStreamWriter,
  apiKeys: readonly string[],
): ChatStreamDecoder {
  return new ConverseDecoder(new AnswerReader(writer, expectedAnswerTool(call.request)), apiKeys)
}

/** Events to read. Others are skipped. */
const EVENTS: ReadonlySet<string> = new Set([
  ...['messageStart', 'contentBlockStart', 'contentBlockDelta', 'contentBlockStop', 'messageStop', 'metadata'],
])

class ConverseDecoder implements ChatStreamDecoder {
  failure: VendorFailure | undefined
  readonly #answer: AnswerReader
  readonly #apiKeys: readonly string[]
  readonly #frames = new EventFrameReader((frame) => this.#read(frame))
  /** Blocks that have begun. Text and reasoning blocks begin with their first chunk. */
  readonly #begun = new Set<unknown>()
  /** Failure that the stop reason stands for. The usage follows it. */
  #failedStop: VendorFailure | undefined

  constructor(answer: AnswerReader, apiKeys: readonly string[]) {
    this.#answer = answer
    this.#apiKeys = apiKeys
  }

  takes(mediaType: string): boolean {
    return mediaType === 'application/vnd.amazon.eventstream'
  }

  get isComplete(): boolean {
    return this.#answer.isComplete
  }

  get usage(): Usage | undefined {
    return this.#answer.usage
  }

  /** After a failed stop reason the report is final, including unseen reasoning, although there is no answer. */
  get hasRunningUsage(): boolean {
    return this.#failedStop !== undefined
  }

  push(chunk: Uint8Array): void {
    if (this.failure !== undefined) return
    try {
      this.#frames.push(chunk)
    } catch (error) {
      if (!(error instanceof EventFrameError)) throw error
      this.failure = invalidResponse(`the vendor sent a stream that cannot be read: ${error.message}`)
    }
  }

  end(): void {
    // The stop reason decides whether the answer is complete.
    this.failure ??= this.#failedStop
  }

  #read({ messageType, name, errorMessage, payload }: EventFrame): void {
    if (this.failure !== undefined) return
    const value = payload.length === 0 ? {} : parseAnswerJson(payload.toString('utf8'))
    if (messageType === 'exception' || messageType === 'error') {
      const message = errorMessage || textOf(membersOf(value)['message'])
      this.failure = awsStreamFailure({ name, message }, this.#apiKeys)
    } else if (isJsonObject(value)) this.#readEvent(name, value)
    else if (EVENTS.has(name)) this.failure = invalidResponse('the vendor sent an event that is not a JSON object')
  }

  /** Unknown events are skipped. */
  #readEvent(name: string, value: Members): void {
    const index = value['contentBlockIndex']
    switch (name) {
      case 'messageStart':
        this.#answer.read({ type: 'message_start', message: { id: randomUUID() } })
        break
      case 'contentBlockStart':
        this.#begin(index, startOf(membersOf(value['start'])))
        break
      case 'contentBlockDelta':
        this.#readDelta(index, membersOf(value['delta']))
        break
      case 'contentBlockStop':
        this.#begun.delete(index)
        this.#answer.read({ type: 'content_block_stop', index })
        break
      case 'messageStop':
        this.#stop(value['stopReason'])
        break
      case 'metadata':
        this.#answer.read(usageEvent(value))
        this.failure = this.#failedStop
    }
  }

  #begin(index: unknown, start: Members): void {
    this.#begun.add(index)
    this.#answer.read({ type: 'content_block_start', index, content_block: start })
  }

  #readDelta(index: unknown, delta: Members): void {
    const { text, toolUse } = delta
    const reasoning = membersOf(delta['reasoningContent'])
    if (typeof text === 'string') this.#delta(index, 'text', { type: 'text_delta', text })
    if (isJsonObject(toolUse))
      this.#answer.read({
        ...{ type: 'content_block_delta', index },
        delta: { type: 'input_json_delta', partial_json: textOf(toolUse['input']) },
      })
    if (typeof reasoning['text'] === 'string')
      this.#delta(index, 'thinking', { type: 'thinking_delta', thinking: reasoning['text'] })
    if (typeof reasoning['signature'] === 'string')
      this.#delta(index, 'thinking', { type: 'signature_delta', signature: reasoning['signature'] })
    if (typeof reasoning['redactedContent'] === 'string')
      this.#begin(index, { type: 'redacted_thinking', data: reasoning['redactedContent'] })
  }

  #delta(index: unknown, type: 'text' | 'thinking', delta: Members): void {
    if (!this.#begun.has(index)) this.#begin(index, { type })
    this.#answer.read({ type: 'content_block_delta', index, delta })
  }

  #stop(stopReason: unknown): void {
    if (FAILED_STOPS.has(stopReason)) {
      this.#failedStop = failedStop(stopReason)
      return
    }
    this.#answer.read(stopEvent(stopReason))
    this.#answer.read({ type: 'message_stop' })
  }
}

/** Converts a block, or its start, to Messages. */
function startOf(block: Members): Members {
  const { text, toolUse, reasoningContent, citationsContent } = block
  if (typeof text === 'string') return { type: 'text', text }
  if (isJsonObject(toolUse)) {
    const { toolUseId, name, input } = toolUse
    return { type: 'tool_use', id: toolUseId, name, input }
  }
  if (isJsonObject(reasoningContent)) {
    const { redactedContent } = reasoningContent
    const shown = membersOf(reasoningContent['reasoningText'])
    return typeof redactedContent === 'string'
      ? { type: 'redacted_thinking', data: redactedContent }
      : { type: 'thinking', thinking: shown['text'], signature: shown['signature'] }
  }
  if (isJsonObject(citationsContent) && Array.isArray(citationsContent['content']))
    return { type: 'text', text: citationsContent['content'].map((part) => textOf(membersOf(part)['text'])).join('') }
  return { type: 'unknown' }
}

function stopEvent(stopReason: unknown): Members {
  return { type: 'message_delta', delta: { stop_reason: STOP_REASONS.get(stopReason) ?? stopReason } }
}

/** Converts usage to Messages. Both formats exclude cached tokens from the input tokens. */
function usageEvent({ usage: counts, serviceTier }: Members): Members {
  const usage = membersOf(counts)
  const details = Array.isArray(usage['cacheDetails']) ? usage['cacheDetails'].map(membersOf) : []
  const ofAnHour = details.filter(({ ttl }) => ttl === '1h').map(({ inputTokens }) => inputTokens)
  return {
    type: 'message_delta',
    delta: {},
    usage: {
      service_tier: membersOf(serviceTier)['type'],
      input_tokens: usage['inputTokens'],
      output_tokens: usage['outputTokens'],
      cache_read_input_tokens: usage['cacheReadInputTokens'],
      cache_creation_input_tokens: usage['cacheWriteInputTokens'],
      ...(ofAnHour.length === 0 ? {} : { cache_creation: { ephemeral_1h_input_tokens: ofAnHour[0] } }),
    },
  }
}

function membersOf(value: unknown): Members {
  return isJsonObject(value) ? value : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
