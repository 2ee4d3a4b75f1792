import { H264_PICTURES, type H264Picture } from './media-fixtures.ts'

/** A video to draw. */
export interface VideoDrawing {
  /** Width in pixels. With the height, one of the sizes that DashScope renders. */
  readonly width: number
  readonly height: number
  /** Duration in milliseconds, an integer from 100 to 600,000. */
  readonly durationMs: number
  /** Seed of the content. Equal seeds produce equal bytes. */
  readonly seed: string
}

const MIN_DURATION_MS = 100
const MAX_DURATION_MS = 600_000

/**
 * Draws an MP4 file (H.264, no sound) that any player opens: one blue frame for the whole duration. The seed is in a box that
 * players ignore. At most 1.3 KB. Throws RangeError if {@link isDrawable} is false.
 */
export function drawVideo(drawing: VideoDrawing): Uint8Array {
  const { width, height, durationMs, seed } = drawing
  const picture = pictureOf(drawing)
  if (picture === undefined) throw new RangeError(`cannot draw ${durationMs} ms of ${width} by ${height} pixels`)
  const slice = Buffer.from(picture.slice, 'base64')
  const film: Mp4Film = {
    width,
    height,
    durationMs,
    configuration: Buffer.from(picture.configuration, 'base64'),
    sample: Buffer.concat([words(slice.length), slice]),
  }
  const type = box('ftyp', Buffer.from('isom'), words(512), Buffer.from('isomiso2avc1mp41'))
  // The sample's offset depends on the length of the index, but not on its content.
  const sampleStart = type.length + movie(film, 0).length + 8
  return Buffer.concat([type, movie(film, sampleStart), box('mdat', film.sample), box('free', Buffer.from(seed))])
}

/** Whether there is a frame of the size, and the duration is within the bounds of {@link VideoDrawing}. */
export function isDrawable(drawing: Omit<VideoDrawing, 'seed'>): boolean {
  return pictureOf(drawing) !== undefined
}

function pictureOf({ width, height, durationMs }: Omit<VideoDrawing, 'seed'>): H264Picture | undefined {
  const isLongEnough = Number.isInteger(durationMs) && durationMs >= MIN_DURATION_MS && durationMs <= MAX_DURATION_MS
  return isLongEnough ? H264_PICTURES.get(`${width}x${height}`) : undefined
}

/** Content of the boxes of a file. */
interface Mp4Film {
  readonly width: number
  readonly height: number
  readonly durationMs: number
  readonly configuration: Buffer
  /** The frame, preceded by its length. */
  readonly sample: Buffer
}

/** Time units per second, for the film and its only track. */
const TIME_SCALE = 1000
// The unit matrix as numbers with 16 fractional bits, the last column with 30 (ISO/IEC 14496-12, 6.2.2).
const UNTURNED = words(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
const UNDEFINED_LANGUAGE = 0x55c4

/** Returns the index: one track of one sample (ISO/IEC 14496-12, 14496-14 and 14496-15). */
function movie({ width, height, durationMs, configuration, sample }: Mp4Film, sampleStart: number): Buffer {
  const noTimes = words(0, 0)
  // Normal speed and volume. The next track would be number 2.
  const showing = [words(0x10000), halves(0x0100, 0), words(0, 0), UNTURNED, Buffer.alloc(24), words(2)]
  const header = fullBox('mvhd', 0, noTimes, words(TIME_SCALE, durationMs), ...showing)
  // Enabled, in the film and in its preview.
  const place = [words(1, 0, durationMs, 0, 0, 0, 0), UNTURNED, words(width * 0x10000, height * 0x10000)]
  const trackHeader = fullBox('tkhd', 7, noTimes, ...place)
  const mediaHeader = fullBox('mdhd', 0, noTimes, words(TIME_SCALE, durationMs), halves(UNDEFINED_LANGUAGE, 0))
  const handler = fullBox('hdlr', 0, words(0), Buffer.from('vide'), words(0, 0, 0), Buffer.from('VideoHandler\0'))
  const sameFile = box('dinf', fullBox('dref', 0, words(1), fullBox('url ', 1)))
  // 72 dots per inch, one frame per sample, no name of the encoder, 24 bits of colour.
  const shape = [halves(width, height), words(0x480000, 0x480000, 0), halves(1), Buffer.alloc(32), halves(24, 0xffff)]
  const avc = [Buffer.alloc(6), halves(1), Buffer.alloc(16), ...shape, box('avcC', configuration)]
  const table = box(
    'stbl',
    fullBox('stsd', 0, words(1), box('avc1', ...avc)),
    fullBox('stts', 0, words(1, 1, durationMs)),
    fullBox('stsc', 0, words(1, 1, 1, 1)),
    fullBox('stsz', 0, words(sample.length, 1)),
    fullBox('stco', 0, words(1, sampleStart)),
  )
  const information = box('minf', fullBox('vmhd', 1, words(0, 0)), sameFile, table)
  return box('moov', header, box('trak', trackHeader, box('mdia', mediaHeader, handler, information)))
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([words(body.length + 8), Buffer.from(type, 'latin1'), body])
}

/** Returns a box that begins with its version, 0, and its flags. */
function fullBox(type: string, flags: number, ...content: readonly Buffer[]): Buffer {
  return box(type, words(flags), ...content)
}

function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, index) => void bytes.writeUInt32BE(value, index * 4))
  return bytes
}

function halves(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  values.forEach((value, index) => void bytes.writeUInt16BE(value, index * 2))
  return bytes
}
