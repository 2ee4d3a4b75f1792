/** Number of bytes that may wait in the stream before the writer must stop; about a socket's buffer. */
const HIGH_WATER_MARK_BYTES = 64 * 1024

/** Signals of the reader to the writer. */
export interface ResponseBodyListeners {
  /** Called when there is room again after `push` returned false. */
  readonly onPull: () => void
  /** Called when the reader cancels the stream. */
  readonly onCancel: () => void
}

/** `ReadableStream` for a writer that pushes. Passes the reader's backpressure on to the writer. */
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

  /** Adds bytes. Returns false if the writer must wait for `onPull`. */
  push(bytes: Uint8Array): boolean {
    if (this.#closed || bytes.byteLength === 0) return !this.#isFull
    this.#controller.enqueue(bytes)
    this.#isFull = (this.#controller.desiredSize ?? 0) <= 0
    return !this.#isFull
  }

  /** Ends the stream after its buffered bytes. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#controller.close()
  }

  /** Ends the stream with an error and drops its buffered bytes. */
  fail(reason: unknown): void {
    if (this.#closed) return
    this.#closed = true
    this.#controller.error(reason)
  }
}
