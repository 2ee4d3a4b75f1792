import { Buffer } from 'node:buffer'
import { sseEvent } from '../../../wire/sse.ts'
import { pictureLink } from '../files/picture-files.ts'
import { countTokens } from '../model/words.ts'
import { drawPicture, type PictureRequest } from '../pictures/draw-picture.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import { type AnswerContext, jsonReply, type SandboxReply, streamReply } from '../sandbox-operation.ts'
import { OPENAI_HEADERS } from './openai-errors.ts'
import type { PictureOrder } from './openai-images-checks.ts'

/** What the answer depends on besides the order. */
export interface PictureAnswerOptions {
  readonly call: SandboxCall
  readonly context: AnswerContext
  /** Names the events of a stream. */
  readonly eventPrefix: 'image_generation' | 'image_edit'
  /** Pictures that were given, the mask among them. */
  readonly givenPictures: number
}

/** Output tokens of 1024x1024 pixels (OpenAI, guide to image generation); other sizes count by their pixels. */
const SQUARE_TOKENS = { low: 272, medium: 1056, high: 4160 } as const
const SQUARE_PIXELS = 1024 * 1024
const PARTIAL_TOKENS = 100
/** One tile and the base of a small picture. */
const GIVEN_PICTURE_TOKENS = 194

/** Draws what was ordered, and words the answer as the vendor does. */
export function pictureAnswer(order: PictureOrder, options: PictureAnswerOptions): SandboxReply {
  if (order.isStream && !order.isLegacy) return streamedAnswer(order, options)
  const { context, call } = options
  const created = Math.floor(context.nowMs / 1000)
  const data = Array.from({ length: order.count }, (_, index) => {
    const picture = pictureRequest(order, context, index)
    return order.wantsUrl ? { url: pictureLink(call, picture, context.nowMs) } : { b64_json: base64(picture) }
  })
  if (order.isLegacy) return jsonReply(200, OPENAI_HEADERS, { created, data })
  return jsonReply(200, OPENAI_HEADERS, {
    created,
    ...looks(order),
    data,
    usage: context.usage(usageOf(order, options, order.count, 0)),
  })
}

function streamedAnswer(order: PictureOrder, options: PictureAnswerOptions): SandboxReply {
  const { context, eventPrefix } = options
  const common = { created_at: Math.floor(context.nowMs / 1000), ...looks(order) }
  const event = (name: string, payload: object): string => {
    const type = `${eventPrefix}.${name}`
    return sseEvent(type, JSON.stringify({ type, ...payload, ...common }))
  }
  const pieces: string[] = []
  for (let index = 0; index < order.count; index++) {
    for (let partial = 0; partial < order.partials; partial++) {
      const b64_json = base64(pictureRequest(order, context, index, `${partial}`))
      pieces.push(event('partial_image', { b64_json, partial_image_index: partial }))
    }
    const usage = context.usage(usageOf(order, options, 1, order.partials))
    pieces.push(event('completed', { b64_json: base64(pictureRequest(order, context, index)), usage }))
  }
  const small = base64({ width: 16, height: 16, format: order.format, seed: context.id })
  return streamReply(OPENAI_HEADERS, pieces, event('partial_image', { b64_json: small, partial_image_index: 0 }))
}

function pictureRequest(order: PictureOrder, context: AnswerContext, index: number, stage = ''): PictureRequest {
  const seed = [context.id, ...(index === 0 ? [] : [index]), ...(stage === '' ? [] : [`p${stage}`])].join('.')
  return { width: order.width, height: order.height, format: order.format, seed }
}

function base64(picture: PictureRequest): string {
  return Buffer.from(drawPicture(picture)).toString('base64')
}

function looks({ background, format, quality, width, height }: PictureOrder): object {
  return { background, output_format: format, quality, size: `${width}x${height}` }
}

function usageOf(
  order: PictureOrder,
  { givenPictures }: PictureAnswerOptions,
  count: number,
  partials: number,
): object {
  const text = countTokens([order.prompt])
  const given = givenPictures * GIVEN_PICTURE_TOKENS
  const perPicture = Math.ceil((SQUARE_TOKENS[order.quality] * order.width * order.height) / SQUARE_PIXELS)
  const drawn = count * (perPicture + partials * PARTIAL_TOKENS)
  return {
    input_tokens: text + given,
    input_tokens_details: { text_tokens: text, image_tokens: given },
    output_tokens: drawn,
    output_tokens_details: { image_tokens: drawn, text_tokens: 0 },
    total_tokens: text + given + drawn,
  }
}
