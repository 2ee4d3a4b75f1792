import { Buffer } from 'node:buffer'
import type { ModelDefinition, TranscriptionAbilities } from '../../catalog/model.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { incompleteTranscript, type Transcript } from '../../endpoints/transcriptions/transcript.ts'
import { changedFields, unknownFields } from '../../endpoints/transcriptions/transcription-form.ts'
import type { TranscriptionOperation } from '../../endpoints/transcriptions/transcription-operation.ts'
import type { TranscriptionRequest } from '../../endpoints/transcriptions/transcription-request.ts'
import { heardSeconds } from '../../endpoints/transcriptions/transcription-usage.ts'
import { base64Chunks } from '../../wire/base64-chunks.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { AUDIO_TYPES } from '../shared/audio-types.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import { isErrorEnvelope } from '../shared/openai-chat-dialect.ts'
import { openaiUsage } from '../shared/openai-usage.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'

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
const WITHOUT_EFFECT = ['temperature', 'timestamp_granularities', 'chunking_strategy'] as const

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
    dropped: [...changedFields(request, WITHOUT_EFFECT), ...unknownFields(request.form)],
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
