import { Buffer } from 'node:buffer'
import type { TranscriptionAbilities } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { neverStreams, type Operation, type VendorCall, type WireRequest } from '../operation.ts'
import type { StreamTransform } from '../stream-transform.ts'
import { shownTranscriptionUsage, type Transcript, type TranscriptSegment } from './transcript.ts'
import type { TranscriptionFormat, TranscriptionRequest } from './transcription-request.ts'

/** Format that is requested from a vendor. */
export type AskedFormat = Extract<TranscriptionFormat, 'json' | 'verbose_json' | 'diarized_json'>

/** Transcription at one vendor. All functions are pure. */
export interface TranscriptionOperation {
  /** Returns the abilities of a model without a row of its own, by the vendor's id. */
  abilities(upstream: string): TranscriptionAbilities
  /** Writes the call. */
  toWire(call: VendorCall<TranscriptionRequest>, asked: AskedFormat): WireRequest
  /** Reads a whole 2xx answer. Returns `undefined` if it is invalid (the caller gets 502). */
  fromWire(chunks: readonly Uint8Array[], call: VendorCall<TranscriptionRequest>): Transcript | undefined
  /** Reads a streamed answer in the dialect. Absent if no model streams. */
  stream?(call: VendorCall<TranscriptionRequest>): StreamTransform
}

/** Part of a vendor that handles transcription. */
export interface TranscriptionOffer {
  readonly transcription?: TranscriptionOperation
}

/**
 * Creates the transcription operation of a vendor. It always requests the format that reports the usage, and converts it to the
 * caller's format, so a recording costs the same in every format.
 * @throws GatewayError naming the field for a model that does not support the request.
 */
export function createTranscriptionOperation(
  operation: TranscriptionOperation,
  call: VendorCall<TranscriptionRequest>,
): Operation {
  const { request, model, stream, billedUsage } = call
  const abilities = model.transcription ?? operation.abilities(model.upstream)
  checkTranscriptionAbilities(request, abilities)
  if (stream && (!abilities.streams || operation.stream === undefined))
    throw unsupportedField('stream', 'this model does not stream')
  const asked = askedFormat(request.response_format, abilities)
  return {
    requests: [operation.toWire(call, asked)],
    whole([answer]) {
      const transcript = answer && operation.fromWire(answer.chunks, call)
      if (transcript === undefined) return undefined
      const { usage, text, failure } = transcript
      const outputBytes = Buffer.byteLength(text)
      if (failure !== undefined) return { chunks: [], usage, outputBytes, failure }
      const billed = billedUsage?.(usage, outputBytes)
      const chunks = renderTranscript(transcript, { wanted: request.response_format, asked }, billed)
      return chunks && { chunks, usage, outputBytes }
    },
    stream: () => operation.stream?.(call) ?? neverStreams(),
  }
}

function askedFormat(wanted: TranscriptionFormat, { formats }: TranscriptionAbilities): AskedFormat {
  if (wanted === 'diarized_json') return wanted
  return formats.includes('verbose_json') ? 'verbose_json' : 'json'
}

/** Largest file of a model without its own limit (OpenAI API, "Create transcription"). */
export const MAX_FILE_BYTES = 25 * 1024 * 1024

/** Fields that every model supports. */
const ALWAYS_TAKEN: ReadonlySet<string> = new Set(['model', 'file', 'response_format', 'stream'])

/** A request before it is known whether it streams. */
type Checked = Omit<TranscriptionRequest, 'stream' | 'audio' | 'form'>

/**
 * Checks fields that depend on the model.
 * @throws GatewayError 413 `body_too_large` for the file, `unsupported_parameter` for a format or a field that the model lacks.
 */
export function checkTranscriptionAbilities(request: Checked, abilities: TranscriptionAbilities | undefined): void {
  checkSize(request.file.byteLength, abilities?.maxFileBytes ?? MAX_FILE_BYTES)
  if (abilities === undefined) return
  const { formats, refusedFields = [] } = abilities
  if (!formats.includes(request.response_format))
    throw unsupportedField('response_format', `this model returns ${formats.join(', ')}`)
  for (const field of refusedFields) {
    const value = (request as unknown as Readonly<Record<string, unknown>>)[field]
    const isSet = value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)
    if (isSet && !ALWAYS_TAKEN.has(field)) throw unsupportedField(field, 'this model does not support it')
  }
}

function checkSize(byteLength: number, most: number): void {
  if (byteLength === 0) throw invalidField('file', 'must not be empty')
  if (byteLength <= most) return
  const message = `file: has ${byteLength} bytes, and this model accepts at most ${most}`
  throw new GatewayError('body_too_large', { message, param: 'file' })
}

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
