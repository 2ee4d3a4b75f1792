import type { ByteSource } from './byte-source.ts'

/** Maximum number of blocks with tags and images before the audio. Files have a handful. */
const MAX_BLOCKS = 128
const STREAM_INFO = 0
/** A frame of audio that cannot be compressed is stored unchanged, with a small header. */
const LARGEST_GROWTH = 1.02

/**
 * Returns the length of a FLAC file in seconds, from STREAMINFO. A file never has more bytes than its uncompressed samples, so a
 * stated length that is too short is raised to that bound. Returns `undefined` if the file does not state its length.
 */
export function flacSeconds(bytes: ByteSource): number | undefined {
  const start = bytes.read(4, 38)
  if (start.length < 22 || (start.readUInt8(0) & 0x7f) !== STREAM_INFO) return undefined
  const rate = start.readUIntBE(14, 3) >>> 4
  const channels = ((start.readUInt8(16) >>> 1) & 7) + 1
  const bits = (((start.readUInt8(16) & 1) << 4) | (start.readUInt8(17) >>> 4)) + 1
  const samples = (start.readUInt8(17) & 0x0f) * 2 ** 32 + start.readUInt32BE(18)
  if (rate === 0 || samples === 0) return undefined
  const soundBytes = bytes.byteLength - endOfBlocks(bytes)
  const fewest = soundBytes / (rate * channels * (bits / 8) * LARGEST_GROWTH)
  return Math.max(samples / rate, fewest)
}

/** Returns the offset of the audio, or the end of the file if the audio is not found. */
function endOfBlocks(bytes: ByteSource): number {
  let position = 4
  for (let count = 0; count < MAX_BLOCKS; count++) {
    const head = bytes.read(position, 4)
    if (head.length < 4) break
    position += 4 + head.readUIntBE(1, 3)
    if ((head.readUInt8(0) & 0x80) !== 0) return Math.min(position, bytes.byteLength)
  }
  return bytes.byteLength
}
