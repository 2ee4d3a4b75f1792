import { countTokens } from '../model/chat-turn.ts'
import { unitVector } from '../model/embedding.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { type AnswerContext, jsonReply, type SandboxCall, type SandboxOperation } from '../sandbox-operation.ts'
import { partsOf } from './gemini-contents.ts'
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
