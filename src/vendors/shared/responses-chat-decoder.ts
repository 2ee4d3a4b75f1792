import type { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { EventLines, EventSplitter } from '../../wire/event-splitter.ts'
import { startsWith } from '../../wire/json-cursor.ts'
import type { VendorCall, VendorFailure } from '../vendor.ts'
import { DeltaEvent, deltaStart } from './delta-event.ts'
import { invalidResponse } from './invalid-response.ts'
import { responsesUsage } from './openai-responses-usage.ts'
import { ResponsesAnswerReader } from './responses-answer-reader.ts'

/** Parts of the dialect for a stream. */
interface StreamDialect {
  streamFailure(envelope: Record<string, unknown>): VendorFailure
}

const TEXT_DELTA = deltaStart('output_text')
const SUMMARY_DELTA = deltaStart('reasoning_summary_text')

// Shared by all streams, because each one reads its events synchronously.
const event = new EventLines()
const delta = new DeltaEvent()

/**
 * Reads a streamed response as the answer to a chat (OpenAI API reference, "Streaming events"). Text deltas, the most frequent
 * events, are not parsed.
 */
export class ResponsesChatDecoder implements ChatStreamDecoder {
  failure: VendorFailure | undefined
  readonly #dialect: StreamDialect
  readonly #answer: ResponsesAnswerReader
  readonly #splitter = new EventSplitter()
  readonly #askedTier: unknown
  readonly #readsDeltas: boolean
  #usage: Usage | undefined
  #error: VendorFailure | undefined

  constructor(call: VendorCall<ChatRequest>, writer: ChatStreamWriter, dialect: StreamDialect) {
    this.#dialect = dialect
    this.#askedTier = call.request['service_tier']
    this.#answer = new ResponsesAnswerReader(writer, {
      apiKey: call.apiKey,
      model: call.model,
      request: { service_tier: this.#askedTier },
    })
    // The caller also wants their logprobs.
    this.#readsDeltas = call.request.logprobs === true
  }

  get isComplete(): boolean {
    return this.#answer.isComplete
  }

  get usage(): Usage | undefined {
    return this.#answer.usage ?? this.#usage
  }

  /** A failed response reports its whole usage. */
  get hasRunningUsage(): boolean {
    return this.#usage !== undefined
  }

  /** True between events. */
  get holdsNoBytes(): boolean {
    return this.#splitter.heldBytes === 0
  }

  push(chunk: Uint8Array): void {
    if (this.#isOver) return
    const complete = this.#splitter.take(chunk)
    if (complete !== undefined) this.#readAll(complete, false)
    if (this.#splitter.isOversize && !this.#isOver)
      this.failure = invalidResponse('The vendor sent an event that is too large.')
  }

  end(): void {
    const rest = this.#isOver ? undefined : this.#splitter.rest()
    if (rest !== undefined) this.#readAll(rest, true)
    // An error without the failed response that should follow it.
    if (!this.#isOver) this.failure = this.#error
  }

  get #isOver(): boolean {
    return this.failure !== undefined || this.isComplete
  }

  /** @param isRest Whether this is the remainder at the end of the body, which may be torn. */
  #readAll(bytes: Buffer, isRest: boolean): void {
    let position = 0
    while (position < bytes.length && !this.#isOver) {
      const behind = this.#readsDeltas ? -1 : this.#readDelta(bytes, position)
      if (behind !== -1) {
        position = behind
        continue
      }
      event.read(bytes, position)
      position = event.end
      if (event.hasData) this.#readEvent(event, isRest)
    }
    event.release()
    delta.release()
  }

  /** Returns the position after a text delta in the usual form, or -1 for any other event. */
  #readDelta(bytes: Buffer, start: number): number {
    const isText = startsWith(bytes, start, TEXT_DELTA)
    const known = isText ? TEXT_DELTA : SUMMARY_DELTA
    if (!isText && !startsWith(bytes, start, known)) return -1
    if (!delta.find(bytes, start + known.length)) return -1
    const { text } = delta
    if (text === undefined) return -1
    if (isText) this.#answer.text(text)
    else this.#answer.reasoning(text)
    return delta.end
  }

  #readEvent(lines: EventLines, isRest: boolean): void {
    const value = parseAnswerJson(lines.text)
    if (isJsonObject(value)) this.#read(value)
    // A torn last event is not a separate error: the body was cut, and `isComplete` is false.
    else if (!isRest && !lines.isEndMark)
      this.failure = invalidResponse('The vendor sent an event that is not a JSON object.')
  }

  #read(value: Record<string, unknown>): void {
    const { type, error, response } = value
    if (type === 'error' || (type === undefined && isJsonObject(error))) {
      this.#error = this.#dialect.streamFailure(isJsonObject(error) ? value : { error: value })
    } else if (type === 'response.failed') {
      const failed = isJsonObject(response) ? response : {}
      this.#usage = responsesUsage(failed, this.#askedTier)
      this.failure = this.#error ?? this.#dialect.streamFailure({ error: failed['error'] ?? error })
    } else this.#answer.read(value)
  }
}
