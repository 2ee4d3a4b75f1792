import { Buffer } from 'node:buffer'
import type { TranscriptionAbilities } from '../../catalog/model-facts.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { type EventLines, PassThroughStream } from '../../endpoints/event-reader.ts'
import {
  type Transcript,
  type TranscriptSegment,
  transcriptionUsage,
} from '../../endpoints/transcriptions/transcript.ts'
import type { AskedFormat, TranscriptionOperation } from '../../endpoints/transcriptions/transcription-operation.ts'
import {
  fieldName,
  type Recording,
  type TranscriptionRequest,
  vendorFieldName,
} from '../../endpoints/transcriptions/transcription-request.ts'
import type { AudioFormat } from '../../wire/audio/audio-header.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { sseData } from '../../wire/sse.ts'
import { encodeForm, type FormFile, type FormPart } from '../../wire/write-form.ts'
import type { VendorCall, VendorFailure, WireRequest } from '../vendor.ts'
import { isErrorEnvelope, type OperationPath, pathFor } from './openai-chat-dialect.ts'
import { tellsPurchasePrice, withoutPurchasePrice } from './vendor-cost.ts'
import { bearerHeaders, type KeyHeaders } from './vendor-options.ts'

/** The differences between servers of OpenAI's transcription dialect. */
export interface OpenAITranscriptionsDialect {
  /** Path below the vendor's origin. */
  readonly path: OperationPath
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  /** Returns the abilities of a model without a row, by the vendor's own id. Default {@link transcriptionAbilities}. */
  readonly abilities?: ((upstream: string) => TranscriptionAbilities) | undefined
  /** Reads an error object inside a stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** Fields of OpenAI's newest model, and of its model that distinguishes speakers. */
const LATER_FIELDS = ['languages', 'keywords', 'known_speaker_names', 'known_speaker_references'] as const

/** Abilities of Whisper on every server: times, but no streams (OpenAI API, "Create transcription"). */
export const WHISPER_ABILITIES: TranscriptionAbilities = {
  formats: ['json', 'text', 'srt', 'vtt', 'verbose_json'],
  streams: false,
  refusedFields: ['include', ...LATER_FIELDS],
}

/** Abilities of models that return only text. */
export const TEXT_ABILITIES: TranscriptionAbilities = { formats: ['json', 'text'], streams: true }

/** Returns the abilities of a model without a row. All servers of Whisper use its name. */
export function transcriptionAbilities(upstream: string): TranscriptionAbilities {
  return /whisper/i.test(upstream) ? WHISPER_ABILITIES : TEXT_ABILITIES
}

/** Creates transcription for a server of OpenAI's dialect. */
export function openaiTranscriptions(dialect: OpenAITranscriptionsDialect): TranscriptionOperation {
  return {
    abilities: dialect.abilities ?? transcriptionAbilities,
    toWire: (call, asked) => toWire(call, asked, dialect),
    fromWire,
    stream: ({ request, isBilled }) =>
      new OpenAITranscriptionStream({ request, isBilled, streamFailure: dialect.streamFailure }),
  }
}

/** Writes the form again, with its parts in order, under their types and the names that the API reads. The file is not copied. */
function toWire(
  { request, model, apiKey, stream }: VendorCall<TranscriptionRequest>,
  asked: AskedFormat,
  { path, headers = bearerHeaders }: OpenAITranscriptionsDialect,
): WireRequest {
  const granularities = request.timestamp_granularities ?? []
  const dropsTimes = granularities.length > 0 && request.response_format !== 'verbose_json'
  const parts: FormPart[] = []
  for (const part of request.form) {
    const name = fieldName(part.name)
    if (part === request.file) parts.push(named(request.file, request.audio.format))
    else if (part.kind === 'file') parts.push(part)
    else if (name === 'model') parts.push({ ...part, value: model.upstream })
    else if (name === 'timestamp_granularities' && dropsTimes) continue
    else if (name !== 'response_format' && name !== 'stream') parts.push({ ...part, name: vendorFieldName(part.name) })
  }
  parts.push({ kind: 'field', name: 'response_format', value: asked })
  if (stream) parts.push({ kind: 'field', name: 'stream', value: 'true' })
  const { contentType, chunks } = encodeForm(parts)
  const [, , ...rest] = headers(apiKey, stream ? 'text/event-stream' : 'application/json')
  return {
    path: pathFor(path, model.upstream),
    headers: ['content-type', contentType, ...rest],
    body: chunks,
    dropped: dropsTimes ? ['timestamp_granularities'] : [],
  }
}

const KNOWN_EXTENSION = /\.(?:flac|mp3|mp4|mpeg|mpga|m4a|ogg|oga|opus|wav|webm)$/i

/** Servers read the format from the extension, which recorders in browsers omit. */
function named(file: FormFile, format: AudioFormat): FormFile {
  if (KNOWN_EXTENSION.test(file.filename)) return file
  return { ...file, filename: `${file.filename || 'audio'}.${format}` }
}

function fromWire(
  chunks: readonly Uint8Array[],
  { request, isBilled }: VendorCall<TranscriptionRequest>,
): Transcript | undefined {
  const answer = parseVendorJson(joinChunks(chunks).toString('utf8'))
  if (!isJsonObject(answer) || typeof answer['text'] !== 'string' || isErrorEnvelope(answer)) return undefined
  const { text, usage } = answer
  const segments = segmentsOf(answer['segments'])
  const isShown = isBilled !== true || !tellsPurchasePrice(usage)
  return {
    text,
    ...(segments === undefined ? {} : { segments }),
    usage: transcriptionUsage(answer, request),
    body: isShown ? chunks : [Buffer.from(JSON.stringify({ ...answer, usage: withoutPurchasePrice(usage) }))],
  }
}

/** Returns `undefined` unless each segment has its times. */
function segmentsOf(value: unknown): readonly TranscriptSegment[] | undefined {
  if (!Array.isArray(value)) return undefined
  const segments: TranscriptSegment[] = []
  for (const entry of value) {
    const { start, end, text } = objectOf(entry)
    if (!Number.isFinite(start) || !Number.isFinite(end) || typeof text !== 'string') return undefined
    segments.push({ start: start as number, end: end as number, text })
  }
  return segments
}

/** Facts about the call that a streamed transcript needs. */
export interface TranscriptionStreamOptions {
  readonly request: Recording
  /** Whether the caller is billed, so that events must not show the operator's cost. */
  readonly isBilled?: boolean | undefined
  /** Reads an error object inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** Maximum event size. The last event contains the whole text. */
const MAX_TRANSCRIPT_EVENT_BYTES = 16 * 1024 * 1024

/**
 * Passes a streamed transcript on (OpenAI API, "Transcription events"): its events pass untouched, and only the length of their
 * text and their usage are read. It is complete after `transcript.text.done`; `[DONE]` is not required.
 */
class OpenAITranscriptionStream extends PassThroughStream {
  usage: Usage | undefined
  readonly #isBilled: boolean
  readonly #streamFailure: TranscriptionStreamOptions['streamFailure']
  /** Excludes the request, which contains the recording. */
  readonly #recording: Recording

  constructor({ request, isBilled, streamFailure }: TranscriptionStreamOptions) {
    super(MAX_TRANSCRIPT_EVENT_BYTES)
    this.#isBilled = isBilled === true
    this.#streamFailure = streamFailure
    this.#recording = { audio: request.audio, file: { byteLength: request.file.byteLength } }
  }

  override get hasTextEnded(): boolean {
    return this.isComplete
  }

  protected override readEndMark(): void {}

  protected override readValue(data: Record<string, unknown>, { name }: EventLines): void {
    const type = typeof data['type'] === 'string' ? data['type'] : (name ?? '')
    if (name === 'error' || type === 'error' || isJsonObject(data['error'])) {
      this.fail(this.#streamFailure(data))
    } else if (type === 'transcript.text.delta') this.#count(data['delta'])
    else if (type === 'transcript.text.segment') this.#count(data['text'])
    else if (type === 'transcript.text.done') this.#end(data)
  }

  #end(data: Record<string, unknown>): void {
    if (this.outputBytesSeen === 0) this.#count(data['text'])
    this.hasContent = true
    this.isComplete = true
    this.usage = transcriptionUsage(data, this.#recording)
    const { usage } = data
    if (this.#isBilled && tellsPurchasePrice(usage))
      this.replaceEvent(Buffer.from(sseData(JSON.stringify({ ...data, usage: withoutPurchasePrice(usage) }))))
  }

  #count(text: unknown): void {
    if (typeof text === 'string') this.countContent(Buffer.byteLength(text))
  }
}

/** Media types of recordings, for vendors that require them. */
export const AUDIO_TYPES: Readonly<Record<AudioFormat, string>> = {
  wav: 'audio/wav',
  flac: 'audio/flac',
  mp4: 'audio/mp4',
  ogg: 'audio/ogg',
  mp3: 'audio/mpeg',
  webm: 'audio/webm',
  mpeg: 'audio/mpeg',
}
