import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import {
  fileReply,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  type VendorErrors,
} from '../sandbox-operation.ts'
import { drawPicture, type PictureFormat, type PictureRequest } from './draw-picture.ts'
import { drawVideo, isDrawable, type VideoDrawing } from './draw-video.ts'

const USUAL: Readonly<Record<number, readonly [code: string, message: string]>> = {
  403: ['AccessDenied', 'You have no right to access this object.'],
  404: ['NoSuchKey', 'The specified key does not exist.'],
}

/** Errors of an object store: XML (Alibaba Cloud OSS, HTTP 403 errors). */
export const STORAGE_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const [code, text] = USUAL[status] ?? ['InternalError', 'We encountered an internal error. Please try again.']
    const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
    return storageError(status, code, message ?? text, wait)
  },
  quota: () => storageError(403, 'InDebt', 'Current user is indebted.', []),
  badKey: () => storageError(403, 'AccessDenied', 'You have no right to access this object.', []),
  streamEvent: () => '',
}

function storageError(status: number, code: string, message: string, headers: readonly string[]): SandboxReply {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error>\n  <Code>${code}</Code>\n  <Message>${message}</Message>\n</Error>\n`
  return { status, headers: ['content-type', 'application/xml', ...headers], pieces: [body], streamed: false }
}

/** Lifetime of a link (Model Studio: results are kept for 24 hours). */
export const LINK_LIFE_MS = 24 * 60 * 60 * 1000

/**
 * Creates a link to a file at the origin of the call, signed and limited in time like an object store's. A call in process has no
 * origin: only the same transport can fetch its link.
 * @param options `madeMs`: start of its 24 hours, in Unix milliseconds. `processOrigin`: origin in links of calls in
 *   process. Default `https://files.example`.
 */
export function signedLink(
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

/** Whether a link has expired. A link without `Expires` never does. */
export function isLinkOver({ query }: Pick<SandboxCall, 'query'>, nowMs: number): boolean {
  const expires = Number(new URLSearchParams(query).get('Expires') ?? Number.POSITIVE_INFINITY)
  return !(expires * 1000 >= nowMs)
}

/** No stand-in links to a larger image, and larger ones take long to draw. */
const MAX_SIDE = 4096

const PICTURE_PATH = /^\/sandbox-files\/([\w.~-]{1,100})-([1-9]\d{0,4})x([1-9]\d{0,4})\.(png|jpeg|webp)$/

/**
 * Files that the stand-ins' answers link to: `GET /sandbox-files/<seed>-<width>x<height>.<format>`. The image is drawn on demand,
 * so nothing is stored. No credential is needed. A link is rejected after its `Expires`.
 */
export const PICTURE_FILES: SandboxOperation = {
  vendor: 'files',
  operation: 'picture',
  errors: STORAGE_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'GET' && pictureOf(path) !== undefined,
  promptText: () => '',
  answer(call, context) {
    if (isLinkOver(call, context.nowMs)) return STORAGE_ERRORS.status(403, 'Request has expired.')
    const picture = pictureOf(call.path)
    if (picture === undefined) return STORAGE_ERRORS.status(404)
    return fileReply(`image/${picture.format}`, drawPicture(picture))
  },
}

/** Creates a {@link signedLink} to an image. The seed must have at most 100 letters, digits, `_`, `.`, `~` and `-`. */
export function pictureLink(call: Pick<SandboxCall, 'headers'>, picture: PictureRequest, nowMs: number): string {
  const path = `/sandbox-files/${picture.seed}-${picture.width}x${picture.height}.${picture.format}`
  return signedLink(call, path, { madeMs: nowMs })
}

function pictureOf(path: string): PictureRequest | undefined {
  const [, seed = '', width, height, format] = PICTURE_PATH.exec(path) ?? []
  const sides = { width: Number(width), height: Number(height) }
  if (!(sides.width <= MAX_SIDE && sides.height <= MAX_SIDE)) return undefined
  return { ...sides, seed, format: format as PictureFormat }
}

const VIDEO_PATH = /^\/sandbox-files\/([\w.~-]{1,100})-([1-9]\d{0,4})x([1-9]\d{0,4})-([1-9]\d{0,6})ms\.mp4$/

/**
 * Videos that the stand-ins' answers link to: `GET /sandbox-files/<seed>-<width>x<height>-<duration>ms.mp4`. The video is drawn on
 * demand, so nothing is stored. A single byte range is supported (RFC 9110, 14.2); a list of ranges gets the whole file. No
 * credential is needed. A link is rejected after its `Expires`.
 */
export const VIDEO_FILES: SandboxOperation = {
  vendor: 'files',
  operation: 'video',
  errors: STORAGE_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'GET' && videoOf(path) !== undefined,
  promptText: () => '',
  answer(call, context) {
    if (isLinkOver(call, context.nowMs)) return STORAGE_ERRORS.status(403, 'Request has expired.')
    const video = videoOf(call.path)
    if (video === undefined) return STORAGE_ERRORS.status(404)
    return rangeReply(drawVideo(video), call.headers['range'])
  },
}

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
  return isDrawable(video) ? video : undefined
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

// The path contains the text itself, so nothing is stored.
const SOUND_PATH = /^\/sandbox-files\/speech-([\w-]{1,6000})\.wav$/

/** Audio that the stand-ins' answers link to: `GET /sandbox-files/speech-<text in base64url>.wav`. No credential is needed. */
export const SOUND_FILES: SandboxOperation = {
  vendor: 'files',
  operation: 'sound',
  errors: STORAGE_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'GET' && SOUND_PATH.test(path),
  promptText: () => '',
  answer(call, context) {
    if (isLinkOver(call, context.nowMs)) return STORAGE_ERRORS.status(403, 'Request has expired.')
    const text = Buffer.from(SOUND_PATH.exec(call.path)?.[1] ?? '', 'base64url').toString('utf8')
    return fileReply('audio/wav', wavFile(drawSound(text)))
  },
}

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
export const SOUND_SAMPLE_RATE = 24_000

/** Duration of one character, in milliseconds. */
export const CHARACTER_MS = 60

/** Bytes of the audio of one character. */
export const CHARACTER_BYTES = (SOUND_SAMPLE_RATE / 1000) * CHARACTER_MS * 2

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
