import { Buffer } from 'node:buffer'

/** The bytes of a stream, as long as they are not too many. */
export class StreamRecording {
  readonly #maxBytes: number
  #chunks: Buffer[] | undefined = []
  #byteLength = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Undefined: they were too many. */
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
