import { encodeH264, type H264Film, MACROBLOCK_SIDE, MAX_MACROBLOCKS } from '../videos/encode-h264.ts'
import { colourBands } from './draw-picture.ts'

/** A video to draw. */
export interface VideoDrawing {
  /** Pixels; even. */
  readonly width: number
  /** Pixels; even. At most 8192 macroblocks of 16 by 16 pixels in all: a picture of 1920 by 1080 is just smaller. */
  readonly height: number
  /** 34 (one picture) to 600,000. */
  readonly durationMs: number
  /** Equal seeds give equal bytes; the colours and the number of columns come from it. */
  readonly seed: string
}

const PICTURES_PER_SECOND = 30
const MAX_DURATION_MS = 600_000

/**
 * Draws an MP4 file (H.264, 30 pictures a second, no sound) that any player opens: columns in four colours that stand still.
 * 15 seconds of 1920 by 1080 pixels take 15 KB. Throws RangeError when {@link isDrawable} is false.
 */
export function drawVideo(drawing: VideoDrawing): Uint8Array {
  const { width, height, durationMs, seed } = drawing
  if (!isDrawable(drawing)) throw new RangeError(`cannot draw ${durationMs} ms of ${width} by ${height} pixels`)
  const pictureCount = Math.round((durationMs * PICTURES_PER_SECOND) / 1000)
  const film = encodeH264(colourBands(width, height, seed), pictureCount)
  return encodeMp4({ ...film, width, height, picturesPerSecond: PICTURES_PER_SECOND })
}

/** True when the sides and the duration are within the bounds of {@link VideoDrawing}. */
export function isDrawable({ width, height, durationMs }: Omit<VideoDrawing, 'seed'>): boolean {
  const sides = [width, height]
  if (!sides.every((side) => Number.isInteger(side) && side >= 2 && side % 2 === 0)) return false
  const [columns = 0, rows = 0] = sides.map((side) => Math.ceil(side / MACROBLOCK_SIDE))
  return columns * rows <= MAX_MACROBLOCKS && durationMs >= 34 && durationMs <= MAX_DURATION_MS
}

/** A film and how it is shown. */
export interface Mp4Film extends H264Film {
  /** Pixels. */
  readonly width: number
  /** Pixels. */
  readonly height: number
  /** A divisor of 600. */
  readonly picturesPerSecond: number
}

/** Units of time in a second, for the film and its only track. */
const TIME_SCALE = 600
const LENGTH_BYTES = 4
// The unit matrix as numbers with 16 bits after the point, the last column with 30 (ISO/IEC 14496-12, 6.2.2).
const UNTURNED = words(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
const UNDEFINED_LANGUAGE = 0x55c4

/** An MP4 file with one track of video and no sound; the index comes first (ISO/IEC 14496-12, 14496-14 and 14496-15). */
export function encodeMp4(film: Mp4Film): Uint8Array {
  const samples = film.pictures.map((picture) => Buffer.concat([words(picture.length), picture]))
  const type = box('ftyp', Buffer.from('isom'), words(512), Buffer.from('isomiso2avc1mp41'))
  const media = box('mdat', ...samples)
  // The place of the media depends on the length of the index, and that on nothing that is in it.
  const mediaStart = type.length + movie(film, samples, 0).length + 8
  return Buffer.concat([type, movie(film, samples, mediaStart), media])
}

function movie(film: Mp4Film, samples: readonly Buffer[], mediaStart: number): Buffer {
  const sampleUnits = TIME_SCALE / film.picturesPerSecond
  const units = samples.length * sampleUnits
  const noTimes = words(0, 0)
  // Normal speed and volume; the track that would be added next is number 2.
  const showing = [words(0x10000), halves(0x0100, 0), words(0, 0), UNTURNED, Buffer.alloc(24), words(2)]
  const header = fullBox('mvhd', 0, noTimes, words(TIME_SCALE, units), ...showing)
  const size = words(film.width * 0x10000, film.height * 0x10000)
  // Enabled, in the film and in its preview.
  const trackHeader = fullBox('tkhd', 7, noTimes, words(1, 0, units, 0, 0, 0, 0), UNTURNED, size)
  const mediaHeader = fullBox('mdhd', 0, noTimes, words(TIME_SCALE, units), halves(UNDEFINED_LANGUAGE, 0))
  const handler = fullBox('hdlr', 0, words(0), Buffer.from('vide'), words(0, 0, 0), Buffer.from('VideoHandler\0'))
  const sameFile = box('dinf', fullBox('dref', 0, words(1), fullBox('url ', 1)))
  const table = box(
    'stbl',
    fullBox('stsd', 0, words(1), sampleEntry(film)),
    fullBox('stts', 0, words(1, samples.length, sampleUnits)),
    fullBox('stss', 0, words(1, 1)),
    fullBox('stsc', 0, words(1, 1, samples.length, 1)),
    fullBox('stsz', 0, words(0, samples.length, ...samples.map((sample) => sample.length))),
    fullBox('stco', 0, words(1, mediaStart)),
  )
  const information = box('minf', fullBox('vmhd', 1, words(0, 0)), sameFile, table)
  const track = box('trak', trackHeader, box('mdia', mediaHeader, handler, information))
  return box('moov', header, track)
}

function sampleEntry({ width, height, sequenceParameters, pictureParameters }: Mp4Film): Buffer {
  const profile = sequenceParameters.subarray(1, 4)
  const configuration = box(
    'avcC',
    Buffer.from([1, ...profile, 0xfc | (LENGTH_BYTES - 1), 0xe0 | 1]),
    halves(sequenceParameters.length),
    sequenceParameters,
    Buffer.from([1]),
    halves(pictureParameters.length),
    pictureParameters,
  )
  // 72 dots an inch, one picture in a sample, no name of the encoder, 24 bits of colour.
  const shape = [halves(width, height), words(0x480000, 0x480000, 0), halves(1), Buffer.alloc(32), halves(24, 0xffff)]
  return box('avc1', Buffer.alloc(6), halves(1), Buffer.alloc(16), ...shape, configuration)
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([words(body.length + 8), Buffer.from(type, 'latin1'), body])
}

/** A box that begins with its version, 0, and its flags. */
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
