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

/** A multiple of 3, so that only the last chunk is padded. */
const PIECE_BYTES = 48 * 1024

/** Encodes chunks as one base64 text in chunks of up to 64 KiB, without joining the input. */
export function base64Chunks(chunks: readonly Uint8Array[]): Buffer[] {
  const encoded: Buffer[] = []
  let rest: Uint8Array = new Uint8Array(0)
  const add = (bytes: Uint8Array): void => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
    encoded.push(Buffer.from(text, 'latin1'))
  }
  for (const chunk of chunks) {
    let position = 0
    if (rest.byteLength > 0) {
      position = Math.min(chunk.byteLength, 3 - rest.byteLength)
      rest = Buffer.concat([rest, chunk.subarray(0, position)])
      if (rest.byteLength < 3) continue
      add(rest)
      rest = rest.subarray(3)
    }
    const whole = position + Math.floor((chunk.byteLength - position) / 3) * 3
    for (; position < whole; position += PIECE_BYTES)
      add(chunk.subarray(position, Math.min(whole, position + PIECE_BYTES)))
    rest = chunk.subarray(whole)
  }
  if (rest.byteLength > 0) add(rest)
  return encoded
}
