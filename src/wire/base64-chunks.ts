import { Buffer } from 'node:buffer'

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
