import type { Usage } from '../../core/usage.ts'
import { OversizeEventError } from '../../wire/sse.ts'
import type { AnswerStream, VendorFailure } from '../answer-stream.ts'
import type { ChatChunkWriter } from './chat-chunk-writer.ts'
import type { ChatStreamDecoder } from './chat-stream-writer.ts'

/** Joins a vendor's decoder and OpenAI's chunk writer into a stream of bytes for a chat caller. */
export class TranslatedChatStream implements AnswerStream {
  readonly #decoder: ChatStreamDecoder
  readonly #writer: ChatChunkWriter
  readonly #includeUsage: boolean
  readonly #costOf: ((usage: Usage) => string | undefined) | undefined
  #failure: VendorFailure | undefined
  #isDone = false

  constructor(options: {
    readonly decoder: ChatStreamDecoder
    readonly writer: ChatChunkWriter
    readonly includeUsage: boolean
    /** What so much usage costs, in decimal dollars. */
    readonly costOf?: ((usage: Usage) => string | undefined) | undefined
  }) {
    this.#decoder = options.decoder
    this.#writer = options.writer
    this.#includeUsage = options.includeUsage
    this.#costOf = options.costOf
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
    const usage = this.#includeUsage ? this.#decoder.usage : undefined
    this.#writer.done(usage, usage === undefined ? undefined : this.#costOf?.(usage))
    return (text ?? '') + this.#writer.take()
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
    const text = this.#writer.take()
    return text === '' ? undefined : text
  }
}

function unreadable(error: unknown): VendorFailure {
  const message = error instanceof OversizeEventError ? error.message : 'the vendor sent an event that cannot be read'
  return { kind: 'invalid_response', status: 0, message }
}
