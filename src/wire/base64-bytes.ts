import { Buffer } from 'node:buffer'

/** Bytes given as base64, decoded on demand. */
export class Base64Bytes {
  /** Number of bytes that the text encodes. Line breaks in it count as data. */
  readonly byteLength: number
  readonly #text: string

  /** @param text Standard or URL-safe base64, with or without padding. */
  constructor(text: string) {
    this.#text = text
    const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
    this.byteLength = Math.max(0, Math.floor((text.length * 3) / 4) - padding)
  }

  /** Returns up to `length` bytes from `offset`: fewer at the end, none after it. */
  read(offset: number, length: number): Buffer {
    const group = Math.floor(offset / 3)
    const skipped = offset - group * 3
    const groups = Math.ceil((skipped + length) / 3)
    const decoded = Buffer.from(this.#text.slice(group * 4, (group + groups) * 4), 'base64')
    return decoded.subarray(skipped, skipped + length)
  }
}
