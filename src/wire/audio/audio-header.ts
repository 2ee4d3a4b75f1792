import type { Buffer } from 'node:buffer'
import { type ByteSource, mp4Seconds, webmSeconds } from './container-headers.ts'

/** Formats of audio files, recognized by their first bytes. `mpeg` is an MPEG program stream, whose length is not read. */
export type AudioFormat = 'wav' | 'flac' | 'mp4' | 'ogg' | 'mp3' | 'webm' | 'mpeg'

/** Format and length of an audio file, according to its headers. */
export interface AudioHeader {
  readonly format: AudioFormat
  /** Length in seconds, or `undefined` if the headers contain none or an impossible one. */
  readonly seconds: number | undefined
}

const READERS: Readonly<Record<AudioFormat, (bytes: ByteSource) => number | undefined>> = {
  wav: wavSeconds,
  flac: flacSeconds,
  mp4: mp4Seconds,
  ogg: oggSeconds,
  mp3: mp3Seconds,
  webm: webmSeconds,
  mpeg: () => undefined,
}

/** Minimum size of one second in bytes, in any of the formats: digital silence. */
const MIN_BYTES_PER_SECOND = 25

/**
 * Reads format and length of an audio file: WAV (RIFF), FLAC (RFC 9639), MP4 (ISO/IEC 14496-12, with `moov` anywhere), Ogg with
 * Opus or Vorbis (RFC 3533, RFC 7845), MP3 (ISO 11172-3, with Xing, VBRI or neither) and WebM (RFC 9559, with or without a
 * duration). Reads a limited number of bytes. Returns `undefined` for other files. Never throws.
 */
export function audioHeader(bytes: ByteSource): AudioHeader | undefined {
  const format = formatOf(bytes)
  if (format === undefined) return undefined
  const seconds = READERS[format](bytes)
  const isPossible = seconds !== undefined && seconds > 0 && seconds * MIN_BYTES_PER_SECOND <= bytes.byteLength
  return { format, seconds: isPossible ? seconds : undefined }
}

/** Returns the compressed format of audio that begins with these bytes, or `undefined` if none is recognized, as for raw samples. */
export function compressedFormat(start: Buffer): Exclude<AudioFormat, 'wav'> | undefined {
  const format = markedFormat(start)
  if (format === 'wav') return undefined
  return format ?? (beginsAsMp3(start) ? 'mp3' : undefined)
}

function formatOf(bytes: ByteSource): AudioFormat | undefined {
  return markedFormat(bytes.read(0, 12)) ?? (isMp3(bytes) ? 'mp3' : undefined)
}

/** Recognizes a format by marks at the beginning. */
function markedFormat(start: Buffer): Exclude<AudioFormat, 'mp3'> | undefined {
  const mark = text(start, 0, 4)
  if ((mark === 'RIFF' || mark === 'RF64') && text(start, 8, 12) === 'WAVE') return 'wav'
  if (mark === 'fLaC') return 'flac'
  if (mark === 'OggS') return 'ogg'
  if (MP4_FIRST_BOXES.has(text(start, 4, 8))) return 'mp4'
  if (start.length >= 4 && start.readUInt32BE(0) === EBML) return 'webm'
  if (start.length >= 4 && start.readUInt32BE(0) === MPEG_PACK) return 'mpeg'
  return undefined
}

const MP4_FIRST_BOXES: ReadonlySet<string> = new Set(['ftyp', 'styp', 'moov', 'mdat', 'free', 'skip', 'wide'])
const EBML = 0x1a45dfa3
const MPEG_PACK = 0x000001ba

function text(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('latin1', start, end)
}

/** Maximum number of blocks with tags and images before the audio. Files have a handful. */
const MAX_BLOCKS = 128
const STREAM_INFO = 0
/** A frame of audio that cannot be compressed is stored unchanged, with a small header. */
const LARGEST_GROWTH = 1.02

/**
 * Returns the length of a FLAC file in seconds, from STREAMINFO. A file never has more bytes than its uncompressed samples, so a
 * stated length that is too short is raised to that bound. Returns `undefined` if the file does not state its length.
 */
function flacSeconds(bytes: ByteSource): number | undefined {
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

/** Number of bytes read after the tags. They contain the first frames. */
const MP3_WINDOW_BYTES = 64 * 1024

// Kilobits per second by the index in the frame header (ISO 11172-3, ISO 13818-3): layer III, then layers II and I of MPEG-1.
const MPEG1_LAYER3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const MPEG1_LAYER2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
const MPEG2_LAYERS23 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const MPEG1_SAMPLE_RATES = [44_100, 48_000, 32_000]
/** Highest existing rate, plus some room for tags. */
const MAX_BYTES_PER_SECOND = 384_000 / 8
/** Number of frames that measure the rate of a file without a count: some seconds of audio. */
const MEASURED_FRAMES = 200

const HEADER_BYTES = 4

/** Whether a file is MPEG audio: tags followed by a frame, or frames from its first byte on. */
function isMp3(bytes: ByteSource): boolean {
  const start = bytes.read(0, 4)
  if (start.toString('latin1', 0, 3) === 'ID3') return true
  return firstFrame(bytes, 0) !== undefined
}

/**
 * Returns the length of an MP3 file in seconds. Uses the frame count that variable-rate encoders write into the first frame
 * (Xing, Info, VBRI), or the rate of the first frames. Ignores a count that is too small for the size of the file.
 */
function mp3Seconds(bytes: ByteSource): number | undefined {
  const tagBytes = tagBytesOf(bytes)
  const first = firstFrame(bytes, tagBytes)
  if (first === undefined) return undefined
  const { frame, window, position } = first
  const soundBytes = bytes.byteLength - tagBytes - position
  const frames = frameCount(window, position)
  if (frames !== undefined && frames > 0)
    return Math.max((frames * frame.samples) / frame.sampleRate, soundBytes / MAX_BYTES_PER_SECOND)
  const measured = measure(window, position)
  return (soundBytes / measured.bytes) * measured.seconds
}

/** Several tags may follow one another. */
function tagBytesOf(bytes: ByteSource): number {
  let position = 0
  for (let count = 0; count < 8; count++) {
    const head = bytes.read(position, 10)
    if (head.length < 10 || head.toString('latin1', 0, 3) !== 'ID3') break
    const hasFooter = (head.readUInt8(5) & 0x10) !== 0
    position += 10 + syncSafe(head, 6) + (hasFooter ? 10 : 0)
  }
  return position
}

interface FirstFrame {
  readonly frame: Mp3Frame
  readonly window: Buffer
  readonly position: number
}

/**
 * Returns the first frame followed by another one, or by the file's end. A header has only eleven fixed bits, which any data may
 * have.
 */
function firstFrame(bytes: ByteSource, from: number): FirstFrame | undefined {
  const window = bytes.read(from, MP3_WINDOW_BYTES)
  // Without tags, audio begins immediately, except for some padding.
  const last = from === 0 ? 4096 : window.length
  for (let position = window.indexOf(0xff); position !== -1; position = window.indexOf(0xff, position + 1)) {
    if (position > last) return undefined
    const frame = mp3Frame(window, position)
    if (frame === undefined) continue
    const next = position + frame.byteLength
    const isLast = from + next >= bytes.byteLength
    if (isLast || mp3Frame(window, next)?.sampleRate === frame.sampleRate) return { frame, window, position }
  }
  return undefined
}

/**
 * Whether the bytes begin with a tag, or consist of at least two consecutive frames. Random bytes match two headers with a
 * probability of two in a billion, and each additional header makes a match 75,000 times less likely.
 */
function beginsAsMp3(start: Buffer): boolean {
  if (start.toString('latin1', 0, 3) === 'ID3') return true
  const first = mp3Frame(start, 0)
  if (first === undefined) return false
  let position = first.byteLength
  if (position + HEADER_BYTES > start.length) return false
  while (position + HEADER_BYTES <= start.length) {
    const next = mp3Frame(start, position)
    if (next?.sampleRate !== first.sampleRate) return false
    position += next.byteLength
  }
  return true
}

/** Returns bytes and seconds of the first frames. */
function measure(window: Buffer, start: number): { readonly bytes: number; readonly seconds: number } {
  let position = start
  let seconds = 0
  for (let count = 0; count < MEASURED_FRAMES; count++) {
    const frame = mp3Frame(window, position)
    if (frame === undefined) break
    seconds += frame.samples / frame.sampleRate
    position += frame.byteLength
  }
  return { bytes: position - start, seconds }
}

interface Mp3Frame {
  /** Samples per frame. */
  readonly samples: number
  readonly sampleRate: number
  readonly byteLength: number
}

function mp3Frame(window: Buffer, position: number): Mp3Frame | undefined {
  if (position + HEADER_BYTES > window.length) return undefined
  const header = window.readUInt32BE(position)
  const version = (header >>> 19) & 3
  const layer = 4 - ((header >>> 17) & 3)
  const isMpeg1 = version === 3
  if (header >>> 21 !== 0x7ff || version === 1 || (layer !== 2 && layer !== 3)) return undefined
  const rates = isMpeg1 ? (layer === 3 ? MPEG1_LAYER3 : MPEG1_LAYER2) : MPEG2_LAYERS23
  const kilobits = rates[(header >>> 12) & 15]
  const fullRate = MPEG1_SAMPLE_RATES[(header >>> 10) & 3]
  if (kilobits === undefined || kilobits === 0 || fullRate === undefined) return undefined
  const sampleRate = isMpeg1 ? fullRate : version === 2 ? fullRate / 2 : fullRate / 4
  const samples = isMpeg1 || layer === 2 ? 1152 : 576
  const padding = (header >>> 9) & 1
  return { samples, sampleRate, byteLength: Math.floor((samples * kilobits * 125) / sampleRate) + padding }
}

/** Returns the frame count that variable-rate encoders write into the first frame. */
function frameCount(window: Buffer, position: number): number | undefined {
  const frame = window.subarray(position, position + 192)
  const mark = Math.max(frame.indexOf('Xing'), frame.indexOf('Info'))
  if (mark !== -1 && mark + 12 <= frame.length)
    return (frame.readUInt32BE(mark + 4) & 1) === 0 ? undefined : frame.readUInt32BE(mark + 8)
  const vbri = frame.indexOf('VBRI')
  return vbri === -1 || vbri + 18 > frame.length ? undefined : frame.readUInt32BE(vbri + 14)
}

function syncSafe(bytes: Buffer, position: number): number {
  const [first = 0, second = 0, third = 0, fourth = 0] = bytes.subarray(position, position + 4)
  return ((first & 0x7f) << 21) | ((second & 0x7f) << 14) | ((third & 0x7f) << 7) | (fourth & 0x7f)
}

/** Larger than any page, so that the last page begins within it. */
const OGG_WINDOW_BYTES = 128 * 1024
const PAGE_HEAD_BYTES = 27
/** Marks a page on which no packet ends (RFC 3533, section 6). */
const NO_POSITION = 0xffff_ffff_ffff_ffffn
/** Rate of Opus granule positions, independent of the recording rate (RFC 7845). */
const OPUS_RATE = 48_000

/** Returns the length of an Ogg file with Opus, Vorbis or FLAC in seconds, from the position of its last audio page. */
function oggSeconds(bytes: ByteSource): number | undefined {
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
  const end = bytes.read(Math.max(0, bytes.byteLength - OGG_WINDOW_BYTES), OGG_WINDOW_BYTES)
  for (let page = end.lastIndexOf('OggS'); page !== -1; page = page === 0 ? -1 : end.lastIndexOf('OggS', page - 1)) {
    if (page + PAGE_HEAD_BYTES > end.length || end.readUInt32LE(page + 14) !== serial) continue
    const position = end.readBigUInt64LE(page + 6)
    if (position !== NO_POSITION && position >> 63n === 0n) return position
  }
  return undefined
}

/** Maximum number of chunks read before the audio. Files have a handful. */
const MAX_CHUNKS = 64
/** Length field of a file that is still being written. */
const UNKNOWN_LENGTH = 0xffff_ffff

/**
 * Returns the length of a WAV file in seconds: size of the `data` chunk divided by the byte rate. If the chunk claims more than
 * the file contains, or its length was unknown, it ends with the file.
 */
function wavSeconds(bytes: ByteSource): number | undefined {
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
