import { asBuffer } from './json-bytes.ts'

/** A position in a list of chunks. */
export interface ChunkPlace {
  readonly chunk: number
  readonly offset: number
}

/** Reads a list of chunks as one run of bytes, without joining them. */
export class ChunkCursor {
  readonly #chunks: readonly Uint8Array[]
  #chunk = 0
  #offset = 0
  #previous: number | undefined

  constructor(chunks: readonly Uint8Array[]) {
    this.#chunks = chunks
  }

  /** Where the next byte stands. */
  get place(): ChunkPlace {
    return { chunk: this.#chunk, offset: this.#offset }
  }

  /** Steps over one byte and gives it; undefined at the end. */
  next(): number | undefined {
    for (;;) {
      const bytes = this.#chunks[this.#chunk]
      if (bytes === undefined) return undefined
      if (this.#offset < bytes.length) {
        this.#previous = bytes[this.#offset++]
        return this.#previous
      }
      this.#chunk += 1
      this.#offset = 0
    }
  }

  /** Steps behind the next `byte` and gives the byte in front of it; undefined when it does not come any more. */
  skipBehind(byte: number): number | undefined {
    for (;;) {
      const bytes = this.#chunks[this.#chunk]
      if (bytes === undefined) return undefined
      const found = asBuffer(bytes).indexOf(byte, this.#offset)
      if (found !== -1) {
        const before = found > this.#offset ? bytes[found - 1] : this.#previous
        this.#offset = found + 1
        this.#previous = byte
        return before
      }
      if (this.#offset < bytes.length) this.#previous = bytes[bytes.length - 1]
      this.#chunk += 1
      this.#offset = 0
    }
  }
}

/** The pieces of the chunks between two places, the byte at `to` excluded. */
export function chunksBetween(chunks: readonly Uint8Array[], from: ChunkPlace, to: ChunkPlace): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let chunk = from.chunk; chunk <= to.chunk; chunk++) {
    const bytes = chunks[chunk]
    if (bytes === undefined) break
    const piece = bytes.subarray(chunk === from.chunk ? from.offset : 0, chunk === to.chunk ? to.offset : bytes.length)
    if (piece.length > 0) pieces.push(piece)
  }
  return pieces
}
