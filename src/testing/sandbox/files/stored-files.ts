import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import {
  fileReply,
  RefusedCall,
  type SandboxCall,
  type SandboxReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'
import { drawPicture, H264_PICTURES, type H264Picture, type PictureFormat, type PictureRequest } from './draw-image.ts'

/** Errors of an object store: XML (Alibaba Cloud OSS, HTTP 403 errors). */
export const STORAGE_ERRORS = vendorErrors(
  {
    403: ['You have no right to access this object.', 'AccessDenied'],
    404: ['The specified key does not exist.', 'NoSuchKey'],
    '4xx': ['We encountered an internal error. Please try again.', 'InternalError'],
    '5xx': ['We encountered an internal error. Please try again.', 'InternalError'],
  },
  (status, message, [code]) => storageError(status, message, code ?? ''),
  {
    quota: () => storageError(403, 'Current user is indebted.', 'InDebt'),
    badKey: () => STORAGE_ERRORS.status(403),
  },
)

function storageError(status: number, message: string, code: string): SandboxReply {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error>\n  <Code>${code}</Code>\n  <Message>${message}</Message>\n</Error>\n`
  return { ...fileReply('application/xml', body), status }
}

/** Makes operations of files, which need no credential. A link is rejected after its `Expires`. */
const fileOperation = vendorOperations({
  vendor: 'files',
  errors: STORAGE_ERRORS,
  access({ query }, nowMs) {
    const expires = Number(new URLSearchParams(query).get('Expires') ?? Number.POSITIVE_INFINITY)
    if (!(expires * 1000 >= nowMs)) throw new RefusedCall(STORAGE_ERRORS.status(403, 'Request has expired.'))
  },
})

/** Lifetime of a link (Model Studio: results are kept for 24 hours). */
export const LINK_LIFE_MS = 24 * 60 * 60 * 1000

/**
 * Creates a link to a file at the origin of the call, signed and limited in time like an object store's. A call in process has no
 * origin: only the same transport can fetch its link.
 * @param options `madeMs`: start of its 24 hours, in Unix milliseconds. `processOrigin`: origin in links of calls in
 *   process. Default `https://files.example`.
 */
function signedLink(
  { headers }: Pick<SandboxCall, 'headers'>,
  path: string,
  { madeMs, processOrigin = 'https://files.example' }: { readonly madeMs: number; readonly processOrigin?: string },
): string {
  const host = headers['host']
  const origin = host === undefined ? processOrigin : `http://${host}`
  const expires = Math.floor((madeMs + LINK_LIFE_MS) / 1000)
  const signature = createHash('sha256').update(`${path} ${expires}`).digest('base64url').slice(0, 27)
  return `${origin}${path}?Expires=${expires}&OSSAccessKeyId=sandbox&Signature=${signature}`
}

/** No stand-in links to a larger image, and larger ones take long to draw. */
const MAX_SIDE = 4096

const PICTURE_PATH = /^\/sandbox-files\/([\w.~-]{1,100})-([1-9]\d{0,4})x([1-9]\d{0,4})\.(png|jpeg|webp)$/

/**
 * Files that the stand-ins' answers link to: `GET /sandbox-files/<seed>-<width>x<height>.<format>`. The image is drawn on demand,
 * so nothing is stored.
 */
export const PICTURE_FILES = fileOperation({
  operation: 'picture',
  get: PICTURE_PATH,
  when: ({ path }) => imageRequestOf(path) !== undefined,
  answer({ path }) {
    const picture = imageRequestOf(path)!
    return fileReply(`image/${picture.format}`, drawPicture(picture))
  },
})

/** Creates a {@link signedLink} to an image. The seed must have at most 100 letters, digits, `_`, `.`, `~` and `-`. */
export function pictureLink(call: Pick<SandboxCall, 'headers'>, picture: PictureRequest, nowMs: number): string {
  const path = `/sandbox-files/${picture.seed}-${picture.width}x${picture.height}.${picture.format}`
  return signedLink(call, path, { madeMs: nowMs })
}

function imageRequestOf(path: string): PictureRequest | undefined {
  const [, seed = '', width, height, format] = PICTURE_PATH.exec(path) ?? []
  const sides = { width: Number(width), height: Number(height) }
  if (!(sides.width <= MAX_SIDE && sides.height <= MAX_SIDE)) return undefined
  return { ...sides, seed, format: format as PictureFormat }
}

const VIDEO_PATH = /^\/sandbox-files\/([\w.~-]{1,100})-([1-9]\d{0,4})x([1-9]\d{0,4})-([1-9]\d{0,6})ms\.mp4$/

/**
 * Videos that the stand-ins' answers link to: `GET /sandbox-files/<seed>-<width>x<height>-<duration>ms.mp4`. The video is drawn on
 * demand, so nothing is stored. A single byte range is supported (RFC 9110, 14.2); a list of ranges gets the whole file.
 */
export const VIDEO_FILES = fileOperation({
  operation: 'video',
  get: VIDEO_PATH,
  when: ({ path }) => videoOf(path) !== undefined,
  answer: ({ path, headers }) => rangeReply(drawVideo(videoOf(path)!), headers['range']),
})

/**
 * Creates a {@link signedLink} to a video. The seed must have at most 100 letters, digits, `_`, `.`, `~` and `-`.
 * @param madeMs Start of the link's 24 hours, in Unix milliseconds.
 */
export function videoLink(call: Pick<SandboxCall, 'headers'>, video: VideoDrawing, madeMs: number): string {
  const path = `/sandbox-files/${video.seed}-${video.width}x${video.height}-${video.durationMs}ms.mp4`
  return signedLink(call, path, { madeMs })
}

function videoOf(path: string): VideoDrawing | undefined {
  const [, seed = '', width, height, duration] = VIDEO_PATH.exec(path) ?? []
  const video = { seed, width: Number(width), height: Number(height), durationMs: Number(duration) }
  return encodedFrameOf(video) === undefined ? undefined : video
}

function rangeReply(bytes: Uint8Array, range: string | undefined): SandboxReply {
  const acceptsRanges = ['accept-ranges', 'bytes']
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(range ?? '') ?? []
  if (from === '' && to === '') return fileReply('video/mp4', bytes, acceptsRanges)
  // A range without a start counts bytes from the end.
  const start = from === '' ? Math.max(bytes.length - Number(to), 0) : Number(from)
  const end = from === '' || to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1)
  // An end before the start makes the header invalid, so it is ignored.
  if (from !== '' && to !== '' && Number(to) < start) return fileReply('video/mp4', bytes, acceptsRanges)
  if (start > end) {
    const refusal = STORAGE_ERRORS.status(416, 'The requested range is not satisfiable.')
    return { ...refusal, headers: [...refusal.headers, 'content-range', `bytes */${bytes.length}`] }
  }
  const place = ['content-range', `bytes ${start}-${end}/${bytes.length}`]
  return { ...fileReply('video/mp4', bytes.subarray(start, end + 1), [...acceptsRanges, ...place]), status: 206 }
}

/** Audio that the stand-ins' answers link to. The path contains the text itself, in base64url, so nothing is stored. */
export const SOUND_FILES = fileOperation({
  operation: 'sound',
  get: /^\/sandbox-files\/speech-([\w-]{1,6000})\.wav$/,
  answer: (_call, _context, _request, [text = '']) =>
    fileReply('audio/wav', wavFile(drawSound(Buffer.from(text, 'base64url').toString('utf8')))),
})

/** Returns a link to the audio of a text at the origin of the call, with plain http as the vendor writes it. */
export function soundLink(call: Pick<SandboxCall, 'headers'>, text: string, nowMs: number): string {
  const path = `/sandbox-files/speech-${Buffer.from(text).toString('base64url')}.wav`
  return signedLink(call, path, { madeMs: nowMs, processOrigin: 'http://files.example' })
}

/** Returns a whole WAV file, with its length in its header. */
export function wavFile(samples: Buffer): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(36 + samples.length, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SOUND_SAMPLE_RATE, 24)
  header.writeUInt32LE(SOUND_SAMPLE_RATE * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(samples.length, 40)
  return Buffer.concat([header, samples])
}

/** Samples per second of the stand-ins' audio: 16 bits, little-endian, mono. */
const SOUND_SAMPLE_RATE = 24_000

/** Duration of one character, in milliseconds. */
export const CHARACTER_MS = 60

/** Bytes of the audio of one character. */
const CHARACTER_BYTES = (SOUND_SAMPLE_RATE / 1000) * CHARACTER_MS * 2

const LOUDNESS = 8_000
const LOWEST_HERTZ = 180
const SEMITONES = 36

/** Returns the audio of one character: a tone with fades, so that nothing clicks, or silence for white space. */
export function drawCharacter(character: string): Buffer {
  const sound = Buffer.alloc(CHARACTER_BYTES)
  if (character.trim() === '') return sound
  const hertz = LOWEST_HERTZ * 2 ** (((character.codePointAt(0) ?? 0) % SEMITONES) / 12)
  const samples = CHARACTER_BYTES / 2
  for (let index = 0; index < samples; index++) {
    const swell = Math.sin((Math.PI * index) / samples)
    const wave = Math.sin((2 * Math.PI * hertz * index) / SOUND_SAMPLE_RATE)
    sound.writeInt16LE(Math.round(LOUDNESS * swell * wave), 2 * index)
  }
  return sound
}

/** Returns the audio of a text, character by character, so that joined texts equal joined audio. */
export function drawSound(text: string): Buffer {
  return Buffer.concat(Array.from(text, drawCharacter))
}

/** A video to draw. */
interface VideoDrawing {
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
 * players ignore. At most 1.3 KB. Throws RangeError for another size or duration.
 */
export function drawVideo(drawing: VideoDrawing): Uint8Array {
  const { width, height, durationMs, seed } = drawing
  const picture = encodedFrameOf(drawing)
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

function encodedFrameOf({ width, height, durationMs }: Omit<VideoDrawing, 'seed'>): H264Picture | undefined {
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
const IDENTITY_MATRIX = words(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
const UNDEFINED_LANGUAGE = 0x55c4

/** Returns the index: one track of one sample (ISO/IEC 14496-12, 14496-14 and 14496-15). */
function movie({ width, height, durationMs, configuration, sample }: Mp4Film, sampleStart: number): Buffer {
  const noTimes = words(0, 0)
  // Normal speed and volume. The next track would be number 2.
  const showing = [words(0x10000), halves(0x0100, 0), words(0, 0), IDENTITY_MATRIX, Buffer.alloc(24), words(2)]
  const header = fullBox('mvhd', 0, noTimes, words(TIME_SCALE, durationMs), ...showing)
  // Enabled, in the film and in its preview.
  const place = [words(1, 0, durationMs, 0, 0, 0, 0), IDENTITY_MATRIX, words(width * 0x10000, height * 0x10000)]
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
