import { Buffer } from 'node:buffer'
import type { ModelDefinition, TranscriptionAbilities } from '../../catalog/model.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { EventDecoder, type EventLines } from '../../endpoints/event-reader.ts'
import type { SpeechDecoder, SpeechTokens, TakeSamples } from '../../endpoints/speech/speech-endpoint.ts'
import { unusedSpeechFields } from '../../endpoints/speech/speech-request.ts'
import { heardSeconds, incompleteTranscript, type Transcript } from '../../endpoints/transcriptions/transcript.ts'
import type { TranscriptionOperation } from '../../endpoints/transcriptions/transcription-operation.ts'
import {
  changedFields,
  type TranscriptionRequest,
  unknownFields,
} from '../../endpoints/transcriptions/transcription-request.ts'
import { soundStart } from '../../wire/audio/encoders.ts'
import { base64Chunks } from '../../wire/base64.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { openaiUsage } from '../shared/openai-chat-answer.ts'
import { isErrorEnvelope } from '../shared/openai-chat-dialect.ts'
import type { ErrorReader } from '../shared/openai-error.ts'
import { AUDIO_TYPES } from '../shared/openai-transcriptions.ts'
import { bearerHeaders } from '../shared/vendor-options.ts'
import type { SpeechOperation, VendorCall, VendorFailure, WireRequest } from '../vendor.ts'

/**
 * Speech through DashScope's native API (Model Studio, Qwen-TTS), requested as events, which stream the audio. The audio is always
 * 24 kHz, so no format is sent. `language_type` keeps its default, which detects the language.
 */
export function speechOperation(path: string, errors: ErrorReader): SpeechOperation {
  return {
    sampleRate: 24_000,
    toWire: ({ request, model, apiKey }, { text, voice }) => {
      const { instructions } = request
      const isInstructed = instructions !== undefined && instructions !== null && instructions !== ''
      return {
        path,
        headers: [...bearerHeaders(apiKey, 'text/event-stream'), 'x-dashscope-sse', 'enable'],
        body: JSON.stringify({
          model: model.upstream,
          input: { text, voice, ...(isInstructed ? { instructions } : {}) },
        }),
        dropped: unusedSpeechFields(request),
      }
    },
    decoder: (_call, take) => new DashScopeSpeechDecoder({ take, streamFailure: errors.fromStream }),
  }
}

/** Maximum size of an event: enough for the longest text of one call. */
const MAX_SOUND_EVENT_BYTES = 16 * 1024 * 1024

/** Inputs of a decoder. */
interface SpeechDecoderOptions {
  readonly take: TakeSamples
  /** Reads an error object inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/**
 * Reads the events of Qwen-TTS (Model Studio, Qwen-TTS API reference): base64 of 16-bit samples in `output.audio.data`, and
 * `finish_reason` in the last one, which is null or the string "null" before. A file header before the first samples is skipped.
 * Comment lines, ids and `status:` lines are ignored.
 */
class DashScopeSpeechDecoder extends EventDecoder implements SpeechDecoder {
  isComplete = false
  tokens: SpeechTokens | undefined
  readonly #options: SpeechDecoderOptions
  #hasSound = false

  constructor(options: SpeechDecoderOptions) {
    super(MAX_SOUND_EVENT_BYTES)
    this.#options = options
  }

  protected override readEvent(event: EventLines, isRest: boolean): void {
    const body = parseVendorJson(event.text)
    if (event.name === 'error') this.fail(this.#options.streamFailure(objectOf(body)))
    else if (event.name === 'done' && !isJsonObject(body)) this.finish()
    else super.readEvent(event, isRest)
  }

  protected override finish(): void {
    this.isComplete = true
    super.finish()
  }

  protected override readEndMark(): void {
    this.finish()
  }

  protected override readValue(body: Record<string, unknown>, { name }: EventLines): void {
    this.#readResult(body)
    if (name === 'done' && this.failure === undefined) this.finish()
  }

  #readResult(body: Record<string, unknown>): void {
    const { output } = body
    if (!isJsonObject(output)) {
      if (typeof body['code'] === 'string' && body['code'] !== '') this.fail(this.#options.streamFailure(body))
      return
    }
    const audio = output['audio']
    const data = isJsonObject(audio) ? audio['data'] : undefined
    if (typeof data === 'string' && data !== '') this.#readSound(Buffer.from(data, 'base64'))
    this.tokens = tokensOf(body['usage']) ?? this.tokens
    const reason = output['finish_reason']
    if (typeof reason === 'string' && reason !== '' && reason !== 'null') this.finish()
  }

  #readSound(bytes: Buffer): void {
    const samples = this.#hasSound ? bytes : bytes.subarray(soundStart(bytes))
    this.#hasSound = true
    this.#options.take(samples)
  }
}

/** Some models report token counts in the usage. Newer ones count only characters. */
function tokensOf(usage: unknown): SpeechTokens | undefined {
  if (!isJsonObject(usage)) return undefined
  const inputTokens = usage['input_tokens']
  const outputTokens = usage['output_tokens']
  return isCount(inputTokens) && isCount(outputTokens) ? { inputTokens, outputTokens } : undefined
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Qwen-ASR returns only text, and supports neither speakers nor word lists. */
const QWEN_ASR: TranscriptionAbilities = {
  formats: ['json', 'text'],
  streams: false,
  refusedFields: ['include', 'languages', 'keywords', 'known_speaker_names', 'known_speaker_references'],
}

/** Models that transcribe uploaded audio (Model Studio, Qwen-ASR). Models that only fetch URLs are not served. */
export const DASHSCOPE_TRANSCRIPTION_MODELS: readonly ModelDefinition[] = [
  {
    id: 'qwen3-asr-flash',
    kind: 'transcription',
    vendor: 'dashscope',
    aliases: ['dashscope/qwen3-asr-flash'],
    transcription: QWEN_ASR,
    created: Date.UTC(2025, 8, 8) / 1000,
    displayName: 'Qwen3 ASR Flash',
  },
]

/** Fields without effect at this vendor. */
const IGNORED_FIELDS = ['temperature', 'timestamp_granularities', 'chunking_strategy'] as const

/** Transcription through DashScope's compatible mode: a chat with the recording as its only message (Model Studio, Qwen-ASR). */
export function transcriptionOperation(path: string): TranscriptionOperation {
  return {
    abilities: () => QWEN_ASR,
    toWire: (call) => toWire(call, path),
    fromWire,
  }
}

function toWire({ request, model, apiKey }: VendorCall<TranscriptionRequest>, path: string): WireRequest {
  const { file, audio, prompt, language } = request
  const before = {
    model: model.upstream,
    stream: false,
    ...(language === undefined || language === '' ? {} : { asr_options: { language } }),
  }
  // The system text is the context of a recording.
  const context =
    prompt === undefined || prompt === '' ? [] : [{ role: 'system', content: [{ type: 'text', text: prompt }] }]
  const head = `${JSON.stringify(before).slice(0, -1)},"messages":[${context.map((turn) => `${JSON.stringify(turn)},`).join('')}`
  const opening = `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"data:${AUDIO_TYPES[audio.format]};base64,`
  return {
    path,
    headers: bearerHeaders(apiKey, 'application/json'),
    body: [Buffer.from(head + opening), ...base64Chunks(file.chunks), Buffer.from('"}}]}]}')],
    dropped: [...changedFields(request, IGNORED_FIELDS), ...unknownFields(request.form)],
  }
}

function fromWire(
  chunks: readonly Uint8Array[],
  { request }: VendorCall<TranscriptionRequest>,
): Transcript | undefined {
  const answer = parseVendorJson(joinChunks(chunks).toString('utf8'))
  if (!isJsonObject(answer) || isErrorEnvelope(answer)) return undefined
  const choice: unknown = Array.isArray(answer['choices']) ? answer['choices'][0] : undefined
  if (!isJsonObject(choice)) return undefined
  const { message, finish_reason: reason } = choice
  if (!isJsonObject(message)) return undefined
  const text = textOf(message['content'])
  if (text === undefined) return undefined
  const languages = languagesOf(message['annotations'])
  const failure = incompleteTranscript(reason)
  return {
    text,
    ...(failure === undefined ? {} : { failure }),
    ...(languages.length === 0 ? {} : { languages }),
    usage: usageOf(answer['usage'], request),
  }
}

/** Audio without words has no content. */
function textOf(content: unknown): string | undefined {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  return content.map((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('')
}

function languagesOf(annotations: unknown): string[] {
  if (!Array.isArray(annotations)) return []
  return annotations.flatMap((entry) =>
    isJsonObject(entry) && typeof entry['language'] === 'string' ? [entry['language']] : [],
  )
}

/** The model is priced per second, and its tokens are reported separately. */
function usageOf(value: unknown, request: TranscriptionRequest): Usage | undefined {
  const seconds = isJsonObject(value) ? value['seconds'] : undefined
  const heard = typeof seconds === 'number' && seconds !== 0 ? heardSeconds(seconds, request) : undefined
  const tokens = openaiUsage(value)
  const counted = tokens !== undefined && (tokens.inputTokens ?? 0) > 0 ? tokens : undefined
  return heard === undefined && counted === undefined ? undefined : { ...counted, ...heard }
}
