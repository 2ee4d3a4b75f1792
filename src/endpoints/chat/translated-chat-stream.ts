import type { Usage } from '../../core/usage.ts'
import { TranslatedStream } from '../translated-stream.ts'
import type { ChatChunkWriter } from './chat-chunk-writer.ts'
import type { ChatStreamDecoder } from './chat-stream-writer.ts'

/** Joins a vendor's decoder and OpenAI's chunk writer into a stream of bytes for a chat caller. */
export class TranslatedChatStream extends TranslatedStream {
  readonly #chunks: ChatChunkWriter
  readonly #includeUsage: boolean
  readonly #costOf: ((usage: Usage) => string | undefined) | undefined

  constructor(options: {
    readonly decoder: ChatStreamDecoder
    readonly writer: ChatChunkWriter
    readonly includeUsage: boolean
    /** What so much usage costs, in decimal dollars. */
    readonly costOf?: ((usage: Usage) => string | undefined) | undefined
  }) {
    super(options.decoder, options.writer)
    this.#chunks = options.writer
    this.#includeUsage = options.includeUsage
    this.#costOf = options.costOf
  }

  protected override take(): string {
    return this.#chunks.take()
  }

  protected override finish(): void {
    const usage = this.#includeUsage ? this.decoder.usage : undefined
    this.#chunks.done(usage, usage === undefined ? undefined : this.#costOf?.(usage))
  }
}
