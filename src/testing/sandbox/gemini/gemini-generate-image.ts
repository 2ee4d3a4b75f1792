import { asList, asText } from '../model/loose-json.ts'
import { countTokens } from '../model/words.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import type { AnswerContext } from '../sandbox-operation.ts'
import { refuseGemini } from './gemini-errors.ts'
import { field } from './gemini-fields.ts'
import { geminiImageModel } from './gemini-image-models.ts'
import { geminiPicture } from './gemini-picture.ts'
import { readContentsPrompt } from './read-contents-prompt.ts'
import { thoughtSignature } from './thought-signature.ts'

type Json = Readonly<Record<string, unknown>>

const CAPTION = 'Here is your picture.'

/** Does a request of `generateContent` ask for a picture? */
export function asksForPicture(body: unknown): boolean {
  return asList(field(field(body, 'generationConfig'), 'responseModalities')).includes('IMAGE')
}

/** The response object with a picture: the whole answer, and the only chunk of a streamed one. */
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

/** The picture filter gives an empty candidate with its explanation. */
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
