import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { isJsonObject, objectOf, textOf } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatCompletion } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { asBuffer } from '../../wire/chunks.ts'
import { firstHeader } from '../../wire/headers.ts'
import { awsStreamFailure } from '../shared/aws.ts'
import { CompletionCollector } from '../shared/completion-collector.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import { AnswerReader, usageFrom } from '../shared/messages-answer.ts'
import { expectedAnswerTool } from '../shared/messages-tools.ts'
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
    reader.read({ type: 'content_block_start', index, content_block: startOf(objectOf(block)) })
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
  const body = objectOf(parseAnswerJson(new TextDecoder().decode(answer.body), 'input'))
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
      const message = errorMessage || textOf(objectOf(value)['message'])
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
        this.#begin(index, startOf(objectOf(value['start'])))
        break
      case 'contentBlockDelta':
        this.#readDelta(index, objectOf(value['delta']))
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
    const reasoning = objectOf(delta['reasoningContent'])
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
    const shown = objectOf(reasoningContent['reasoningText'])
    return typeof redactedContent === 'string'
      ? { type: 'redacted_thinking', data: redactedContent }
      : { type: 'thinking', thinking: shown['text'], signature: shown['signature'] }
  }
  if (isJsonObject(citationsContent) && Array.isArray(citationsContent['content']))
    return { type: 'text', text: citationsContent['content'].map((part) => textOf(objectOf(part)['text'])).join('') }
  return { type: 'unknown' }
}

function stopEvent(stopReason: unknown): Members {
  return { type: 'message_delta', delta: { stop_reason: STOP_REASONS.get(stopReason) ?? stopReason } }
}

/** Converts usage to Messages. Both formats exclude cached tokens from the input tokens. */
function usageEvent({ usage: counts, serviceTier }: Members): Members {
  const usage = objectOf(counts)
  const details = Array.isArray(usage['cacheDetails']) ? usage['cacheDetails'].map(objectOf) : []
  const ofAnHour = details.filter(({ ttl }) => ttl === '1h').map(({ inputTokens }) => inputTokens)
  return {
    type: 'message_delta',
    delta: {},
    usage: {
      service_tier: objectOf(serviceTier)['type'],
      input_tokens: usage['inputTokens'],
      output_tokens: usage['outputTokens'],
      cache_read_input_tokens: usage['cacheReadInputTokens'],
      cache_creation_input_tokens: usage['cacheWriteInputTokens'],
      ...(ofAnHour.length === 0 ? {} : { cache_creation: { ephemeral_1h_input_tokens: ofAnHour[0] } }),
    },
  }
}

/** Lengths of the frame and of its headers, plus the checksum of both. */
const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
/** Size of a frame without headers and payload. */
const MIN_FRAME_BYTES = PRELUDE_BYTES + CHECKSUM_BYTES
/** Maximum size of a frame's headers that the format allows. */
const MAX_HEADER_BYTES = 128 * 1024
/** Maximum size of a frame that the format allows: headers plus a payload of 24 MiB. */
const MAX_FRAME_BYTES = MIN_FRAME_BYTES + MAX_HEADER_BYTES + 24 * 1024 * 1024

/** Sizes of header values by type. Byte and string values have a length prefix instead. */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16] as const
const TEXT_TYPE = 7
const BYTES_TYPE = 6

/** A frame of `application/vnd.amazon.eventstream`. */
interface EventFrame {
  /** Kind of the frame: `event`, `exception` or `error`. Empty if the frame has none. */
  readonly messageType: string
  /** Type of the event or exception, or code of the error. */
  readonly name: string
  /** Text of an error, which has no payload. */
  readonly errorMessage: string
  /** Slice of the read bytes. Valid only until the next read. */
  readonly payload: Buffer
}

/** Error of a stream that violates the format. */
export class EventFrameError extends Error {
  override readonly name = 'EventFrameError'
}

/**
 * Splits a binary event stream into its frames, independent of network chunks (AWS, "Event stream encoding"). Verifies both
 * checksums, the first one before it uses a length.
 */
export class EventFrameReader {
  readonly #onFrame: (frame: EventFrame) => void
  #kept: Uint8Array[] = []
  #keptBytes = 0
  /** Number of bytes required before the buffer is checked again. */
  #needed = PRELUDE_BYTES

  constructor(onFrame: (frame: EventFrame) => void) {
    this.#onFrame = onFrame
  }

  /** Whether the reader is between two frames. A body that ends elsewhere was truncated. */
  get isBetweenFrames(): boolean {
    return this.#keptBytes === 0
  }

  /**
   * Processes one network read.
   * @throws EventFrameError for a wrong checksum or length. Nothing may be pushed after that.
   */
  push(chunk: Uint8Array): void {
    if (this.#keptBytes === 0) {
      this.#split(asBuffer(chunk))
      return
    }
    this.#kept.push(chunk)
    this.#keptBytes += chunk.length
    if (this.#keptBytes < this.#needed) return
    const bytes = Buffer.concat(this.#kept, this.#keptBytes)
    this.#kept = []
    this.#keptBytes = 0
    this.#split(bytes)
  }

  #split(bytes: Buffer): void {
    let start = 0
    for (;;) {
      const left = bytes.length - start
      this.#needed = left < PRELUDE_BYTES ? PRELUDE_BYTES : frameBytes(bytes, start)
      if (left < this.#needed) break
      const end = start + this.#needed
      this.#onFrame(readFrame(bytes, start, end))
      start = end
    }
    if (start === bytes.length) return
    this.#kept.push(start === 0 ? bytes : bytes.subarray(start))
    this.#keptBytes = bytes.length - start
  }
}

/** Returns the length of a frame whose prelude is complete. */
function frameBytes(bytes: Buffer, start: number): number {
  const total = bytes.readUInt32BE(start)
  const headers = bytes.readUInt32BE(start + 4)
  if (crc32(bytes.subarray(start, start + 8)) !== bytes.readUInt32BE(start + 8))
    throw new EventFrameError('the checksum of the beginning of a frame is wrong')
  if (headers > MAX_HEADER_BYTES || total > MAX_FRAME_BYTES || total < headers + MIN_FRAME_BYTES)
    throw new EventFrameError(`a frame of ${total} bytes with headers of ${headers} bytes cannot be read`)
  return total
}

function readFrame(bytes: Buffer, start: number, end: number): EventFrame {
  const payloadEnd = end - CHECKSUM_BYTES
  if (crc32(bytes.subarray(start, payloadEnd)) !== bytes.readUInt32BE(payloadEnd))
    throw new EventFrameError('the checksum of a frame is wrong')
  const headersStart = start + PRELUDE_BYTES
  const headersEnd = headersStart + bytes.readUInt32BE(start + 4)
  let messageType = ''
  let name = ''
  let errorMessage = ''
  for (let position = headersStart; position < headersEnd; ) {
    const nameEnd = position + 1 + bytes[position]!
    const type = bytes[nameEnd]
    const hasLength = type === TEXT_TYPE || type === BYTES_TYPE
    const valueStart = nameEnd + (hasLength ? 3 : 1)
    const length =
      valueStart > headersEnd ? undefined : hasLength ? bytes.readUInt16BE(nameEnd + 1) : VALUE_BYTES[type!]
    if (length === undefined || valueStart + length > headersEnd)
      throw new EventFrameError('the headers of a frame cannot be read')
    if (type === TEXT_TYPE) {
      const header = bytes.toString('latin1', position + 1, nameEnd)
      if (header === ':message-type') messageType = bytes.toString('latin1', valueStart, valueStart + length)
      else if (header === ':event-type' || header === ':exception-type' || header === ':error-code')
        name = bytes.toString('latin1', valueStart, valueStart + length)
      else if (header === ':error-message') errorMessage = bytes.toString('utf8', valueStart, valueStart + length)
    }
    position = valueStart + length
  }
  return { messageType, name, errorMessage, payload: bytes.subarray(headersEnd, payloadEnd) }
}
