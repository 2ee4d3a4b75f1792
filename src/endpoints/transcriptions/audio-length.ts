import type { AudioFormat } from '../../wire/audio/audio-header.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

/**
 * Bytes of a second at the lowest rate that is usual for speech: 13 kbit/s (GSM) in WAV, 8 kbit/s as MP3 and AAC, 6 kbit/s as Opus. A
 * file holds at most so much sound, as long as its headers tell nothing.
 */
const LEAST_BYTES_PER_SECOND: Readonly<Record<AudioFormat, number>> = {
  wav: 1_625,
  flac: 1_000,
  mp4: 1_000,
  ogg: 750,
  mp3: 1_000,
  webm: 750,
  mpeg: 1_000,
}

/** A report of some times the measured length is believed: silence may be counted, and a least length charged. */
const REPORT_SLACK = 4

/** A file, and what is known of its length. */
export type Recording = Pick<TranscriptionRequest, 'audio'> & { readonly file: { readonly byteLength: number } }

/** Seconds of a recording: measured by its headers, else the most that its bytes can hold. */
export function audioLength({ file, audio }: Recording): number {
  return audio.seconds ?? file.byteLength / LEAST_BYTES_PER_SECOND[audio.format]
}

/** The most that a vendor can have heard in a recording, whatever its headers say, in seconds. */
export function longestReport({ file, audio }: Recording): number {
  const byBytes = file.byteLength / LEAST_BYTES_PER_SECOND[audio.format]
  return Math.max(byBytes, (audio.seconds ?? 0) * REPORT_SLACK, MINIMUM_SECONDS)
}

/** Vendors charge short recordings as this much or less. */
const MINIMUM_SECONDS = 60
