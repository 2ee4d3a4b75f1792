import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { type ServerSentEvent, type SseReader, sseReader } from '../../wire/sse.ts'
import type { VendorCall, VendorFailure } from '../vendor.ts'
import { expectedAnswerTool } from './answer-format.ts'
import { normalisedUsage } from './messages-usage.ts'
import { reduceEvent } from './stream-reducers.ts'
import { newStreamState, type StreamState } from './stream-state.ts'

/** Reads a `type: "error"` object that came inside a stream. */
export type StreamErrorReader = (event: Record<string, unknown>) => VendorFailure

/**
 * Reads the events of a streamed Messages answer (Anthropic, "Streaming messages"). Events are told apart by the `type` in their
 * data; nothing is given out after an error or after the end.
 */
export class MessagesStreamDecoder implements ChatStreamDecoder {
  readonly #reader: SseReader
  readonly #state: StreamState
  readonly #readError: StreamErrorReader
  #failure: VendorFailure | undefined

  constructor(call: VendorCall<ChatRequest>, writer: ChatStreamWriter, readError: StreamErrorReader) {
    this.#state = newStreamState(writer, expectedAnswerTool(call.request))
    this.#readError = readError
    this.#reader = sseReader((event) => this.#take(event))
  }

  push(chunk: Uint8Array): void {
    this.#reader.push(chunk)
  }

  end(): void {
    this.#reader.end()
  }

  get isComplete(): boolean {
    return this.#state.isComplete
  }

  get failure(): VendorFailure | undefined {
    return this.#failure
  }

  get usage(): Usage | undefined {
    return normalisedUsage(this.#state.usage)
  }

  #take(event: ServerSentEvent): void {
    if (this.#failure !== undefined || this.#state.isComplete) return
    const data = parseVendorJson(event.data)
    if (!isJsonObject(data)) {
      this.#failure = {
        kind: 'invalid_response',
        status: 0,
        message: 'the vendor sent an event that is not a JSON object',
      }
    } else if (data['type'] === 'error') {
      this.#failure = this.#readError(data)
    } else {
      reduceEvent(this.#state, data)
    }
  }
}
