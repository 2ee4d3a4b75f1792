import type { Buffer } from 'node:buffer'
import type { ByteSource } from './byte-source.ts'

/** Maximum number of boxes read per file. A fragment has about ten and lasts a second or two. */
const MAX_BOXES = 100_000

/** Box (ISO/IEC 14496-12, 4.2): start and end of its content. */
interface Box {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** Returns the length of an MP4 file in seconds: from its `moov` box, which may be the last one, or from its fragments. */
export function mp4Seconds(bytes: ByteSource): number | undefined {
  const reader = new BoxReader(bytes)
  let whole: number | undefined
  let timescale = 0
  let fragments = 0
  for (const box of reader.boxes(0, bytes.byteLength)) {
    if (box.type === 'moov') {
      const movie = movieOf(reader, box)
      whole = movie.seconds
      timescale = movie.timescale
    } else if (box.type === 'moof') fragments = Math.max(fragments, fragmentEnd(reader, box))
  }
  // Recorders write only the length of the first sample into the movie box; fragments contain the rest.
  const ofFragments = timescale > 0 ? fragments / timescale : 0
  return Math.max(whole ?? 0, ofFragments) || undefined
}

/** Reader of boxes that stops after {@link MAX_BOXES}. */
class BoxReader {
  readonly #bytes: ByteSource
  #left = MAX_BOXES

  constructor(bytes: ByteSource) {
    this.#bytes = bytes
  }

  read(offset: number, length: number): Buffer {
    return this.#bytes.read(offset, length)
  }

  *boxes(from: number, to: number): Generator<Box> {
    let position = from
    while (position + 8 <= to && this.#left-- > 0) {
      const head = this.#bytes.read(position, 16)
      if (head.length < 8) return
      let length = head.readUInt32BE(0)
      let headLength = 8
      if (length === 1) {
        if (head.length < 16) return
        length = Number(head.readBigUInt64BE(8))
        headLength = 16
      } else if (length === 0) length = to - position
      // A box that ends before its content begins would cause an endless loop.
      if (length < headLength) return
      const end = Math.min(to, position + length)
      yield { type: head.toString('latin1', 4, 8), start: position + headLength, end }
      position += length
    }
  }
}

interface Movie {
  /** Length of the longest track, or of the movie if no track has a length. */
  readonly seconds: number | undefined
  /** Time scale of the track whose fragments are measured. */
  readonly timescale: number
}

function movieOf(bytes: BoxReader, movie: Box): Movie {
  let ofMovie: number | undefined
  let timescale = 0
  let ofTracks = 0
  for (const box of bytes.boxes(movie.start, movie.end)) {
    if (box.type === 'mvhd') ofMovie = timeIn(bytes.read(box.start, 32))?.seconds
    if (box.type !== 'trak') continue
    for (const inner of bytes.boxes(box.start, box.end)) {
      if (inner.type !== 'mdia') continue
      const track = trackOf(bytes, inner)
      if (!track.isSound) continue
      ofTracks = Math.max(ofTracks, track.seconds)
      timescale = track.timescale
    }
  }
  return { seconds: ofTracks > 0 ? ofTracks : ofMovie, timescale }
}

function trackOf(
  bytes: BoxReader,
  media: Box,
): { readonly isSound: boolean; readonly seconds: number; readonly timescale: number } {
  let isSound = false
  let seconds = 0
  let timescale = 0
  for (const box of bytes.boxes(media.start, media.end)) {
    if (box.type === 'hdlr') isSound = bytes.read(box.start, 12).toString('latin1', 8, 12) === 'soun'
    if (box.type !== 'mdhd') continue
    const time = timeIn(bytes.read(box.start, 32))
    seconds = time?.seconds ?? 0
    timescale = time?.timescale ?? 0
  }
  return { isSound, seconds, timescale }
}

/** Reads time scale and duration of `mvhd` and `mdhd`, which store both at the same offsets. */
function timeIn(content: Buffer): { readonly timescale: number; readonly seconds: number } | undefined {
  const isLong = content.length > 0 && content.readUInt8(0) === 1
  if (content.length < (isLong ? 32 : 20)) return undefined
  const timescale = content.readUInt32BE(isLong ? 20 : 12)
  const duration = isLong ? Number(content.readBigUInt64BE(24)) : content.readUInt32BE(16)
  const isUnknown = !isLong && duration === 0xffff_ffff
  return timescale === 0 ? undefined : { timescale, seconds: isUnknown ? 0 : duration / timescale }
}

/** Returns the end of a fragment in units of its track, from its start time and the lengths of its samples. */
function fragmentEnd(bytes: BoxReader, fragment: Box): number {
  let end = 0
  for (const box of bytes.boxes(fragment.start, fragment.end)) {
    if (box.type !== 'traf') continue
    let base = 0
    let usual = 0
    let length = 0
    for (const inner of bytes.boxes(box.start, box.end)) {
      const content = bytes.read(inner.start, 32)
      if (inner.type === 'tfdt' && content.length >= 12)
        base = content.readUInt8(0) === 1 ? Number(content.readBigUInt64BE(4)) : content.readUInt32BE(4)
      if (inner.type === 'tfhd') usual = usualDuration(content)
      if (inner.type === 'trun') length += runDuration(bytes, inner, usual)
    }
    end = Math.max(end, base + length)
  }
  return end
}

/** Default duration of samples without a duration of their own (ISO/IEC 14496-12, 8.8.7). */
function usualDuration(content: Buffer): number {
  if (content.length < 8) return 0
  const flags = content.readUIntBE(1, 3)
  if ((flags & 0x08) === 0) return 0
  const position = 8 + ((flags & 0x01) === 0 ? 0 : 8) + ((flags & 0x02) === 0 ? 0 : 4)
  return position + 4 <= content.length ? content.readUInt32BE(position) : 0
}

/** Maximum number of samples read per run. */
const MAX_SAMPLES = 4096

function runDuration(bytes: BoxReader, run: Box, usual: number): number {
  const head = bytes.read(run.start, 8)
  if (head.length < 8) return 0
  const flags = head.readUIntBE(1, 3)
  const count = head.readUInt32BE(4)
  if ((flags & 0x100) === 0) return count * usual
  const entry = [0x100, 0x200, 0x400, 0x800].filter((flag) => (flags & flag) !== 0).length * 4
  const start = run.start + 8 + ((flags & 0x01) === 0 ? 0 : 4) + ((flags & 0x04) === 0 ? 0 : 4)
  const entries = bytes.read(start, Math.min(count * entry, MAX_SAMPLES * entry, Math.max(0, run.end - start)))
  let sum = 0
  for (let position = 0; position + entry <= entries.length; position += entry) sum += entries.readUInt32BE(position)
  return sum
}
