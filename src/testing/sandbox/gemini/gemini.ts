import { Buffer } from 'node:buffer'
import { drawPicture } from '../files/draw-image.ts'
import { type ChatTurn, chatTurn, countTokens } from '../model/chat-turn.ts'
import { transcribeFixture, unitVector } from '../model/embedding.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import { type AnswerContext, fileReply, jsonReply, type SandboxOperation, streamReply } from '../sandbox-operation.ts'
import {
  checkGeminiConfig,
  checkGeminiContents,
  checkKnownFields,
  field,
  GEMINI_HEADERS,
  geminiOperation,
  googleEvent,
  methodPath,
  partsOf,
  readContentsPrompt,
  refuseGemini,
  signsThoughts,
  thoughtSignature,
} from './gemini-request.ts'

/** Abilities of a Google image model. */
interface GeminiImageModel {
  /** Tokens of one image by size, as named in requests. */
  readonly sizes: Readonly<Record<string, number>>
  readonly ratios: readonly string[]
  /** Thinking levels. Empty if the model has none. */
  readonly thinkingLevels: readonly string[]
  /** Whether the model thinks even without a requested level. */
  readonly alwaysThinks: boolean
  readonly maxReferences: number
  readonly tokensPerReference: number
  /** Pixel sizes at 1K by ratio, if they are not the usual ones. */
  readonly pixels?: PixelTable
}

const TEN_RATIOS = '1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9'.split(' ')
const FOURTEEN_RATIOS = [...TEN_RATIOS, '1:4', '4:1', '1:8', '8:1']

/** Sizes in pixels by ratio. A ratio that a table lacks has the transposed size of its inverse. */
type PixelTable = Readonly<Record<string, readonly [width: number, height: number]>>

const FLASH: GeminiImageModel = {
  sizes: { 512: 747, '1K': 1120, '2K': 1680, '4K': 2520 },
  ratios: FOURTEEN_RATIOS,
  thinkingLevels: ['minimal', 'high'],
  alwaysThinks: false,
  maxReferences: 14,
  tokensPerReference: 1120,
}

const PRO: GeminiImageModel = {
  ...FLASH,
  sizes: { '1K': 1120, '2K': 1120, '4K': 2000 },
  ratios: TEN_RATIOS,
  alwaysThinks: true,
  tokensPerReference: 560,
}

const FLASH_2_5: GeminiImageModel = {
  sizes: { '1K': 1290 },
  ratios: TEN_RATIOS,
  thinkingLevels: [],
  alwaysThinks: false,
  maxReferences: 3,
  tokensPerReference: 258,
  pixels: {
    '1:1': [1024, 1024],
    '2:3': [832, 1248],
    '3:4': [864, 1184],
    '4:5': [896, 1152],
    '9:16': [768, 1344],
    '21:9': [1536, 672],
  },
}

// Pixels at 1K (Gemini API, "Image generation").
const PIXELS_1K: PixelTable = {
  '1:1': [1024, 1024],
  '1:4': [512, 2048],
  '1:8': [384, 3072],
  '2:3': [848, 1264],
  '3:4': [896, 1200],
  '4:5': [928, 1152],
  '9:16': [768, 1376],
  '21:9': [1584, 672],
}

// These are not simply halves of 1K. The published size of 21:9 does not fit its ratio, so half of 1K is used.
const PIXELS_512: PixelTable = {
  '1:1': [512, 512],
  '1:4': [256, 1024],
  '1:8': [192, 1536],
  '2:3': [424, 632],
  '3:4': [448, 600],
  '4:5': [464, 576],
  '9:16': [384, 688],
  '21:9': [792, 336],
}

/** Returns the facts of a model. An unknown id gets the widest ones. */
export function geminiImageModel(model: string): GeminiImageModel {
  if (model.startsWith('gemini-2.5')) return FLASH_2_5
  return model.includes('-pro') ? PRO : FLASH
}

/** Image to draw, in the terms of requests. */
interface GeminiPictureOptions {
  readonly model: string
  /** Size as named in requests. Default 1K. The model must support it and the ratio. */
  readonly size: string | undefined
  /** Aspect ratio. Default 1:1. */
  readonly ratio: string | undefined
  /** `image/png`. Anything else produces JPEG. */
  readonly mimeType?: string | undefined
  /** Seed of the content. Equal seeds produce equal images. */
  readonly seed: string
}

/** Draws an image in the model's pixel size for a size and a ratio (Gemini API, "Image generation"), and counts its tokens. */
export function geminiPicture({ model: id, size = '1K', ratio = '1:1', mimeType, seed }: GeminiPictureOptions) {
  const model = geminiImageModel(id)
  const table = size === '512' ? PIXELS_512 : (model.pixels ?? PIXELS_1K)
  const scale = size === '512' ? 1 : Number.parseInt(size, 10)
  const [height = 1024, width = 1024] = table[ratio.split(':').reverse().join(':')] ?? []
  const [x, y] = table[ratio] ?? [width, height]
  const format = mimeType === 'image/png' ? 'png' : 'jpeg'
  const bytes = drawPicture({ width: x * scale, height: y * scale, format, seed })
  const base64 = Buffer.from(bytes).toString('base64')
  return { mimeType: `image/${format}`, base64, tokens: model.sizes[size] ?? 0 }
}

const CAPTION = 'Here is your picture.'

/** Whether a `generateContent` request asks for an image. */
function asksForPicture(request: Fields): boolean {
  return asList(field(field(request, 'generationConfig'), 'responseModalities')).includes('IMAGE')
}

/** Returns the response object with an image: the whole answer, and the only chunk of a streamed one. */
function generatedImage(request: Fields, model: string, context: AnswerContext): Fields {
  const prompt = readContentsPrompt(request)
  const config = field(request, 'generationConfig')
  const promptTokens = countTokens(prompt.texts) + prompt.lastUserImages * geminiImageModel(model).tokensPerReference
  if (context.blocked) {
    // The image filter returns an empty candidate with its explanation.
    const finishMessage = 'Unable to show the generated image.'
    const blocked = { content: {}, finishReason: 'IMAGE_SAFETY', finishMessage, index: 0 }
    return response(model, context, blocked, { promptTokenCount: promptTokens, totalTokenCount: promptTokens })
  }
  const imageConfig = field(config, 'imageConfig')
  const size = checked(field(imageConfig, 'imageSize'), Object.keys(geminiImageModel(model).sizes), 'image_size')
  const ratio = checked(field(imageConfig, 'aspectRatio'), geminiImageModel(model).ratios, 'aspect_ratio')
  const picture = geminiPicture({ model, size, ratio, seed: prompt.lastUserText })
  const hasText = asList(field(config, 'responseModalities')).includes('TEXT')
  const outputTokens = picture.tokens + (hasText ? countTokens([CAPTION]) : 0)
  const inlineData = { mimeType: picture.mimeType, data: picture.base64 }
  const image = { inlineData, thoughtSignature: thoughtSignature(context.id) }
  const parts = [...(hasText ? [{ text: CAPTION }] : []), image]
  const candidate = { content: { parts, role: 'model' }, finishReason: 'STOP', index: 0 }
  const usage = {
    promptTokenCount: promptTokens,
    candidatesTokenCount: outputTokens,
    totalTokenCount: promptTokens + outputTokens,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokens }],
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: picture.tokens }],
  }
  return response(model, context, candidate, usage)
}

function response(model: string, context: AnswerContext, candidate: Fields, usage: Fields): Fields {
  const usageMetadata = context.usage(usage)
  return { candidates: [candidate], usageMetadata, modelVersion: model, responseId: context.id }
}

function checked(value: unknown, offered: readonly string[], name: string): string | undefined {
  if (value === undefined) return undefined
  const text = asText(value)
  if (!offered.includes(text))
    refuseGemini(`Invalid value at 'generation_config.image_config.${name}', ${JSON.stringify(value)}`)
  return text
}

/** Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, the latter with `alt=sse` or without. */
export const GEMINI_GENERATE = geminiOperation({
  operation: 'chat',
  post: methodPath('generateContent|streamGenerateContent'),
  prompt: (request) => readContentsPrompt(request).lastUserText,
  answer(call, context, request, [id = '', method]) {
    const model = decodeURIComponent(id)
    checkGeminiConfig(request, model)
    checkGeminiContents(request, model)
    const isWhole = method === 'generateContent'
    if (asksForPicture(request)) {
      const response = generatedImage(request, model, context)
      if (isWhole) return jsonReply(200, GEMINI_HEADERS, response, 2)
      return streamReply(GEMINI_HEADERS, [googleEvent(response)], googleEvent(response))
    }
    const thinking = field(field(request, 'generationConfig'), 'thinkingConfig')
    const turn = chatTurn(readContentsPrompt(request), context)
    const parts = { model, turn, context, showsThoughts: field(thinking, 'includeThoughts') === true }
    if (isWhole) return jsonReply(200, GEMINI_HEADERS, wholeContent(parts), 2)
    // Google's event streams have no end mark.
    const chunks = contentChunks(parts)
    const filler = answer(parts, [{ text: ' more' }], undefined, { promptTokenCount: turn.usage.prompt })
    if (new URLSearchParams(call.query).get('alt') === 'sse') {
      const reply = streamReply([], chunks.map(googleEvent), googleEvent(filler))
      return { ...reply, headers: ['content-type', 'text/event-stream', ...GEMINI_HEADERS] }
    }
    // Without `alt=sse`, the stream is one growing JSON list.
    const pieces = chunks.map((chunk, index) => `${index === 0 ? '[' : ',\r\n'}${JSON.stringify(chunk, null, 2)}`)
    const list = fileReply('application/json; charset=UTF-8', '', GEMINI_HEADERS)
    return { ...list, pieces: [...pieces, ']'], streamed: true, filler: `,\r\n${JSON.stringify(filler)}` }
  },
})

/** Gemini: `POST /v1beta/models/{model}:countTokens`, with `contents` or a whole `generateContentRequest`. */
export const GEMINI_COUNT_TOKENS = geminiOperation({
  operation: 'count-tokens',
  post: methodPath('countTokens'),
  prompt: (request) => readContentsPrompt(countedRequest(request)).lastUserText,
  json(_call, _context, request, [id = '']) {
    const counted = countedRequest(request)
    checkGeminiContents(counted, decodeURIComponent(id))
    const totalTokens = countTokens(readContentsPrompt(counted).texts)
    return { totalTokens, promptTokensDetails: [{ modality: 'TEXT', tokenCount: totalTokens }] }
  },
})

function countedRequest(request: Fields): Fields {
  const inner = field(request, 'generateContentRequest')
  return isGiven(inner) ? asObject(inner) : request
}

/** Inputs of an answer. */
interface ContentParts {
  readonly model: string
  readonly turn: ChatTurn
  readonly context: AnswerContext
  /** `includeThoughts` of the request. */
  readonly showsThoughts: boolean
}

/** Returns the whole answer. */
function wholeContent(parts: ContentParts): Fields {
  const { turn } = parts
  if (turn.ending === 'blocked') return blockedAnswer(parts)
  const thoughts = shownThoughts(parts).join('')
  const text = turn.words.join('')
  return answer(
    parts,
    [
      ...(thoughts === '' ? [] : [{ text: thoughts, thought: true }]),
      ...(text === '' ? [] : [{ text, ...textSignature(parts) }]),
      ...callParts(parts),
    ],
    finishReason(turn),
    usageOf(turn),
  )
}

/** Returns the chunks of a streamed answer, each a whole response object. The last one has the finish reason. */
function contentChunks(parts: ContentParts): Fields[] {
  const { turn } = parts
  if (turn.ending === 'blocked') return [blockedAnswer(parts)]
  const soFar = { promptTokenCount: turn.usage.prompt, totalTokenCount: turn.usage.prompt }
  const pieces: Fields[] = [
    ...shownThoughts(parts).map((text) => ({ text, thought: true })),
    ...turn.words.map((text) => ({ text })),
    ...callParts(parts),
  ]
  const last = answer(parts, [{ text: '', ...textSignature(parts) }], finishReason(turn), usageOf(turn))
  return [...pieces.map((piece) => answer(parts, [piece], undefined, soFar)), last]
}

function answer(
  parts: ContentParts,
  contentParts: readonly Fields[],
  finish: string | undefined,
  usage: Fields,
): Fields {
  // An empty answer has no parts at all.
  const content = contentParts.length === 0 ? { role: 'model' } : { parts: contentParts, role: 'model' }
  return {
    candidates: [{ content, ...(finish === undefined ? {} : { finishReason: finish }), index: 0 }],
    usageMetadata: parts.context.usage(usage),
    modelVersion: parts.model,
    responseId: parts.context.id,
  }
}

function blockedAnswer({ model, turn, context }: ContentParts): Fields {
  return {
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
    usageMetadata: context.usage({ promptTokenCount: turn.usage.prompt, totalTokenCount: turn.usage.prompt }),
    modelVersion: model,
    responseId: context.id,
  }
}

function shownThoughts({ turn, showsThoughts }: ContentParts): readonly string[] {
  return showsThoughts ? turn.reasoning : []
}

function textSignature({ model, turn, context }: ContentParts): Fields {
  const isSigned = signsThoughts(model) && turn.reasoning.length > 0 && turn.toolCalls.length === 0
  return isSigned ? { thoughtSignature: thoughtSignature(context.id) } : {}
}

/** Returns the calls. Only the first of parallel ones is signed, and older models give no ids. */
function callParts({ model, turn, context }: ContentParts): Fields[] {
  const signs = signsThoughts(model)
  return turn.toolCalls.map((call, index) => ({
    functionCall: {
      ...(signs ? { id: `${context.id.slice(0, 8)}${index}` } : {}),
      name: call.name,
      args: call.arguments,
    },
    ...(signs && index === 0 ? { thoughtSignature: thoughtSignature(context.id) } : {}),
  }))
}

function finishReason(turn: ChatTurn): string {
  return turn.ending === 'length' ? 'MAX_TOKENS' : 'STOP'
}

/** The candidates' count excludes thoughts, the prompt's includes cached tokens. Zero counts are omitted. */
function usageOf({ usage }: ChatTurn): Fields {
  const candidates = usage.completion - usage.reasoning
  return {
    promptTokenCount: usage.prompt,
    ...(candidates > 0 ? { candidatesTokenCount: candidates } : {}),
    totalTokenCount: usage.prompt + usage.completion,
    ...(usage.cached > 0 ? { cachedContentTokenCount: usage.cached } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.prompt }],
    ...(usage.reasoning > 0 ? { thoughtsTokenCount: usage.reasoning } : {}),
  }
}

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

/** Operations of Gemini that store nothing. A transcription is a chat, and comes first. */
export const GEMINI_OPERATIONS: readonly SandboxOperation[] = [
  GEMINI_TRANSCRIPTIONS,
  GEMINI_GENERATE,
  GEMINI_EMBEDDINGS,
  GEMINI_COUNT_TOKENS,
]
