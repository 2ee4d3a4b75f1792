import { Buffer } from 'node:buffer'

/** Bytes of a stream, up to a maximum size. */
export class StreamRecording {
  readonly #maxBytes: number
  #chunks: Buffer[] | undefined = []
  #byteLength = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Recorded chunks, or `undefined` if there were too many bytes. */
  get chunks(): readonly Buffer[] | undefined {
    return this.#chunks
  }

  add(bytes: Uint8Array | string): void {
    if (this.#chunks === undefined) return
    const buffer =
      typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#byteLength += buffer.byteLength
    if (this.#byteLength > this.#maxBytes) this.#chunks = undefined
    else this.#chunks.push(buffer)
  }
}
