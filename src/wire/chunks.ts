/** Joins the chunks of a body; a single chunk is not copied. */
export function joinChunks(chunks: readonly Uint8Array[]): Buffer {
  const only = chunks.length === 1 ? chunks[0] : undefined
  return only === undefined ? Buffer.concat(chunks) : asBuffer(only)
}

/** Returns a Buffer that shares the bytes. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Returns the number of bytes of chunks. */
export function byteLengthOf(chunks: readonly Uint8Array[]): number {
  let byteLength = 0
  for (const chunk of chunks) byteLength += chunk.byteLength
  return byteLength
}

/** Queue of bytes between a writer and a reader. Its size is not limited; the writer awaits `drained`. */
export class PieceQueue implements AsyncIterable<Uint8Array> {
  #pieces: Uint8Array[] = []
  #isEnded = false
  #failure: unknown
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined

  push(bytes: Uint8Array): void {
    this.#pieces.push(bytes)
    this.#wakeReader?.()
  }

  end(): void {
    this.#isEnded = true
    this.#wakeReader?.()
  }

  /** Ends the reading with an error. Without effect after the end. */
  fail(error: unknown): void {
    if (this.#isEnded) return
    this.#failure = error
    this.end()
  }

  /** Resolves when the reader has read all bytes. */
  async drained(): Promise<void> {
    while (this.#pieces.length > 0)
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve
      })
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      const [piece] = this.#pieces
      if (piece !== undefined) {
        yield piece
        // Removed only now, because the writer waits until its bytes are used.
        this.#pieces.shift()
        if (this.#pieces.length === 0) this.#wakeWriter?.()
        continue
      }
      if (this.#failure !== undefined) throw this.#failure
      if (this.#isEnded) return
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
  }
}
