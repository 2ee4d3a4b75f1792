import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import type { Transcript, TranscriptSegment } from './transcript.ts'
import type { TranscriptionFormat } from './transcription-request.ts'
import { shownTranscriptionUsage } from './transcription-usage.ts'

/** Returns the media type of an answer in a format, or `undefined` for JSON. */
export function transcriptType(format: TranscriptionFormat): string | undefined {
  return TYPES[format]
}

const TYPES: Readonly<Record<TranscriptionFormat, string | undefined>> = {
  json: undefined,
  verbose_json: undefined,
  diarized_json: undefined,
  text: 'text/plain; charset=utf-8',
  srt: 'text/plain; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
}

/** The caller's format, and the format requested from the vendor. */
export interface RenderedFormats {
  readonly wanted: TranscriptionFormat
  readonly asked: TranscriptionFormat
}

/**
 * Renders a transcript in the caller's format. Returns `undefined` if the vendor's answer lacks data for the format.
 * @param billed Charged usage, which `json` shows unless the vendor's own answer is passed on.
 */
export function renderTranscript(
  transcript: Transcript,
  { wanted, asked }: RenderedFormats,
  billed: Usage | undefined,
): readonly Uint8Array[] | undefined {
  if (wanted === asked && transcript.body !== undefined) return transcript.body
  switch (wanted) {
    case 'json':
      return [Buffer.from(JSON.stringify(plainAnswer(transcript, billed)))]
    case 'text':
      return [Buffer.from(`${transcript.text}\n`)]
    case 'srt':
      return transcript.segments && [Buffer.from(subRip(transcript.segments))]
    case 'vtt':
      return transcript.segments && [Buffer.from(webVtt(transcript.segments))]
    default:
      return undefined
  }
}

function plainAnswer({ text, languages, usage }: Transcript, billed: Usage | undefined): object {
  const shown = shownTranscriptionUsage(billed ?? usage, usage)
  return {
    text,
    ...(languages === undefined ? {} : { languages: languages.map((code) => ({ code })) }),
    ...(shown === undefined ? {} : { usage: shown }),
  }
}

/** SubRip: numbered cues with commas before the milliseconds. */
function subRip(segments: readonly TranscriptSegment[]): string {
  const cues = segments.map(({ start, end, text }, index) => {
    return `${index + 1}\n${timeOf(start, ',')} --> ${timeOf(end, ',')}\n${cueText(text)}\n`
  })
  return `${cues.join('\n')}\n`
}

/** WebVTT (W3C, "WebVTT"). */
function webVtt(segments: readonly TranscriptSegment[]): string {
  const cues = segments.map(
    ({ start, end, text }) =>
      `${timeOf(start, '.')} --> ${timeOf(end, '.')}\n${cueText(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;')}\n`,
  )
  return `WEBVTT\n\n${cues.join('\n')}\n`
}

/** Escapes text that WebVTT would misread: a cue ends at an empty line, and an arrow looks like times. */
function cueText(text: string): string {
  const lines = text.split(/[\r\n]+/).map((line) => line.trim())
  return lines
    .filter((line) => line !== '')
    .join('\n')
    .replaceAll('-->', '->')
}

function timeOf(seconds: number, separator: string): string {
  const milliseconds = Math.max(0, Math.round(seconds * 1000))
  const two = (value: number): string => String(value).padStart(2, '0')
  const hours = Math.floor(milliseconds / 3_600_000)
  const minutes = Math.floor(milliseconds / 60_000) % 60
  const rest = String(milliseconds % 1000).padStart(3, '0')
  return `${two(hours)}:${two(minutes)}:${two(Math.floor(milliseconds / 1000) % 60)}${separator}${rest}`
}
