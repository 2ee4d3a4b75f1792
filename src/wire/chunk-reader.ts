/** Random access to bytes that are in pieces, without joining them. Reads forward are fastest. */
export class ChunkReader {
  readonly #chunks: readonly Uint8Array[]
  // The piece of the last read and the offset at which it begins.
  #index = 0
  #start = 0

  constructor(chunks: readonly Uint8Array[]) {
    this.#chunks = chunks
  }

  /** A copy of `length` bytes from `offset` on; undefined when there are not as many. Meant for a few bytes at a time. */
  read(offset: number, length: number): Buffer | undefined {
    if (offset < this.#start) {
      this.#index = 0
      this.#start = 0
    }
    this.#moveTo(offset)
    const bytes = Buffer.alloc(length)
    let filled = 0
    let index = this.#index
    let from = offset - this.#start
    while (filled < length) {
      const chunk = this.#chunks[index]
      if (chunk === undefined) return undefined
      const piece = chunk.subarray(from, from + length - filled)
      bytes.set(piece, filled)
      filled += piece.byteLength
      index++
      from = 0
    }
    return bytes
  }

  #moveTo(offset: number): void {
    let chunk = this.#chunks[this.#index]
    while (chunk !== undefined && offset >= this.#start + chunk.byteLength) {
      this.#start += chunk.byteLength
      this.#index++
      chunk = this.#chunks[this.#index]
    }
  }
}
