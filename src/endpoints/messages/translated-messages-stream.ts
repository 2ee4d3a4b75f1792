import type { Usage } from '../../core/usage.ts'
import { OversizeEventError } from '../../wire/sse.ts'
import type { AnswerStream, VendorFailure } from '../answer-stream.ts'
import type { ChatStreamDecoder } from '../chat/chat-stream-writer.ts'
import type { MessagesStreamWriter } from './messages-stream-writer.ts'

/** Joins a vendor's chat decoder and the writer of Messages events into a stream of bytes for the caller. */
export class TranslatedMessagesStream implements AnswerStream {
  readonly #decoder: ChatStreamDecoder
  readonly #writer: MessagesStreamWriter
  #failure: VendorFailure | undefined
  #isDone = false

  constructor(decoder: ChatStreamDecoder, writer: MessagesStreamWriter) {
    this.#decoder = decoder
    this.#writer = writer
  }

  push(chunk: Uint8Array): string | undefined {
    if (this.failure !== undefined) return undefined
    return this.#guarded(() => this.#decoder.push(chunk))
  }

  end(): string | undefined {
    if (this.failure !== undefined) return undefined
    const text = this.#guarded(() => this.#decoder.end())
    if (this.failure !== undefined || !this.#decoder.isComplete || this.#isDone) return text
    this.#isDone = true
    this.#writer.done(this.#decoder.usage)
    return (text ?? '') + this.#writer.take(this.#decoder.usage)
  }

  get hasContent(): boolean {
    return this.#writer.hasContent
  }

  /** Whole only after `end`: usage may still follow the vendor's last content. */
  get isComplete(): boolean {
    return this.#isDone
  }

  /** The writer gives whole events only. */
  get atBoundary(): boolean {
    return true
  }

  get failure(): VendorFailure | undefined {
    return this.#failure ?? this.#decoder.failure
  }

  get usage(): Usage | undefined {
    return this.#decoder.usage
  }

  get outputTokensSeen(): number {
    return this.#writer.outputTokensSeen
  }

  #guarded(read: () => void): string | undefined {
    try {
      read()
    } catch (error) {
      this.#failure = unreadable(error)
    }
    const text = this.#writer.take(this.#decoder.usage)
    return text === '' ? undefined : text
  }
}

function unreadable(error: unknown): VendorFailure {
  const message = error instanceof OversizeEventError ? error.message : 'the vendor sent an event that cannot be read'
  return { kind: 'invalid_response', status: 0, message }
}
