import type { Buffer } from 'node:buffer'
import type { Base64Bytes } from './base64-bytes.ts'

/** Bytes read at most at each place: behind tags, and at the end of a file. */
const WINDOW_BYTES = 64 * 1024

/**
 * Seconds of a WAV (RIFF), MP3 (ISO 11172-3, ID3v2, Xing header), FLAC (RFC 9639) or Ogg file (RFC 3533, with Opus or Vorbis) by
 * its headers. Reads at most 128 KiB, wherever the headers are. Undefined for anything else. Never throws.
 */
export function audioSeconds(bytes: Base64Bytes): number | undefined {
  const start = bytes.read(0, 64)
  const magic = start.toString('latin1', 0, 4)
  const seconds =
    magic === 'RIFF'
      ? wavSeconds(bytes)
      : magic === 'fLaC'
        ? flacSeconds(start)
        : magic === 'OggS'
          ? oggSeconds(bytes, start)
          : mp3Seconds(bytes, start)
  return seconds !== undefined && Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}

function wavSeconds(bytes: Base64Bytes): number | undefined {
  const window = bytes.read(0, WINDOW_BYTES)
  let position = 12
  while (position + 16 + 8 <= window.length) {
    const length = window.readUInt32LE(position + 4)
    if (window.toString('latin1', position, position + 4) === 'fmt ') {
      const bytesPerSecond = window.readUInt32LE(position + 8 + 8)
      return bytesPerSecond === 0 ? undefined : bytes.byteLength / bytesPerSecond
    }
    // Chunks are padded to an even length.
    position += 8 + length + (length % 2)
  }
  return undefined
}

function flacSeconds(start: Buffer): number | undefined {
  // The first block is STREAMINFO, behind the mark and its own header of four bytes.
  if (start.length < 26 || (start.readUInt8(4) & 0x7f) !== 0) return undefined
  const rate = start.readUIntBE(18, 3) >>> 4
  const samples = (start.readUInt8(21) & 0x0f) * 2 ** 32 + start.readUInt32BE(22)
  return rate === 0 || samples === 0 ? undefined : samples / rate
}

/** A granule position of Opus counts at this rate, whatever the sound was recorded at (RFC 7845). */
const OPUS_RATE = 48_000

function oggSeconds(bytes: Base64Bytes, start: Buffer): number | undefined {
  const codec = start.toString('latin1', 28, 36)
  const isVorbis = codec.startsWith('\x01vorbis')
  if (!isVorbis && codec !== 'OpusHead') return undefined
  const rate = isVorbis && start.length >= 44 ? start.readUInt32LE(40) : OPUS_RATE
  const end = bytes.read(Math.max(0, bytes.byteLength - WINDOW_BYTES), WINDOW_BYTES)
  const page = end.lastIndexOf('OggS')
  if (page === -1 || page + 14 > end.length || rate === 0) return undefined
  return Number(end.readBigUInt64LE(page + 6)) / rate
}

// Kilobits per second of layer III, by the index in the frame header (ISO 11172-3, ISO 13818-3).
const MPEG1_RATES = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const MPEG2_RATES = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const MPEG1_SAMPLE_RATES = [44_100, 48_000, 32_000]

function mp3Seconds(bytes: Base64Bytes, start: Buffer): number | undefined {
  const tagBytes = start.toString('latin1', 0, 3) === 'ID3' && start.length >= 10 ? 10 + syncSafe(start, 6) : 0
  const window = bytes.read(tagBytes, WINDOW_BYTES)
  for (let position = window.indexOf(0xff); position !== -1; position = window.indexOf(0xff, position + 1)) {
    const frame = mp3Frame(window, position)
    if (frame === undefined) continue
    const { samples, sampleRate, bitsPerSecond } = frame
    const frames = frameCount(window, position)
    if (frames !== undefined) return (frames * samples) / sampleRate
    return ((bytes.byteLength - tagBytes) * 8) / bitsPerSecond
  }
  return undefined
}

interface Mp3Frame {
  /** In one frame. */
  readonly samples: number
  readonly sampleRate: number
  readonly bitsPerSecond: number
}

function mp3Frame(window: Buffer, position: number): Mp3Frame | undefined {
  if (position + 4 > window.length) return undefined
  const header = window.readUInt32BE(position)
  const version = (header >>> 19) & 3
  const isLayer3 = ((header >>> 17) & 3) === 1
  const isMpeg1 = version === 3
  if (header >>> 21 !== 0x7ff || version === 1 || !isLayer3) return undefined
  const kilobits = (isMpeg1 ? MPEG1_RATES : MPEG2_RATES)[(header >>> 12) & 15]
  const fullRate = MPEG1_SAMPLE_RATES[(header >>> 10) & 3]
  if (kilobits === undefined || kilobits === 0 || fullRate === undefined) return undefined
  const sampleRate = isMpeg1 ? fullRate : version === 2 ? fullRate / 2 : fullRate / 4
  return { samples: isMpeg1 ? 1152 : 576, sampleRate, bitsPerSecond: kilobits * 1000 }
}

/** The number of frames that an encoder of variable bit rates writes into the first one. */
function frameCount(window: Buffer, position: number): number | undefined {
  const frame = window.subarray(position, position + 192)
  const mark = Math.max(frame.indexOf('Xing'), frame.indexOf('Info'))
  if (mark === -1 || mark + 12 > frame.length || (frame.readUInt32BE(mark + 4) & 1) === 0) return undefined
  return frame.readUInt32BE(mark + 8)
}

function syncSafe(bytes: Buffer, position: number): number {
  const [first = 0, second = 0, third = 0, fourth = 0] = bytes.subarray(position, position + 4)
  return (first << 21) | (second << 14) | (third << 7) | fourth
}
