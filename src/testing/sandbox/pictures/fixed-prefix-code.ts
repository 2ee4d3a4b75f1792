import type { LowFirstBits } from './bit-writer.ts'

/** The order in which WebP lists the lengths of its code-length codes (RFC 9649, section 6.2.1). */
const LENGTH_ORDER = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]

/**
 * A prefix code of WebP lossless in which all symbols have the same length. Such a code must be full, so symbols that are
 * never written fill it up to a power of two.
 */
export class FixedPrefixCode {
  readonly #alphabetSize: number
  readonly #symbols: readonly number[]
  readonly #codes = new Map<number, number>()
  readonly #bits: number

  /** A code for `symbols` (repeats count once) of an alphabet of `alphabetSize` symbols. */
  constructor(alphabetSize: number, symbols: readonly number[]) {
    const used = new Set(symbols)
    this.#bits = Math.ceil(Math.log2(used.size))
    for (let filler = 0; used.size < 2 ** this.#bits; filler++) used.add(filler)
    this.#alphabetSize = alphabetSize
    this.#symbols = [...used].sort((a, b) => a - b)
    // Codes are read from their highest bit on, and bits are packed from the lowest on.
    for (const [index, symbol] of this.#symbols.entries()) this.#codes.set(symbol, reversed(index, this.#bits))
  }

  /** Writes one symbol. A code of one symbol takes no bits. */
  write(bits: LowFirstBits, symbol: number): void {
    bits.add(this.#codes.get(symbol) ?? 0, this.#bits)
  }

  /** Writes the code itself: lists of one or two symbols in the simple form, others as a length for each symbol. */
  describe(bits: LowFirstBits): void {
    if (this.#symbols.length <= 2 && this.#symbols.every((symbol) => symbol < 256)) {
      bits.add(1, 1)
      bits.add(this.#symbols.length - 1, 1)
      bits.add(1, 1)
      for (const symbol of this.#symbols) bits.add(symbol, 8)
      return
    }
    bits.add(0, 1)
    // Two lengths occur, none and the common one, so one bit tells them apart.
    bits.add(LENGTH_ORDER.length - 4, 4)
    for (const length of LENGTH_ORDER) bits.add(length === 0 || length === this.#bits ? 1 : 0, 3)
    // Every symbol of the alphabet gets its length.
    bits.add(0, 1)
    const used = new Set(this.#symbols)
    for (let symbol = 0; symbol < this.#alphabetSize; symbol++) bits.add(used.has(symbol) ? 1 : 0, 1)
  }
}

function reversed(value: number, bits: number): number {
  let result = 0
  for (let bit = 0; bit < bits; bit++) result |= ((value >> bit) & 1) << (bits - 1 - bit)
  return result
}
