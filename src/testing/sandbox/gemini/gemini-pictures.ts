import { drawPicture } from '../files/draw-image.ts'
import { countTokens } from '../model/chat-turn.ts'
import { asList, asText, type Fields } from '../request-fields.ts'
import type { AnswerContext } from '../sandbox-operation.ts'
import { readContentsPrompt, thoughtSignature } from './gemini-contents.ts'
import { field, refuseGemini } from './gemini-errors.ts'

/** Abilities of a Google image model. */
export interface GeminiImageModel {
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
export function asksForPicture(request: Fields): boolean {
  return asList(field(field(request, 'generationConfig'), 'responseModalities')).includes('IMAGE')
}

/** Returns the response object with an image: the whole answer, and the only chunk of a streamed one. */
export function generatedImage(request: Fields, model: string, context: AnswerContext): Fields {
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
