import { drawPicture } from '../files/draw-image.ts'
import { countTokens } from '../model/chat-turn.ts'
import { asList, asText } from '../request-fields.ts'
import type { AnswerContext, SandboxCall } from '../sandbox-operation.ts'
import { readContentsPrompt, thoughtSignature } from './gemini-contents.ts'
import { field, refuseGemini } from './gemini-errors.ts'

/** Abilities of a Google image model. */
export interface GeminiImageModel {
  /** Tokens of one image by size, as named in requests. */
  readonly sizes: ReadonlyMap<string, number>
  readonly ratios: readonly string[]
  /** Thinking levels. Empty if the model has none. */
  readonly thinkingLevels: readonly string[]
  /** Whether the model thinks even without a requested level. */
  readonly alwaysThinks: boolean
  readonly maxReferences: number
  readonly tokensPerReference: number
  /** Pixel sizes at 1K by ratio, if they are not the usual ones. */
  readonly pixels?: ReadonlyMap<string, readonly [width: number, height: number]>
}

const TEN_RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9']
const FOURTEEN_RATIOS = [...TEN_RATIOS, '1:4', '4:1', '1:8', '8:1']

const FLASH: GeminiImageModel = {
  sizes: new Map([
    ['512', 747],
    ['1K', 1120],
    ['2K', 1680],
    ['4K', 2520],
  ]),
  ratios: FOURTEEN_RATIOS,
  thinkingLevels: ['minimal', 'high'],
  alwaysThinks: false,
  maxReferences: 14,
  tokensPerReference: 1120,
}

const PRO: GeminiImageModel = {
  sizes: new Map([
    ['1K', 1120],
    ['2K', 1120],
    ['4K', 2000],
  ]),
  ratios: TEN_RATIOS,
  thinkingLevels: ['minimal', 'high'],
  alwaysThinks: true,
  maxReferences: 14,
  tokensPerReference: 560,
}

const FLASH_2_5: GeminiImageModel = {
  sizes: new Map([['1K', 1290]]),
  ratios: TEN_RATIOS,
  thinkingLevels: [],
  alwaysThinks: false,
  maxReferences: 3,
  tokensPerReference: 258,
  pixels: new Map([
    ['1:1', [1024, 1024]],
    ['2:3', [832, 1248]],
    ['3:4', [864, 1184]],
    ['4:5', [896, 1152]],
    ['9:16', [768, 1344]],
    ['21:9', [1536, 672]],
  ]),
}

// Pixels at 1K (Gemini API, "Image generation"); other ratios are transposes.
const PIXELS_1K: ReadonlyMap<string, readonly [width: number, height: number]> = new Map([
  ['1:1', [1024, 1024]],
  ['1:4', [512, 2048]],
  ['1:8', [384, 3072]],
  ['2:3', [848, 1264]],
  ['3:4', [896, 1200]],
  ['4:5', [928, 1152]],
  ['9:16', [768, 1376]],
  ['21:9', [1584, 672]],
])

// These are not simply halves of 1K. The published size of 21:9 does not fit its ratio, so half of 1K is used.
const PIXELS_512: ReadonlyMap<string, readonly [width: number, height: number]> = new Map([
  ['1:1', [512, 512]],
  ['1:4', [256, 1024]],
  ['1:8', [192, 1536]],
  ['2:3', [424, 632]],
  ['3:4', [448, 600]],
  ['4:5', [464, 576]],
  ['9:16', [384, 688]],
  ['21:9', [792, 336]],
])

const SCALES: ReadonlyMap<string, number> = new Map([
  ['1K', 1],
  ['2K', 2],
  ['4K', 4],
])

/** Returns the facts of a model. An unknown id gets the widest ones. */
export function geminiImageModel(model: string): GeminiImageModel {
  if (model.startsWith('gemini-2.5')) return FLASH_2_5
  return model.includes('-pro') ? PRO : FLASH
}

/** Returns width and height of an image. The model must support `size` and `ratio`. */
export function picturePixels(model: GeminiImageModel, size: string, ratio: string): readonly [number, number] {
  const table = size === '512' ? PIXELS_512 : (model.pixels ?? PIXELS_1K)
  const scale = SCALES.get(size) ?? 1
  const [width, height] = table.get(ratio) ?? transposed(table.get(ratio.split(':').reverse().join(':')))
  return [width * scale, height * scale]
}

function transposed(pixels: readonly [number, number] = [1024, 1024]): readonly [number, number] {
  return [pixels[1], pixels[0]]
}

/** Options of the image to draw. */
export interface GeminiPictureOptions {
  readonly model: string
  /** Size as named in requests. Default 1K. */
  readonly size?: string | undefined
  /** Aspect ratio. Default 1:1. */
  readonly ratio?: string | undefined
  /** `image/png`. Anything else produces JPEG. */
  readonly mimeType?: string | undefined
  /** Seed of the content. Equal seeds produce equal images. */
  readonly seed: string
}

/** An image and its cost. */
export interface GeminiPicture {
  readonly mimeType: string
  readonly base64: string
  readonly tokens: number
}

/** Draws an image in the model's pixel size for a size and a ratio (Gemini API, "Image generation"). */
export function geminiPicture(options: GeminiPictureOptions): GeminiPicture {
  const model = geminiImageModel(options.model)
  const size = options.size ?? '1K'
  const [width, height] = picturePixels(model, size, options.ratio ?? '1:1')
  const format = options.mimeType === 'image/png' ? 'png' : 'jpeg'
  const bytes = drawPicture({ width, height, format, seed: options.seed })
  return {
    mimeType: `image/${format}`,
    base64: Buffer.from(bytes).toString('base64'),
    tokens: model.sizes.get(size) ?? 0,
  }
}

type Json = Readonly<Record<string, unknown>>

const CAPTION = 'Here is your picture.'

/** Whether a `generateContent` request asks for an image. */
export function asksForPicture(body: unknown): boolean {
  return asList(field(field(body, 'generationConfig'), 'responseModalities')).includes('IMAGE')
}

/** Returns the response object with an image: the whole answer, and the only chunk of a streamed one. */
export function generatedImage(call: SandboxCall, model: string, context: AnswerContext): Json {
  const prompt = readContentsPrompt(call.body)
  const config = field(call.body, 'generationConfig')
  const promptTokens = countTokens(prompt.texts) + prompt.lastUserImages * geminiImageModel(model).tokensPerReference
  if (context.blocked) return refusal(model, promptTokens, context)
  const imageConfig = field(config, 'imageConfig')
  const size = checked(field(imageConfig, 'imageSize'), [...geminiImageModel(model).sizes.keys()], 'image_size')
  const ratio = checked(field(imageConfig, 'aspectRatio'), geminiImageModel(model).ratios, 'aspect_ratio')
  const picture = geminiPicture({ model, size, ratio, seed: prompt.lastUserText })
  const hasText = asList(field(config, 'responseModalities')).includes('TEXT')
  const outputTokens = picture.tokens + (hasText ? countTokens([CAPTION]) : 0)
  return response(model, context, {
    candidate: {
      content: {
        parts: [
          ...(hasText ? [{ text: CAPTION }] : []),
          {
            inlineData: { mimeType: picture.mimeType, data: picture.base64 },
            thoughtSignature: thoughtSignature(context.id),
          },
        ],
        role: 'model',
      },
      finishReason: 'STOP',
      index: 0,
    },
    usage: {
      promptTokenCount: promptTokens,
      candidatesTokenCount: outputTokens,
      totalTokenCount: promptTokens + outputTokens,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokens }],
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: picture.tokens }],
    },
  })
}

/** The image filter returns an empty candidate with its explanation. */
function refusal(model: string, promptTokens: number, context: AnswerContext): Json {
  return response(model, context, {
    candidate: {
      content: {},
      finishReason: 'IMAGE_SAFETY',
      finishMessage: 'Unable to show the generated image.',
      index: 0,
    },
    usage: { promptTokenCount: promptTokens, totalTokenCount: promptTokens },
  })
}

function response(model: string, context: AnswerContext, answer: { candidate: Json; usage: Json }): Json {
  return {
    candidates: [answer.candidate],
    usageMetadata: context.usage(answer.usage),
    modelVersion: model,
    responseId: context.id,
  }
}

function checked(value: unknown, offered: readonly string[], name: string): string | undefined {
  if (value === undefined) return undefined
  const text = asText(value)
  if (!offered.includes(text)) {
    refuseGemini(`Invalid value at 'generation_config.image_config.${name}', ${JSON.stringify(value)}`)
  }
  return text
}
