/** Gathers bits that come lowest first, as WebP packs them, into bytes. */
export class LowFirstBits {
  #bytes: Buffer = Buffer.alloc(1024)
  #length = 0
  #pending = 0
  #pendingBits = 0

  /** Adds the lowest `count` bits of `value`, 24 at most. */
  add(value: number, count: number): void {
    this.#pending |= value << this.#pendingBits
    this.#pendingBits += count
    while (this.#pendingBits >= 8) {
      this.#push(this.#pending & 0xff)
      this.#pending >>>= 8
      this.#pendingBits -= 8
    }
  }

  /** All bytes; the last one is filled with zeros. */
  finish(): Buffer {
    if (this.#pendingBits > 0) this.#push(this.#pending)
    return this.#bytes.subarray(0, this.#length)
  }

  #push(byte: number): void {
    this.#bytes = withRoom(this.#bytes, this.#length)
    this.#bytes[this.#length++] = byte
  }
}

/** Gathers bits that come highest first, as JPEG packs them, with a zero byte after each byte of ones. */
export class HighFirstBits {
  #bytes: Buffer = Buffer.alloc(1024)
  #length = 0
  #pending = 0
  #pendingBits = 0

  /** Adds the lowest `count` bits of `value`, 24 at most. */
  add(value: number, count: number): void {
    this.#pending = (this.#pending << count) | value
    this.#pendingBits += count
    while (this.#pendingBits >= 8) {
      this.#pendingBits -= 8
      this.#push((this.#pending >>> this.#pendingBits) & 0xff)
    }
    this.#pending &= (1 << this.#pendingBits) - 1
  }

  /** All bytes; the last one is filled with ones. */
  finish(): Buffer {
    if (this.#pendingBits > 0) this.add((1 << (8 - this.#pendingBits)) - 1, 8 - this.#pendingBits)
    return this.#bytes.subarray(0, this.#length)
  }

  #push(byte: number): void {
    this.#bytes = withRoom(this.#bytes, this.#length + 1)
    this.#bytes[this.#length++] = byte
    if (byte === 0xff) this.#bytes[this.#length++] = 0
  }
}

function withRoom(bytes: Buffer, index: number): Buffer {
  return index < bytes.length ? bytes : Buffer.concat([bytes, Buffer.alloc(bytes.length)])
}
