import { Buffer } from 'node:buffer'
import { type ImageHeader, imageHeader } from '../../../wire/image-header.ts'
import { drawPicture, type PictureFormat, type PictureRequest } from '../files/draw-image.ts'
import { pictureLink } from '../files/stored-files.ts'
import { countTokens } from '../model/chat-turn.ts'
import { checkRanges } from '../openai-dialect/chat.ts'
import { formParts } from '../openai-dialect/form-parts.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  eventText,
  type IncomingCall,
  jsonReply,
  type SandboxCall,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { OPENAI_HEADERS, openaiOperation, refuseOpenai, refuseRepeatedParts } from './openai.ts'

const MAX_IMAGES = 16

/** OpenAI: `POST /v1/images/generations`. */
export const OPENAI_IMAGES = openaiOperation({
  operation: 'images',
  post: '/v1/images/generations',
  prompt: ({ prompt }) => asText(prompt),
  answer(call, context, request) {
    const order = checkedOrder(request)
    checkModeration(context)
    return pictureAnswer(order, call, context, 0)
  },
})

/** OpenAI: `POST /v1/images/edits`, as a form or, for GPT Image models, as JSON. */
export const OPENAI_IMAGE_EDITS = openaiOperation({
  operation: 'image-edits',
  post: '/v1/images/edits',
  needsJson: false,
  prompt: (request, call) => asText(receivedEdit(call, request).fields['prompt']),
  answer(call, context, request) {
    refuseRepeatedParts(formParts(call), ['image'])
    const edit = receivedEdit(call, request)
    const order = checkedOrder(edit.fields)
    if (order.model === 'dall-e-3')
      refuseOpenai("Invalid value: 'dall-e-3'. Value must be 'dall-e-2'.", 'model', 'invalid_value')
    checkPictures(edit, order.isLegacy)
    checkModeration(context)
    const givenPictures = edit.images.length + (edit.mask === undefined ? 0 : 1)
    return pictureAnswer(order, call, context, givenPictures)
  },
})

function checkModeration({ blocked }: AnswerContext): void {
  if (blocked) refuseOpenai('Your request was rejected by the safety system.', null, 'moderation_blocked')
}

function checkPictures({ images, mask, isForm }: ReceivedEdit, isLegacy: boolean): void {
  const field = isForm ? 'image' : 'images'
  if (images.length === 0) refuseOpenai(`Missing required parameter: '${field}'.`, field, 'missing_required_parameter')
  if (isLegacy && !isForm) refuseOpenai("Unknown parameter: 'images'.", 'images', 'unknown_parameter')
  if (images.length > (isLegacy ? 1 : MAX_IMAGES))
    refuseOpenai(`Invalid '${field}': array too long.`, field, 'array_above_max_length')
  const [first] = images.map((image) => (image === undefined ? undefined : checkedHeader(image, field)))
  if (mask === undefined || mask === null) return
  const header = checkedHeader(mask, 'mask')
  if (header.format !== 'png') refuseOpenai('Invalid mask image format - mask must be a PNG file.', 'mask')
  if (first !== undefined && (header.width !== first.width || header.height !== first.height))
    refuseOpenai('Invalid mask image format - mask size does not match image size.', 'mask')
}

function checkedHeader(file: ReceivedFile, field: string): ImageHeader {
  const header = imageHeader([file.bytes])
  if (header !== undefined) return header
  const formats = "Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'."
  return refuseOpenai(`Invalid file '${field}': unsupported mimetype ('${file.contentType}'). ${formats}`, field)
}

/** Output tokens of 1024x1024 pixels (OpenAI, guide to image generation); other sizes count by their pixels. */
const SQUARE_TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160, xhigh: 6240, max: 8320 }
const SQUARE_PIXELS = 1024 * 1024
const PARTIAL_TOKENS = 100
/** Tokens of one tile and the base of a small image. */
const GIVEN_PICTURE_TOKENS = 194

/**
 * Draws the requested images and writes the vendor's answer.
 * @param given Number of given images, including the mask.
 */
function pictureAnswer(order: PictureOrder, call: SandboxCall, context: AnswerContext, given: number): SandboxReply {
  const { count, width, height, format, quality, background, isLegacy } = order
  const created = Math.floor(context.nowMs / 1000)
  const looks = { background, output_format: format, quality, size: `${width}x${height}` }
  const pictureAt = (index: number, stage = ''): PictureRequest => {
    return { width, height, format, seed: `${context.id}${index === 0 ? '' : `.${index}`}${stage}` }
  }
  if (!order.isStream) {
    const data = Array.from({ length: count }, (_, index) => {
      const picture = pictureAt(index)
      return order.wantsUrl ? { url: pictureLink(call, picture, context.nowMs) } : { b64_json: base64(picture) }
    })
    const usage = context.usage(usageOf(order, given, count, 0))
    return jsonReply(200, OPENAI_HEADERS, isLegacy ? { created, data } : { created, ...looks, data, usage })
  }
  const event = (name: string, payload: object): string => {
    const type = `${call.path.endsWith('/edits') ? 'image_edit' : 'image_generation'}.${name}`
    return eventText({ type, ...payload, created_at: created, ...looks }, type)
  }
  const partial = (picture: PictureRequest, index: number): string =>
    event('partial_image', { b64_json: base64(picture), partial_image_index: index })
  const pieces = Array.from({ length: count }, (_, index) => [
    ...Array.from({ length: order.partials }, (_unused, stage) => partial(pictureAt(index, `.p${stage}`), stage)),
    event('completed', {
      b64_json: base64(pictureAt(index)),
      usage: context.usage(usageOf(order, given, 1, order.partials)),
    }),
  ])
  const small = { width: 16, height: 16, format, seed: context.id }
  return streamReply(OPENAI_HEADERS, pieces.flat(), partial(small, 0))
}

function base64(picture: PictureRequest): string {
  return Buffer.from(drawPicture(picture)).toString('base64')
}

function usageOf(order: PictureOrder, givenPictures: number, count: number, partials: number): object {
  const text = countTokens([order.prompt])
  const given = givenPictures * GIVEN_PICTURE_TOKENS
  const square = SQUARE_TOKENS[order.quality] ?? 0
  const drawn = count * (Math.ceil((square * order.width * order.height) / SQUARE_PIXELS) + partials * PARTIAL_TOKENS)
  return {
    input_tokens: text + given,
    input_tokens_details: { text_tokens: text, image_tokens: given },
    output_tokens: drawn,
    output_tokens_details: { image_tokens: drawn, text_tokens: 0 },
    total_tokens: text + given + drawn,
  }
}

const RANGES = { n: [1, 10], output_compression: [0, 100], partial_images: [0, 3] } as const
const IMAGE_MODELS = /^(?:gpt-image-\d|chatgpt-image-|dall-e-[23]$)/

/** Limits and fields of a family of models (OpenAI API reference, images). */
interface ImageFamily {
  readonly maxPrompt: number
  readonly maxImages: number
  /** Fields with a default and the accepted values, separated by spaces. */
  readonly choices: Readonly<Record<string, readonly [usual: string, values: string]>>
  /** Other families' fields, which are unknown here. */
  readonly unknown: readonly string[]
}

const LATER_FIELDS = 'output_format background output_compression moderation partial_images input_fidelity'.split(' ')
const LINKS = ['url', 'url b64_json'] as const
const QUALITIES = 'low medium high auto'

const GPT_IMAGE: ImageFamily = {
  maxPrompt: 32_000,
  maxImages: 10,
  choices: {
    size: ['auto', '1024x1024 1024x1536 1536x1024 auto'],
    quality: ['auto', QUALITIES],
    output_format: ['png', 'png jpeg webp'],
    background: ['auto', 'transparent opaque auto'],
    moderation: ['auto', 'auto low'],
  },
  unknown: ['response_format', 'style'],
}
/** GPT Image 2.5 and later models also have two higher qualities (types of OpenAI's SDK 7.59). */
const LATER_GPT_IMAGE: ImageFamily = {
  ...GPT_IMAGE,
  choices: { ...GPT_IMAGE.choices, quality: ['auto', `${QUALITIES} xhigh max`] },
}
const LEGACY: Readonly<Record<string, ImageFamily>> = {
  'dall-e-2': {
    maxPrompt: 1000,
    maxImages: 10,
    choices: {
      size: ['1024x1024', '256x256 512x512 1024x1024'],
      quality: ['standard', 'standard'],
      response_format: LINKS,
    },
    unknown: [...LATER_FIELDS, 'style'],
  },
  'dall-e-3': {
    maxPrompt: 4000,
    maxImages: 1,
    choices: {
      size: ['1024x1024', '1024x1024 1792x1024 1024x1792'],
      quality: ['standard', 'standard hd'],
      style: ['vivid', 'vivid natural'],
      response_format: LINKS,
    },
    unknown: LATER_FIELDS,
  },
}

/** The image to draw, with every `auto` resolved. */
type PictureOrder = ReturnType<typeof checkedOrder>

/** Checks the fields that text to image and edits share. */
function checkedOrder(fields: Fields) {
  const model = asText(fields['model'])
  const prompt = asText(fields['prompt'])
  if (model === '') refuseOpenai('you must provide a model parameter', 'model')
  if (prompt === '') refuseOpenai("Missing required parameter: 'prompt'.", 'prompt', 'missing_required_parameter')
  if (!IMAGE_MODELS.test(model)) refuseOpenai(`The model '${model}' does not exist.`, 'model', 'invalid_value')
  const isLegacy = LEGACY[model] !== undefined
  const family = LEGACY[model] ?? (/^gpt-image-(?:2\.|[3-9])/.test(model) ? LATER_GPT_IMAGE : GPT_IMAGE)
  if (prompt.length > family.maxPrompt)
    refuseOpenai("Invalid 'prompt': string too long.", 'prompt', 'string_above_max_length')
  checkRanges(fields, RANGES, refuseOpenai)
  const count = asNumber(fields['n']) ?? 1
  if (count > family.maxImages) refuseOpenai('You must provide n=1 for this model.', null)
  const unknown = family.unknown.find((name) => fields[name] !== undefined)
  if (unknown !== undefined) refuseOpenai(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter')
  if (isLegacy && fields['stream'] === true)
    refuseOpenai("The 'stream' parameter is not supported with this model.", 'stream', 'invalid_value')
  const chosen: Record<string, string> = {}
  for (const [name, [usual, values]] of Object.entries(family.choices)) {
    const value = fields[name] ?? usual
    const isFree = name === 'size' && isFreeSize(value, model)
    if (!isFree && !values.split(' ').some((one) => one === value)) {
      const list = values.replaceAll(/\S+/g, "'$&'").replaceAll(' ', ', ')
      refuseOpenai(`Invalid value: '${String(value)}'. Supported values are: ${list}.`, name, 'invalid_value')
    }
    chosen[name] = String(value)
  }
  const { size = '', quality = '', output_format: format = 'png', background = 'auto' } = chosen
  if (background === 'transparent' && format === 'jpeg') {
    const message = 'Transparent background is not supported for JPEG output format.'
    refuseOpenai(message, 'background', 'invalid_value')
  }
  const [width = 1024, height = 1024] = size === 'auto' ? [] : size.split('x').map(Number)
  return {
    model,
    prompt,
    count,
    width,
    height,
    quality: quality === 'auto' || isLegacy ? 'medium' : quality,
    format: format as PictureFormat,
    background: background === 'auto' ? 'opaque' : background,
    isStream: fields['stream'] === true,
    partials: asNumber(fields['partial_images']) ?? 0,
    /** Whether the model is of the older family: no tokens, and links by default. */
    isLegacy,
    wantsUrl: chosen['response_format'] === 'url',
  }
}

const MAX_SIDE = 3840
const MAX_PIXELS = 3840 * 2160

/** Whether a size in pixels is one of a model that draws any size. */
function isFreeSize(size: unknown, model: string): boolean {
  const [, width = 0, height = 0] = /^(\d{1,5})x(\d{1,5})$/.exec(asText(size))?.map(Number) ?? []
  if (width === 0 || !/^gpt-image-(?:2|[3-9])/.test(model)) return false
  const fault = (text: string): never => refuseOpenai(`Invalid size '${size}'. ${text}`, 'size', 'invalid_value')
  if (width % 16 !== 0 || height % 16 !== 0) fault('Width and height must both be divisible by 16.')
  const [longer, shorter] = [Math.max(width, height), Math.min(width, height)]
  if (longer > shorter * 3) fault('The aspect ratio must be between 1:3 and 3:1.')
  if (longer > MAX_SIDE || width * height > MAX_PIXELS)
    fault('The requested resolution exceeds the current pixel limit.')
  return true
}

/** A file as the stand-in received it. */
interface ReceivedFile {
  readonly contentType: string
  readonly bytes: Buffer
}

/** An edit request, as form or JSON. */
interface ReceivedEdit {
  /** Text fields as in the JSON form: numbers and booleans are parsed. */
  readonly fields: Fields
  readonly images: readonly (ReceivedFile | undefined)[]
  /** Undefined if there is none. Null if the stand-in cannot read it. */
  readonly mask: ReceivedFile | null | undefined
  readonly isForm: boolean
}

/** Reads an edit. Never throws; unreadable parts are missing. */
function receivedEdit(call: IncomingCall, { images, mask, ...fields }: Fields): ReceivedEdit {
  const parts = formParts(call)
  if (parts === undefined) {
    const givenMask = isGiven(mask) ? (referencedFile(mask) ?? null) : undefined
    return { fields, images: asList(images).map(referencedFile), mask: givenMask, isForm: false }
  }
  const texts = parts.filter(({ filename }) => filename === undefined)
  const files = parts.filter(({ filename }) => filename !== undefined)
  return {
    fields: Object.fromEntries(texts.map(({ name, bytes }) => [name, fieldValue(name, bytes.toString('utf8'))])),
    images: files.filter(({ name }) => name === 'image' || name === 'image[]'),
    mask: files.find(({ name }) => name === 'mask'),
    isForm: true,
  }
}

function referencedFile(reference: unknown): ReceivedFile | undefined {
  const match = /^data:([^;,]*);base64,(.*)$/s.exec(asText(asObject(reference)['image_url']))
  if (match === null) return undefined
  return { contentType: match[1] ?? '', bytes: Buffer.from(match[2] ?? '', 'base64') }
}

function fieldValue(name: string, text: string): unknown {
  if (/^(?:n|partial_images|output_compression)$/.test(name) && /^-?\d+$/.test(text)) return Number(text)
  return name === 'stream' && /^(?:true|false)$/.test(text) ? text === 'true' : text
}
