import type { Usage } from '../../core/usage.ts'
import { OversizeEventError } from '../../wire/sse.ts'
import type { StreamTransform, VendorFailure } from '../stream-transform.ts'
import type { ChatStreamDecoder } from './chat-stream-writer.ts'

/** Methods that a translated stream needs from the writer. */
interface StreamText {
  /** Whether something was written that a caller keeps. */
  readonly hasContent: boolean
  /** See {@link StreamTransform}. */
  readonly outputBytesSeen: number
  readonly hasTextEnded: boolean
}

/** Joins a vendor's chat decoder and a writer of events in a dialect into a stream of bytes for the caller. */
export abstract class TranslatedStream implements StreamTransform {
  protected readonly decoder: ChatStreamDecoder
  readonly #writer: StreamText
  #failure: VendorFailure | undefined
  #isDone = false

  constructor(decoder: ChatStreamDecoder, writer: StreamText) {
    this.decoder = decoder
    this.#writer = writer
  }

  /** Returns the whole events written since the last call. */
  protected abstract take(): string

  /** Writes the end of a complete answer. */
  protected abstract finish(): void

  push(chunk: Uint8Array): string | undefined {
    return this.failure === undefined ? this.#decode(chunk) : undefined
  }

  end(): string | undefined {
    if (this.failure !== undefined) return undefined
    const text = this.#decode(undefined)
    if (this.failure !== undefined || !this.decoder.isComplete || this.#isDone) return text
    this.#isDone = true
    this.finish()
    return (text ?? '') + this.take()
  }

  get takes(): ((mediaType: string) => boolean) | undefined {
    return this.decoder.takes
  }

  get hasContent(): boolean {
    return this.#writer.hasContent
  }

  /** Complete only after `end`, because usage may follow the vendor's last content. */
  get isComplete(): boolean {
    return this.#isDone
  }

  /** The writer returns complete events only. */
  get atBoundary(): boolean {
    return true
  }

  get failure(): VendorFailure | undefined {
    return this.#failure ?? this.decoder.failure
  }

  get usage(): Usage | undefined {
    return this.decoder.usage
  }

  get serviceTier(): string | undefined {
    return this.decoder.serviceTier
  }

  get outputBytesSeen(): number {
    return this.#writer.outputBytesSeen
  }

  get hasTextEnded(): boolean {
    return this.#writer.hasTextEnded
  }

  get hasRunningUsage(): boolean {
    return this.decoder.hasRunningUsage === true
  }

  get holdsNoBytes(): boolean {
    return this.decoder.holdsNoBytes === true
  }

  /** Decodes a chunk, or the end of the body if the chunk is `undefined`. */
  #decode(chunk: Uint8Array | undefined): string | undefined {
    try {
      if (chunk === undefined) this.decoder.end()
      else this.decoder.push(chunk)
    } catch (error) {
      this.#failure = unreadable(error)
    }
    const text = this.take()
    return text === '' ? undefined : text
  }
}

function unreadable(error: unknown): VendorFailure {
  const message = error instanceof OversizeEventError ? error.message : 'the vendor sent an event that cannot be read'
  return { kind: 'invalid_response', status: 0, message }
}
