/** Bytes that may wait in the stream before the writer is told to stop; about a socket's buffer. */
const HIGH_WATER_MARK_BYTES = 64 * 1024

/** What the reader reports to the writer. */
export interface ResponseBodyListeners {
  /** There is room again after `push` returned false. */
  readonly onPull: () => void
  /** The reader wants no more. */
  readonly onCancel: () => void
}

/** A `ReadableStream` for a writer that pushes; passes the reader's backpressure on to it. */
export class ResponseBody {
  readonly stream: ReadableStream<Uint8Array>
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #isFull = false
  #closed = false

  constructor(listeners: ResponseBodyListeners) {
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => {
          if (!this.#isFull) return
          this.#isFull = false
          listeners.onPull()
        },
        cancel: () => {
          this.#closed = true
          listeners.onCancel()
        },
      },
      { highWaterMark: HIGH_WATER_MARK_BYTES, size: (chunk) => chunk.byteLength },
    )
  }

  /** Adds bytes; false means: stop until `onPull`. */
  push(bytes: Uint8Array): boolean {
    if (this.#closed || bytes.byteLength === 0) return !this.#isFull
    this.#controller.enqueue(bytes)
    this.#isFull = (this.#controller.desiredSize ?? 0) <= 0
    return !this.#isFull
  }

  /** Ends the stream after the bytes that wait in it. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#controller.close()
  }

  /** Ends the stream with an error; the bytes that wait in it are dropped. */
  fail(reason: unknown): void {
    if (this.#closed) return
    this.#closed = true
    this.#controller.error(reason)
  }
}
