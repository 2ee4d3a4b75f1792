import { Buffer } from 'node:buffer'

/** Bytes of a file, read on demand. */
export interface ByteSource {
  readonly byteLength: number
  /** Returns up to `length` bytes from `offset`: fewer at the end of the file, none after it. */
  read(offset: number, length: number): Buffer
}

/** File in the chunks in which it arrived. A read usually falls into one chunk and then needs no copy. */
export class ChunkedBytes implements ByteSource {
  readonly byteLength: number
  readonly #chunks: readonly Uint8Array[]
  /** Offset of each chunk. */
  readonly #starts: readonly number[]

  constructor(chunks: readonly Uint8Array[]) {
    const starts: number[] = []
    let byteLength = 0
    for (const chunk of chunks) {
      starts.push(byteLength)
      byteLength += chunk.byteLength
    }
    this.#chunks = chunks
    this.#starts = starts
    this.byteLength = byteLength
  }

  read(offset: number, length: number): Buffer {
    const end = Math.min(this.byteLength, offset + length)
    if (!(offset >= 0) || offset >= end) return Buffer.alloc(0)
    const pieces: Buffer[] = []
    for (let index = this.#chunkAt(offset), position = offset; position < end; index++) {
      const chunk = this.#chunks[index]!
      const from = position - this.#starts[index]!
      const piece = chunk.subarray(from, from + end - position)
      pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
      position += piece.byteLength
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }

  /** Index of the last chunk that begins at or before an offset and is not empty there. */
  #chunkAt(offset: number): number {
    let low = 0
    let high = this.#starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#starts[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}
