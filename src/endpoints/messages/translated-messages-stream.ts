import type { ChatStreamDecoder } from '../chat/chat-stream-writer.ts'
import { TranslatedStream } from '../translated-stream.ts'
import type { MessagesStreamWriter } from './messages-stream-writer.ts'

/** Joins a vendor's chat decoder and the writer of Messages events into a stream of bytes for the caller. */
export class TranslatedMessagesStream extends TranslatedStream {
  readonly #events: MessagesStreamWriter

  constructor(decoder: ChatStreamDecoder, writer: MessagesStreamWriter) {
    super(decoder, writer)
    this.#events = writer
  }

  protected override take(): string {
    return this.#events.take(this.decoder.usage)
  }

  protected override finish(): void {
    this.#events.done(this.decoder.usage)
  }
}
