import type { Buffer } from 'node:buffer'
import type { ByteSource } from './byte-source.ts'
import { flacSeconds } from './flac-header.ts'
import { beginsAsMp3, isMp3, mp3Seconds } from './mp3-header.ts'
import { mp4Seconds } from './mp4-header.ts'
import { oggSeconds } from './ogg-header.ts'
import { wavSeconds } from './wav-header.ts'
import { webmSeconds } from './webm-header.ts'

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
const LEAST_BYTES_PER_SECOND = 25

/**
 * Reads format and length of an audio file: WAV (RIFF), FLAC (RFC 9639), MP4 (ISO/IEC 14496-12, with `moov` anywhere), Ogg with
 * Opus or Vorbis (RFC 3533, RFC 7845), MP3 (ISO 11172-3, with Xing, VBRI or neither) and WebM (RFC 9559, with or without a
 * duration). Reads a limited number of bytes. Returns `undefined` for other files. Never throws.
 */
export function audioHeader(bytes: ByteSource): AudioHeader | undefined {
  const format = formatOf(bytes)
  if (format === undefined) return undefined
  const seconds = READERS[format](bytes)
  const isPossible = seconds !== undefined && seconds > 0 && seconds * LEAST_BYTES_PER_SECOND <= bytes.byteLength
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
