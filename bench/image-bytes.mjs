import { Buffer } from 'node:buffer'

/** Size of the images that are sent and received, in bytes. */
export const PICTURE_BYTES = 2 * 1_024 * 1_024

/** Signature and header of a PNG of 1024 × 1024 pixels; no reader looks further. */
const PNG_HEAD = Buffer.from('89504e470d0a1a0a0000000d4948445200000400000004000806000000', 'hex')

/** A file that begins like a PNG and continues like compressed data: with bytes of every value, equal in every run. */
export function pictureBytes(byteLength) {
  const words = new Uint32Array(Math.ceil(byteLength / 4))
  let state = 0x9e3779b9
  for (let index = 0; index < words.length; index++) {
    // Marsaglia, "Xorshift RNGs".
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[index] = state
  }
  const bytes = Buffer.from(words.buffer, 0, byteLength)
  PNG_HEAD.copy(bytes)
  return bytes
}
