/** Gathers the bits of a unit of H.264, highest first, with the codes of ITU-T H.264, 9.1. */
export class H264Bits {
  readonly #bytes: number[] = []
  #pending = 0
  #pendingBits = 0

  /** Adds the lowest `count` bits of `value`, 16 at most. */
  add(value: number, count: number): this {
    this.#pending = (this.#pending << count) | value
    this.#pendingBits += count
    while (this.#pendingBits >= 8) {
      this.#pendingBits -= 8
      this.#bytes.push((this.#pending >>> this.#pendingBits) & 0xff)
    }
    this.#pending &= (1 << this.#pendingBits) - 1
    return this
  }

  /** Adds a whole number from 0 to 65,534 as `ue(v)`. */
  addUnsigned(value: number): this {
    const bits = 32 - Math.clz32(value + 1)
    return this.add(0, bits - 1).add(value + 1, bits)
  }

  /** Adds a whole number from -32,767 to 32,767 as `se(v)`. */
  addSigned(value: number): this {
    return this.addUnsigned(value > 0 ? 2 * value - 1 : -2 * value)
  }

  /**
   * The unit with its header byte and its stop bit. A 3 goes between two zero bytes and a byte below 4, so that nothing in it
   * looks like the start of another unit (ITU-T H.264, 7.4.1).
   */
  unit(header: number): Buffer {
    this.add(1, 1)
    if (this.#pendingBits > 0) this.add(0, 8 - this.#pendingBits)
    const escaped = [header]
    let zeros = 0
    for (const byte of this.#bytes) {
      if (zeros === 2 && byte < 4) {
        escaped.push(3)
        zeros = 0
      }
      escaped.push(byte)
      zeros = byte === 0 ? zeros + 1 : 0
    }
    return Buffer.from(escaped)
  }
}
