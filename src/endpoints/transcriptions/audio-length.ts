import type { AudioFormat } from '../../wire/audio/audio-header.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

/**
 * Bytes per second at the lowest usual rate of speech: 13 kbit/s (GSM) in WAV, 8 kbit/s as MP3 and AAC, 6 kbit/s as Opus. They
 * bound the length of a file whose headers do not contain it.
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

/** Factor up to which a report may exceed the measured length: silence may be counted, and a minimum length charged. */
const REPORT_SLACK = 4

/** A file and the known facts about its length. */
export type Recording = Pick<TranscriptionRequest, 'audio'> & { readonly file: { readonly byteLength: number } }

/** Returns the seconds of a recording: measured by its headers, else the maximum for its number of bytes. */
export function audioLength({ file, audio }: Recording): number {
  return audio.seconds ?? file.byteLength / LEAST_BYTES_PER_SECOND[audio.format]
}

/** Returns the maximum seconds that a vendor can have processed, whatever the headers say. */
export function longestReport({ file, audio }: Recording): number {
  const byBytes = file.byteLength / LEAST_BYTES_PER_SECOND[audio.format]
  return Math.max(byBytes, (audio.seconds ?? 0) * REPORT_SLACK, MINIMUM_SECONDS)
}

/** Minimum length that vendors charge for short recordings; some charge less. */
const MINIMUM_SECONDS = 60
