import type { Buffer } from 'node:buffer'
import type { ByteSource } from './byte-source.ts'

/** Number of bytes read after the tags. They contain the first frames. */
const WINDOW_BYTES = 64 * 1024

// Kilobits per second by the index in the frame header (ISO 11172-3, ISO 13818-3): layer III, then layers II and I of MPEG-1.
const MPEG1_LAYER3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const MPEG1_LAYER2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
const MPEG2_LAYERS23 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const MPEG1_SAMPLE_RATES = [44_100, 48_000, 32_000]
/** Highest existing rate, plus some room for tags. */
const MOST_BYTES_PER_SECOND = 384_000 / 8
/** Number of frames that measure the rate of a file without a count: some seconds of audio. */
const MEASURED_FRAMES = 200

const HEADER_BYTES = 4

/** Whether a file is MPEG audio: tags followed by a frame, or frames from its first byte on. */
export function isMp3(bytes: ByteSource): boolean {
  const start = bytes.read(0, 4)
  if (start.toString('latin1', 0, 3) === 'ID3') return true
  return firstFrame(bytes, 0) !== undefined
}

/**
 * Returns the length of an MP3 file in seconds. Uses the frame count that variable-rate encoders write into the first frame
 * (Xing, Info, VBRI), or the rate of the first frames. Ignores a count that is too small for the size of the file.
 */
export function mp3Seconds(bytes: ByteSource): number | undefined {
  const tagBytes = tagBytesOf(bytes)
  const first = firstFrame(bytes, tagBytes)
  if (first === undefined) return undefined
  const { frame, window, position } = first
  const soundBytes = bytes.byteLength - tagBytes - position
  const frames = frameCount(window, position)
  if (frames !== undefined && frames > 0)
    return Math.max((frames * frame.samples) / frame.sampleRate, soundBytes / MOST_BYTES_PER_SECOND)
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
  const window = bytes.read(from, WINDOW_BYTES)
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
export function beginsAsMp3(start: Buffer): boolean {
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
