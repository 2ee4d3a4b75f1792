import { Buffer } from 'node:buffer'
import { countTokens } from '../model/chat-turn.ts'
import { heardRecording, unitVector } from '../model/embedding.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { type AnswerContext, jsonReply, type SandboxCall, type SandboxOperation } from '../sandbox-operation.ts'
import { checkGeminiConfig, checkGeminiContents, partsOf } from './gemini-contents.ts'
import {
  checkGeminiKey,
  checkKnownFields,
  field,
  GEMINI_ERRORS,
  GEMINI_HEADERS,
  modelMethod,
  refuseGemini,
} from './gemini-errors.ts'

const METHODS = ['batchEmbedContents', 'embedContent']
const FIELDS = new Set(['model', 'content', 'taskType', 'title', 'outputDimensionality'])
const MAX_REQUESTS = 100
const NATIVE_DIMENSIONS = 3072
const LEAST_DIMENSIONS = 128

/**
 * Gemini: `POST /v1beta/models/{model}:batchEmbedContents` (at most 100 requests) and `:embedContent`. All parts of one
 * content make one vector. `gemini-embedding-001` brings only full-size vectors to length 1.
 */
export const GEMINI_EMBEDDINGS: SandboxOperation = {
  vendor: 'gemini',
  operation: 'embeddings',
  errors: GEMINI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && METHODS.includes(modelMethod(path)?.method ?? ''),
  promptText: (body) => [body, ...asList(asObject(body)['requests'])].map(textOf).join('\n'),
  answer(call, context) {
    checkGeminiKey(call)
    const { model = '', method } = modelMethod(call.path) ?? {}
    return method === 'embedContent' ? single(call, model, context) : batch(call, model, context)
  },
}

function single(call: SandboxCall, model: string, context: AnswerContext) {
  const request = asObject(call.body)
  checkRequest(request, model, 'EmbedContentRequest')
  return jsonReply(
    200,
    GEMINI_HEADERS,
    { embedding: embedding(request, model), usageMetadata: usage([request], context) },
    2,
  )
}

function batch(call: SandboxCall, model: string, context: AnswerContext) {
  const requests = asList(asObject(call.body)['requests']).map(asObject)
  if (requests.length === 0) refuseGemini('* BatchEmbedContentsRequest.requests: requests must not be empty')
  if (requests.length > MAX_REQUESTS) {
    refuseGemini(`* BatchEmbedContentsRequest.requests: at most ${MAX_REQUESTS} requests can be in one batch`)
  }
  requests.forEach((request, position) => {
    const place = `BatchEmbedContentsRequest.requests[${position}]`
    checkRequest(request, model, place)
    if (asText(request['model']) !== `models/${model}`) {
      refuseGemini(`* ${place}.model: unexpected model name format or a model other than models/${model}`)
    }
  })
  const embeddings = requests.map((request) => embedding(request, model))
  return jsonReply(200, GEMINI_HEADERS, { embeddings, usageMetadata: usage(requests, context) }, 2)
}

function checkRequest(request: Readonly<Record<string, unknown>>, model: string, place: string): void {
  checkKnownFields(request, FIELDS, place)
  if (textOf(request) === '') refuseGemini(`* ${place}.content: content is empty`)
  const dimensions = field(request, 'outputDimensionality')
  if (!isGiven(dimensions)) return
  const value = asNumber(dimensions) ?? 0
  if (!Number.isInteger(value) || value < LEAST_DIMENSIONS || value > NATIVE_DIMENSIONS) {
    refuseGemini(
      `* ${place}.output_dimensionality: must be between ${LEAST_DIMENSIONS} and ${NATIVE_DIMENSIONS} for ${model}`,
    )
  }
}

function embedding(request: unknown, model: string): Record<string, unknown> {
  const dimensions = asNumber(field(request, 'outputDimensionality')) ?? NATIVE_DIMENSIONS
  const isNormalised = model !== 'gemini-embedding-001'
  return { values: unitVector(textOf(request), dimensions, NATIVE_DIMENSIONS, isNormalised) }
}

function usage(requests: readonly unknown[], context: AnswerContext): unknown {
  const tokens = requests.reduce<number>((sum, request) => sum + countTokens([textOf(request)]), 0)
  return context.usage({ promptTokenCount: tokens, promptTokenDetails: [{ modality: 'TEXT', tokenCount: tokens }] })
}

function textOf(request: unknown): string {
  return partsOf(asObject(request)['content'])
    .map((part) => asText(asObject(part)['text']))
    .join('')
}

const TOKENS_PER_SECOND = 32

/** Gemini: `generateContent` with a recording and the instruction to transcribe it; 32 tokens per second. */
export const GEMINI_TRANSCRIPTIONS: SandboxOperation = {
  vendor: 'gemini',
  operation: 'transcriptions',
  errors: GEMINI_ERRORS,
  matches: ({ method, path, body }) =>
    method === 'POST' && modelMethod(path)?.method === 'generateContent' && asksForTranscript(body),
  promptText: instructionOf,
  answer(call, context) {
    checkGeminiKey(call)
    const { model = '' } = modelMethod(call.path) ?? {}
    const request = asObject(call.body)
    checkGeminiConfig(request, model)
    checkGeminiContents(request, model)
    const heard = heardRecording(Buffer.from(soundOf(call.body) ?? '', 'base64'), context.script)
    if (heard === undefined) return refuseGemini('Request contains an invalid argument.')
    const audio = Math.ceil(heard.seconds * TOKENS_PER_SECOND)
    const text = Math.ceil(instructionOf(call.body).length / 4)
    const usage = {
      promptTokenCount: audio + text,
      candidatesTokenCount: heard.tokens,
      totalTokenCount: audio + text + heard.tokens,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: text },
        { modality: 'AUDIO', tokenCount: audio },
      ],
    }
    const answer = {
      candidates: [{ content: { parts: [{ text: heard.text }], role: 'model' }, finishReason: 'STOP', index: 0 }],
      usageMetadata: context.usage(usage),
      modelVersion: model,
      responseId: context.id,
    }
    return jsonReply(200, GEMINI_HEADERS, answer, 2)
  },
}

/** Whether a request is a chat about a recording to transcribe. */
export function asksForTranscript(body: unknown): boolean {
  return soundOf(body) !== undefined && instructionOf(body).startsWith('Transcribe')
}

function lastParts(body: unknown): readonly unknown[] {
  return partsOf(asList(asObject(body)['contents']).at(-1))
}

/** Returns the recording as base64. */
function soundOf(body: unknown): string | undefined {
  const data = lastParts(body)
    .map((part) => field(part, 'inlineData'))
    .find((inline) => asText(field(inline, 'mimeType')).startsWith('audio/'))
  return data === undefined ? undefined : asText(asObject(data)['data'])
}

function instructionOf(body: unknown): string {
  return lastParts(body)
    .map((part) => asText(asObject(part)['text']))
    .join('')
}
