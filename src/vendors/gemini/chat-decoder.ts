import type { Usage } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { type SseReader, sseReader } from '../../wire/sse.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import type { VendorCall, VendorFailure } from '../vendor.ts'
import { BareJsonTail } from './bare-json-tail.ts'
import { AnswerReader } from './chat-from-wire.ts'

/**
 * Reads a stream of `streamGenerateContent?alt=sse`: each event is a whole response object, and there is no end mark, so
 * that a stream without a finish reason was cut.
 */
export function chatDecoder(call: VendorCall<ChatRequest>, writer: ChatStreamWriter): ChatStreamDecoder {
  return new ChatDecoder(new AnswerReader(writer, call))
}

class ChatDecoder implements ChatStreamDecoder {
  readonly hasRunningUsage = true
  readonly #answer: AnswerReader
  readonly #events: SseReader
  readonly #tail = new BareJsonTail()
  #unreadable: VendorFailure | undefined

  constructor(answer: AnswerReader) {
    this.#answer = answer
    this.#events = sseReader(({ data }) => this.#read(data))
  }

  get isComplete(): boolean {
    return this.#answer.isComplete
  }

  get failure(): VendorFailure | undefined {
    return this.#unreadable ?? this.#answer.failure
  }

  get usage(): Usage | undefined {
    return this.#answer.usage
  }

  push(chunk: Uint8Array): void {
    if (this.failure === undefined) this.#events.push(this.#tail.push(chunk))
  }

  end(): void {
    if (this.failure !== undefined) return
    this.#events.end()
    const tail = this.#tail.end()
    if (tail !== undefined) this.#read(tail)
  }

  #read(data: string): void {
    // Proxies for several dialects add OpenAI's end mark to every stream.
    if (this.failure !== undefined || data === '' || data === '[DONE]') return
    const response = parseAnswerJson(data, 'args')
    if (response === undefined) this.#unreadable = invalidResponse('the vendor sent an event that is not JSON')
    else this.#answer.read(response)
  }
}
