import type { ByteSource } from './byte-source.ts'

/** Blocks of tags and pictures before the sound; files have a handful. */
const MAX_BLOCKS = 128
const STREAM_INFO = 0
/** A frame of sound that does not compress is stored as it is, with a small head. */
const LARGEST_GROWTH = 1.02

/**
 * Seconds of a FLAC file by STREAMINFO. No file has more bytes than its sound as samples, so one that claims to be shorter is as long
 * as that; a file that does not know its length is undefined.
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

/** Where the sound begins; the end of the file if that is not found. */
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
