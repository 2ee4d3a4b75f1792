import { Buffer } from 'node:buffer'
import { GEMINI_TRANSCRIPTION } from '../../catalog/models/gemini-transcription.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { usedOf } from '../../core/usage.ts'
import { incompleteTranscript, type Transcript } from '../../endpoints/transcriptions/transcript.ts'
import type { TranscriptionOperation } from '../../endpoints/transcriptions/transcription-operation.ts'
import {
  changedFields,
  type TranscriptionRequest,
  unknownFields,
} from '../../endpoints/transcriptions/transcription-request.ts'
import { base64Chunks } from '../../wire/base64.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { AUDIO_TYPES } from '../shared/openai-transcriptions.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { apiRequestHead, brokenCandidate, type GenerationConfig, responseFailure } from './api-request.ts'
import { blocksPrompt, finishReason, partsOf } from './chat-from-wire.ts'
import { modelAbilities, reasoningToWire } from './model-abilities.ts'
import { usageFrom } from './usage-from.ts'

/** Fields that have no effect there. */
const IGNORED_FIELDS = ['timestamp_granularities', 'chunking_strategy'] as const

/** Transcription with a chat model: the recording and an instruction (Gemini API, "Audio understanding"). */
export function transcriptions(basePath: string): TranscriptionOperation {
  return {
    abilities: () => GEMINI_TRANSCRIPTION,
    toWire: (call) => toWire(call, basePath),
    fromWire,
  }
}

function toWire({ request, model, apiKey }: VendorCall<TranscriptionRequest>, basePath: string): WireRequest {
  const { file, audio, temperature } = request
  const { thinking, sampling } = modelAbilities(model.upstream)
  // Transcribing needs no thinking, and thoughts are billed.
  const { config: thinkingConfig } = reasoningToWire('none', thinking)
  const generationConfig: GenerationConfig = {
    ...(temperature === undefined || !sampling ? {} : { temperature }),
    ...(thinkingConfig === undefined ? {} : { thinkingConfig }),
  }
  const opening = `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"${AUDIO_TYPES[audio.format]}","data":"`
  const instruction = JSON.stringify({ text: instructionFor(request) })
  const closing = `"}},${instruction}]}],"generationConfig":${JSON.stringify(generationConfig)}}`
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method: 'generateContent', apiKey }),
    body: [Buffer.from(opening), ...base64Chunks(file.chunks), Buffer.from(closing)],
    dropped: [
      ...changedFields(request, IGNORED_FIELDS),
      ...(sampling ? [] : changedFields(request, ['temperature'])),
      ...unknownFields(request.form),
    ],
  }
}

function instructionFor({ language, languages = [], keywords = [], prompt }: TranscriptionRequest): string {
  const spoken = [...(language === undefined || language === '' ? [] : [language]), ...languages]
  return [
    'Transcribe this recording word for word, in the language that is spoken. Answer with the transcript alone.',
    ...(spoken.length === 0 ? [] : [`Languages that are spoken, as ISO codes: ${spoken.join(', ')}.`]),
    ...(keywords.length === 0 ? [] : [`Words that may be said: ${keywords.join(', ')}.`]),
    ...(prompt === undefined || prompt === '' ? [] : [`Context, which is not to be repeated: ${prompt}`]),
  ].join('\n')
}

function fromWire(chunks: readonly Uint8Array[], { apiKey }: VendorCall<TranscriptionRequest>): Transcript | undefined {
  const response = parseVendorJson(joinChunks(chunks).toString('utf8'))
  if (responseFailure(response, apiKey) !== undefined || !isJsonObject(response)) return undefined
  const usage = usageFrom(response['usageMetadata'])
  const candidate: unknown = Array.isArray(response['candidates']) ? response['candidates'][0] : undefined
  const feedback = response['promptFeedback']
  if (candidate === undefined && isJsonObject(feedback) && blocksPrompt(feedback['blockReason']))
    return { text: '', usage, failure: incompleteTranscript('content_filter', feedback['blockReason']) }
  if (!isJsonObject(candidate)) return undefined
  const broken = brokenCandidate(candidate)
  if (broken !== undefined) return usedOf(usage) && { text: '', usage, failure: broken }
  const text = partsOf(candidate)
    .map((part) => (typeof part['text'] === 'string' && part['thought'] !== true ? part['text'] : ''))
    .join('')
    .trim()
  const { finishReason: told } = candidate
  const failure = typeof told === 'string' ? incompleteTranscript(finishReason(told, false), told) : undefined
  return { text, usage, ...(failure === undefined ? {} : { failure }) }
}
