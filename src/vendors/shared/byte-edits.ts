import { Buffer } from 'node:buffer'

/** Replacements of spans in one piece of bytes, collected in order and carried out in a single copy. Reusable. */
export class ByteEdits {
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  readonly #replacements: (Uint8Array | undefined)[] = []
  #count = 0
  #growth = 0

  /** Begins anew, whatever was noted before. */
  clear(): void {
    this.#count = 0
    this.#growth = 0
  }

  /** Notes that `[start, end)` becomes `replacement`, or nothing. Spans must come in order and not overlap. */
  replace(start: number, end: number, replacement: Uint8Array | undefined): void {
    this.#starts[this.#count] = start
    this.#ends[this.#count] = end
    this.#replacements[this.#count] = replacement
    this.#count += 1
    this.#growth += (replacement === undefined ? 0 : replacement.length) - (end - start)
  }

  /** Gives the first `length` bytes with all replacements made, and forgets them. Without any, the very same bytes. */
  apply(bytes: Buffer, length: number): Buffer {
    if (this.#count === 0) return length === bytes.length ? bytes : bytes.subarray(0, length)
    const edited = Buffer.allocUnsafe(length + this.#growth)
    let read = 0
    let written = 0
    for (let edit = 0; edit < this.#count; edit++) {
      const start = this.#starts[edit] ?? 0
      written += bytes.copy(edited, written, read, start)
      const replacement = this.#replacements[edit]
      this.#replacements[edit] = undefined
      if (replacement !== undefined) {
        edited.set(replacement, written)
        written += replacement.length
      }
      read = this.#ends[edit] ?? 0
    }
    bytes.copy(edited, written, read, length)
    this.clear()
    return edited
  }
}
