import { Buffer } from 'node:buffer'
import type { ByteSink } from '../core/exchange.ts'
import type { TransportControl, TransportFailure, TransportHandler } from '../transport/transport.ts'
import { PieceQueue } from '../wire/chunks.ts'
import type { HeaderMap } from '../wire/headers.ts'

/** Thrown if a download gets no answer, or breaks off. */
export class DownloadError extends Error {
  readonly failure: TransportFailure

  constructor(failure: TransportFailure) {
    super(`${failure.phase} ${failure.kind}`, { cause: failure.error })
    this.failure = failure
  }
}

/** Beginning of the answer to a download. */
interface DownloadHead {
  readonly status: number
  readonly headers: HeaderMap
}

/** Answer whose body is read chunk by chunk. The connection is paused while a chunk is used. */
export class Download implements TransportHandler, AsyncIterable<Uint8Array> {
  /** Rejects with a {@link DownloadError} when the download gets no answer, breaks off or is aborted; never resolves. */
  readonly failed: Promise<never>
  readonly #head: Promise<DownloadHead>
  #resolve!: (head: DownloadHead) => void
  #reject!: (error: DownloadError) => void
  readonly #body = new PieceQueue()
  #unread = 0
  #control: TransportControl | undefined

  constructor() {
    this.#head = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.failed = new Promise((_resolve, reject) => {
      this.#reject = reject
    })
    // A reader of the body gets the failure, too.
    this.failed.catch(() => undefined)
  }

  /** Returns status and headers. Rejects as {@link failed} does. */
  head(): Promise<DownloadHead> {
    return Promise.race([this.#head, this.failed])
  }

  begin(control: TransportControl): void {
    this.#control = control
  }

  abort(): void {
    this.#control?.abort()
  }

  onHead(status: number, headers: HeaderMap): void {
    this.#resolve({ status, headers })
  }

  onData(chunk: Uint8Array): void {
    // A resumed connection may deliver an empty chunk. Pausing for it would repeat this endlessly.
    if (chunk.byteLength === 0) return
    this.#unread++
    // The network layer may reuse its buffer.
    this.#body.push(Uint8Array.from(chunk))
    this.#control?.pause()
  }

  onEnd(): void {
    this.#body.end()
  }

  onFailure(failure: TransportFailure): void {
    const error = new DownloadError(failure)
    this.#reject(error)
    this.#body.fail(error)
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for await (const chunk of this.#body) {
      yield chunk
      if (--this.#unread === 0) this.#control?.resume()
    }
  }
}

/**
 * Sends bytes at the caller's speed. An answer that breaks off does not look complete.
 * @param onClose Called if the caller disconnects.
 */
export async function sendPieces(
  sink: ByteSink,
  { status = 200, headers }: { readonly status?: number; readonly headers: readonly string[] },
  content: AsyncIterable<Uint8Array | string>,
  onClose: () => void = () => undefined,
): Promise<void> {
  let resume: (() => void) | undefined
  sink.onDrain(() => resume?.())
  sink.onClose(() => {
    onClose()
    resume?.()
  })
  try {
    sink.head(status, headers)
    for await (const piece of content) {
      if (sink.closed) return
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
      if (sink.write(bytes)) continue
      await new Promise<void>((resolve) => {
        resume = resolve
        if (sink.closed) resolve()
      })
    }
    sink.end()
  } catch (error) {
    sink.destroy()
    throw error
  }
}
