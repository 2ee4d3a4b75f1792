import type { ByteSource } from './byte-source.ts'

/** Chunks looked at before the sound; files have a handful. */
const MAX_CHUNKS = 64
/** What a file says of its length while it is still being written. */
const UNKNOWN_LENGTH = 0xffff_ffff

/**
 * Seconds of a WAV file: bytes of its `data` chunk by the bytes of a second. A chunk that claims more than the file holds, or was
 * written before its length was known, ends with the file.
 */
export function wavSeconds(bytes: ByteSource): number | undefined {
  let position = 12
  let bytesPerSecond = 0
  for (let count = 0; count < MAX_CHUNKS; count++) {
    const head = bytes.read(position, 24)
    if (head.length < 8) return undefined
    const id = head.toString('latin1', 0, 4)
    const length = head.readUInt32LE(4)
    if (id === 'fmt ' && head.length >= 24) bytesPerSecond = head.readUInt32LE(16)
    if (id === 'data') {
      const left = bytes.byteLength - position - 8
      const isUnknown = length === UNKNOWN_LENGTH || length === 0
      return bytesPerSecond === 0 ? undefined : (isUnknown ? left : Math.min(length, left)) / bytesPerSecond
    }
    // Chunks are padded to an even length.
    position += 8 + length + (length % 2)
  }
  return undefined
}
