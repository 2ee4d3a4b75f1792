import { Buffer } from 'node:buffer'
import { countTokens } from '../model/chat-turn.ts'
import { transcribeFixture, unitVector } from '../model/embedding.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import { checkGeminiConfig, checkGeminiContents, partsOf } from './gemini-contents.ts'
import { checkKnownFields, field, geminiOperation, methodPath, refuseGemini } from './gemini-errors.ts'

const FIELDS = names('model content taskType title outputDimensionality')
const MAX_REQUESTS = 100
const NATIVE_DIMENSIONS = 3072
const MIN_DIMENSIONS = 128

/**
 * Gemini: `POST /v1beta/models/{model}:batchEmbedContents` (at most 100 requests) and `:embedContent`. All parts of one
 * content make one vector. `gemini-embedding-001` brings only full-size vectors to length 1.
 */
export const GEMINI_EMBEDDINGS = geminiOperation({
  operation: 'embeddings',
  post: methodPath('batchEmbedContents|embedContent'),
  prompt: (request) => [request, ...asList(request['requests'])].map(textOf).join('\n'),
  json(_call, context, request, [id = '', method]) {
    const model = decodeURIComponent(id)
    const isSingle = method === 'embedContent'
    const requests = isSingle ? [request] : asList(request['requests']).map(asObject)
    if (requests.length === 0) refuseGemini('* BatchEmbedContentsRequest.requests: requests must not be empty')
    if (requests.length > MAX_REQUESTS)
      refuseGemini(`* BatchEmbedContentsRequest.requests: at most ${MAX_REQUESTS} requests can be in one batch`)
    for (const [position, one] of requests.entries()) {
      const place = isSingle ? 'EmbedContentRequest' : `BatchEmbedContentsRequest.requests[${position}]`
      checkRequest(one, model, place)
      if (!isSingle && asText(one['model']) !== `models/${model}`)
        refuseGemini(`* ${place}.model: unexpected model name format or a model other than models/${model}`)
    }
    const embeddings = requests.map((one) => {
      const dimensions = asNumber(field(one, 'outputDimensionality')) ?? NATIVE_DIMENSIONS
      return { values: unitVector(textOf(one), dimensions, NATIVE_DIMENSIONS, model !== 'gemini-embedding-001') }
    })
    const tokens = requests.reduce((sum, one) => sum + countTokens([textOf(one)]), 0)
    const promptTokenDetails = [{ modality: 'TEXT', tokenCount: tokens }]
    const usageMetadata = context.usage({ promptTokenCount: tokens, promptTokenDetails })
    return isSingle ? { embedding: embeddings[0], usageMetadata } : { embeddings, usageMetadata }
  },
})

function checkRequest(request: Fields, model: string, place: string): void {
  checkKnownFields(request, FIELDS, place)
  if (textOf(request) === '') refuseGemini(`* ${place}.content: content is empty`)
  const dimensions = field(request, 'outputDimensionality')
  const isValid = Number.isInteger(dimensions) && Number(dimensions) >= MIN_DIMENSIONS
  if (isGiven(dimensions) && !(isValid && Number(dimensions) <= NATIVE_DIMENSIONS)) {
    const range = `must be between ${MIN_DIMENSIONS} and ${NATIVE_DIMENSIONS}`
    refuseGemini(`* ${place}.output_dimensionality: ${range} for ${model}`)
  }
}

function textOf(request: unknown): string {
  return partsOf(asObject(request)['content'])
    .map((part) => asText(asObject(part)['text']))
    .join('')
}

const TOKENS_PER_SECOND = 32

/** Gemini: `generateContent` with a recording and the instruction to transcribe it; 32 tokens per second. */
export const GEMINI_TRANSCRIPTIONS = geminiOperation({
  operation: 'transcriptions',
  post: methodPath('generateContent'),
  when: ({ body }) => asksForTranscript(body),
  prompt: instructionOf,
  json(_call, context, request, [id = '']) {
    const model = decodeURIComponent(id)
    checkGeminiConfig(request, model)
    checkGeminiContents(request, model)
    const heard = transcribeFixture(Buffer.from(soundOf(request) ?? '', 'base64'), context.script)
    if (heard === undefined) return refuseGemini('Request contains an invalid argument.')
    const audio = Math.ceil(heard.seconds * TOKENS_PER_SECOND)
    const text = Math.ceil(instructionOf(request).length / 4)
    const usage = {
      promptTokenCount: audio + text,
      candidatesTokenCount: heard.tokens,
      totalTokenCount: audio + text + heard.tokens,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: text },
        { modality: 'AUDIO', tokenCount: audio },
      ],
    }
    return {
      candidates: [{ content: { parts: [{ text: heard.text }], role: 'model' }, finishReason: 'STOP', index: 0 }],
      usageMetadata: context.usage(usage),
      modelVersion: model,
      responseId: context.id,
    }
  },
})

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
