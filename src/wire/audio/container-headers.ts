import { Buffer } from 'node:buffer'

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

// Ids of elements (RFC 9559).
const SEGMENT = 0x18538067
const INFO = 0x1549a966
const TIMESTAMP_SCALE = 0x2ad7b1
const DURATION = 0x4489
const CLUSTER = 0x1f43b675
const TIMESTAMP = 0xe7
const SIMPLE_BLOCK = 0xa3
const BLOCK_GROUP = 0xa0
const BLOCK = 0xa1

/** Elements whose children are read. Their length is irrelevant, because the children follow directly. */
const PARENTS: ReadonlySet<number> = new Set([SEGMENT, INFO, CLUSTER, BLOCK_GROUP])

/** Maximum number of elements read. Browsers write a block per 20 to 60 ms, so this is an hour or more. */
const MAX_ELEMENTS = 200_000
/** Size of one read, for elements that are close together. */
const WINDOW_BYTES = 64 * 1024
const NANOSECONDS_PER_SECOND = 1e9
const USUAL_SCALE = 1_000_000

/**
 * Returns the length of a WebM file in seconds: its duration, or the time of its last block if it has none, as in recordings of
 * browsers. Blocks are skipped, not read.
 */
export function webmSeconds(bytes: ByteSource): number | undefined {
  const window = new Window(bytes)
  let scale = USUAL_SCALE
  let duration = 0
  let clusterTime = 0
  let lastTime = -1
  let previous = -1
  let position = 0
  let count = 0
  for (; count < MAX_ELEMENTS && position < bytes.byteLength; count++) {
    const element = elementAt(window, position)
    if (element === undefined) break
    const { id, content, length } = element
    if (id === CLUSTER && duration > 0) break
    if (id === TIMESTAMP_SCALE) scale = integerAt(window, content, length) || USUAL_SCALE
    if (id === DURATION) duration = floatAt(window, content, length)
    if (id === TIMESTAMP) clusterTime = integerAt(window, content, length)
    if (id === SIMPLE_BLOCK || id === BLOCK) {
      const time = clusterTime + blockTime(window, content)
      if (time > lastTime) {
        previous = lastTime
        lastTime = time
      }
    }
    if (PARENTS.has(id)) position = content
    // Only parents may have an unknown length. Other elements with an unknown length cannot be skipped.
    else if (length === undefined) break
    else position = content + length
  }
  if (duration > 0) return (duration * scale) / NANOSECONDS_PER_SECOND
  if (lastTime < 0) return undefined
  // The last block is assumed to be as long as the one before it.
  const lastLength = previous < 0 ? 0 : lastTime - previous
  const seconds = ((lastTime + lastLength) * scale) / NANOSECONDS_PER_SECOND
  // The unread part is assumed to have the same byte rate as the part that was read.
  return count < MAX_ELEMENTS ? seconds : (seconds * bytes.byteLength) / position
}

interface Element {
  readonly id: number
  /** Offset of its content. */
  readonly content: number
  /** Length of its content, or `undefined` if it was unknown when the element was written. */
  readonly length: number | undefined
}

function elementAt(window: Window, position: number): Element | undefined {
  const head = window.read(position, 12)
  const idLength = head.length === 0 ? 0 : Math.clz32(head.readUInt8(0)) - 23
  if (idLength < 1 || idLength > 4 || head.length <= idLength) return undefined
  const id = head.readUIntBE(0, idLength)
  const first = head.readUInt8(idLength)
  const sizeLength = Math.clz32(first) - 23
  if (sizeLength > 8 || head.length < idLength + sizeLength) return undefined
  let length = first & (0xff >>> sizeLength)
  let isUnknown = length === 0xff >>> sizeLength
  for (let index = 1; index < sizeLength; index++) {
    const byte = head.readUInt8(idLength + index)
    isUnknown &&= byte === 0xff
    length = length * 256 + byte
  }
  return { id, content: position + idLength + sizeLength, length: isUnknown ? undefined : length }
}

function integerAt(window: Window, position: number, length: number | undefined): number {
  if (length === undefined || length < 1 || length > 8) return 0
  let value = 0
  for (const byte of window.read(position, length)) value = value * 256 + byte
  return value
}

function floatAt(window: Window, position: number, length: number | undefined): number {
  const bytes = length === 4 || length === 8 ? window.read(position, length) : undefined
  if (bytes === undefined || bytes.length !== length) return 0
  const value = length === 4 ? bytes.readFloatBE(0) : bytes.readDoubleBE(0)
  return Number.isFinite(value) ? value : 0
}

/** Returns the time of a block within its cluster. The number of its track precedes it. */
function blockTime(window: Window, position: number): number {
  const head = window.read(position, 10)
  const trackLength = head.length === 0 ? 9 : Math.clz32(head.readUInt8(0)) - 23
  return trackLength + 2 <= head.length ? head.readInt16BE(trackLength) : 0
}

/** Reads small pieces that are close together from one larger read. */
class Window {
  readonly #bytes: ByteSource
  #start = 0
  #held: Buffer

  constructor(bytes: ByteSource) {
    this.#bytes = bytes
    this.#held = bytes.read(0, WINDOW_BYTES)
  }

  read(position: number, length: number): Buffer {
    const from = position - this.#start
    if (from >= 0 && from + length <= this.#held.length) return this.#held.subarray(from, from + length)
    this.#start = position
    this.#held = this.#bytes.read(position, WINDOW_BYTES)
    return this.#held.subarray(0, length)
  }
}

/** Bytes of a file, read on demand. */
export interface ByteSource {
  readonly byteLength: number
  /** Returns up to `length` bytes from `offset`: fewer at the end of the file, none after it. */
  read(offset: number, length: number): Buffer
}

/** File in the chunks in which it arrived. A read usually falls into one chunk and then needs no copy. */
export class ChunkedBytes implements ByteSource {
  readonly byteLength: number
  readonly #chunks: readonly Uint8Array[]
  /** Offset of each chunk. */
  readonly #starts: readonly number[]

  constructor(chunks: readonly Uint8Array[]) {
    const starts: number[] = []
    let byteLength = 0
    for (const chunk of chunks) {
      starts.push(byteLength)
      byteLength += chunk.byteLength
    }
    this.#chunks = chunks
    this.#starts = starts
    this.byteLength = byteLength
  }

  read(offset: number, length: number): Buffer {
    const end = Math.min(this.byteLength, offset + length)
    if (!(offset >= 0) || offset >= end) return Buffer.alloc(0)
    const pieces: Buffer[] = []
    for (let index = this.#chunkAt(offset), position = offset; position < end; index++) {
      const chunk = this.#chunks[index]!
      const from = position - this.#starts[index]!
      const piece = chunk.subarray(from, from + end - position)
      pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
      position += piece.byteLength
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }

  /** Index of the last chunk that begins at or before an offset and is not empty there. */
  #chunkAt(offset: number): number {
    let low = 0
    let high = this.#starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#starts[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}
