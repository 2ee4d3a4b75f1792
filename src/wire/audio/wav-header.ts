import type { ByteSource } from './byte-source.ts'

/** Maximum number of chunks read before the audio. Files have a handful. */
const MAX_CHUNKS = 64
/** Length field of a file that is still being written. */
const UNKNOWN_LENGTH = 0xffff_ffff

/**
 * Returns the length of a WAV file in seconds: size of the `data` chunk divided by the byte rate. If the chunk claims more than
 * the file contains, or its length was unknown, it ends with the file.
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
