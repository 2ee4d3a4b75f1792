import type { Buffer } from 'node:buffer'
import type { ByteSource } from './byte-source.ts'

/** Larger than any page, so that the last page begins within it. */
const WINDOW_BYTES = 128 * 1024
const PAGE_HEAD_BYTES = 27
/** Marks a page on which no packet ends (RFC 3533, section 6). */
const NO_POSITION = 0xffff_ffff_ffff_ffffn
/** Rate of Opus granule positions, independent of the recording rate (RFC 7845). */
const OPUS_RATE = 48_000

/** Returns the length of an Ogg file with Opus, Vorbis or FLAC in seconds, from the position of its last audio page. */
export function oggSeconds(bytes: ByteSource): number | undefined {
  const start = bytes.read(0, 512)
  if (start.length < PAGE_HEAD_BYTES + 1) return undefined
  const packet = start.subarray(PAGE_HEAD_BYTES + start.readUInt8(26))
  const codec = codecOf(packet)
  if (codec === undefined || codec.rate === 0) return undefined
  const position = lastPosition(bytes, start.readUInt32LE(14))
  return position === undefined ? undefined : Math.max(0, Number(position) - codec.skipped) / codec.rate
}

/** Returns the sample rate, and the number of samples at the beginning that are not played. */
function codecOf(packet: Buffer): { readonly rate: number; readonly skipped: number } | undefined {
  const mark = packet.toString('latin1', 0, 8)
  if (mark === 'OpusHead' && packet.length >= 12) return { rate: OPUS_RATE, skipped: packet.readUInt16LE(10) }
  if (mark.startsWith('\x01vorbis') && packet.length >= 16) return { rate: packet.readUInt32LE(12), skipped: 0 }
  // STREAMINFO follows a header of 13 bytes and the native mark with its own header of 4 bytes.
  if (mark.startsWith('\x7fFLAC') && packet.length >= 30) return { rate: packet.readUIntBE(27, 3) >>> 4, skipped: 0 }
  return undefined
}

/** Returns the position of the last page of a stream, if the end of the file contains a page with a position. */
function lastPosition(bytes: ByteSource, serial: number): bigint | undefined {
  const end = bytes.read(Math.max(0, bytes.byteLength - WINDOW_BYTES), WINDOW_BYTES)
  for (let page = end.lastIndexOf('OggS'); page !== -1; page = page === 0 ? -1 : end.lastIndexOf('OggS', page - 1)) {
    if (page + PAGE_HEAD_BYTES > end.length || end.readUInt32LE(page + 14) !== serial) continue
    const position = end.readBigUInt64LE(page + 6)
    if (position !== NO_POSITION && position >> 63n === 0n) return position
  }
  return undefined
}
