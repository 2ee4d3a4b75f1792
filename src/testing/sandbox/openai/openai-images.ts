import { Buffer } from 'node:buffer'
import { type ImageHeader, imageHeader } from '../../../wire/image-header.ts'
import { sseEvent } from '../../../wire/sse.ts'
import { drawPicture, type PictureRequest } from '../files/draw-picture.ts'
import { pictureLink } from '../files/stored-files.ts'
import { countTokens } from '../model/chat-turn.ts'
import { formParts } from '../openai-dialect/form-parts.ts'
import { asObject, asText } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  jsonReply,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, refuseRepeatedParts } from './openai-errors.ts'
import {
  checkedOrder,
  type PictureOrder,
  type ReceivedEdit,
  type ReceivedFile,
  receivedEdit,
  refuse,
} from './openai-images-request.ts'

const MAX_IMAGES = 16

/** OpenAI: `POST /v1/images/generations`. */
export const OPENAI_IMAGES: SandboxOperation = {
  vendor: 'openai',
  operation: 'images',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/images/generations',
  promptText: (body) => asText(asObject(body)['prompt']),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const order = checkedOrder(asObject(call.body))
    checkModeration(context)
    return pictureAnswer(order, { call, context, eventPrefix: 'image_generation', givenPictures: 0 })
  },
}

/** OpenAI: `POST /v1/images/edits`, as a form or, for GPT Image models, as JSON. */
export const OPENAI_IMAGE_EDITS: SandboxOperation = {
  vendor: 'openai',
  operation: 'image-edits',
  errors: OPENAI_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/images/edits',
  promptText: (body, call) => asText(receivedEdit(call, body).fields['prompt']),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    refuseRepeatedParts(formParts(call), ['image'])
    const edit = receivedEdit(call, call.body)
    const order = checkedOrder(edit.fields)
    if (order.model === 'dall-e-3')
      refuse("Invalid value: 'dall-e-3'. Value must be 'dall-e-2'.", 'model', 'invalid_value')
    checkPictures(edit, order.isLegacy)
    checkModeration(context)
    const givenPictures = edit.images.length + (edit.mask === undefined ? 0 : 1)
    return pictureAnswer(order, { call, context, eventPrefix: 'image_edit', givenPictures })
  },
}

function checkModeration({ blocked }: AnswerContext): void {
  if (!blocked) return
  refuse('Your request was rejected by the safety system.', null, 'moderation_blocked')
}

function checkPictures({ images, mask, isForm }: ReceivedEdit, isLegacy: boolean): void {
  const field = isForm ? 'image' : 'images'
  if (images.length === 0) refuse(`Missing required parameter: '${field}'.`, field, 'missing_required_parameter')
  if (isLegacy && !isForm) refuse("Unknown parameter: 'images'.", 'images', 'unknown_parameter')
  if (images.length > (isLegacy ? 1 : MAX_IMAGES)) {
    refuse(`Invalid '${field}': array too long.`, field, 'array_above_max_length')
  }
  const [first] = images.map((image) => (image === undefined ? undefined : checkedHeader(image, field)))
  if (mask === undefined || mask === null) return
  const header = checkedHeader(mask, 'mask')
  if (header.format !== 'png') refuse('Invalid mask image format - mask must be a PNG file.', 'mask')
  if (first !== undefined && (header.width !== first.width || header.height !== first.height)) {
    refuse('Invalid mask image format - mask size does not match image size.', 'mask')
  }
}

function checkedHeader(file: ReceivedFile, field: string): ImageHeader {
  const header = imageHeader([file.bytes])
  if (header !== undefined) return header
  const formats = "Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'."
  return refuse(`Invalid file '${field}': unsupported mimetype ('${file.contentType}'). ${formats}`, field)
}

/** Inputs of the answer other than the order. */
export interface PictureAnswerOptions {
  readonly call: SandboxCall
  readonly context: AnswerContext
  /** Prefix of the event names in a stream. */
  readonly eventPrefix: 'image_generation' | 'image_edit'
  /** Number of given images, including the mask. */
  readonly givenPictures: number
}

/** Output tokens of 1024x1024 pixels (OpenAI, guide to image generation); other sizes count by their pixels. */
const SQUARE_TOKENS = { low: 272, medium: 1056, high: 4160, xhigh: 6240, max: 8320 } as const
const SQUARE_PIXELS = 1024 * 1024
const PARTIAL_TOKENS = 100
/** Tokens of one tile and the base of a small image. */
const GIVEN_PICTURE_TOKENS = 194

/** Draws the requested images and writes the vendor's answer. */
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
