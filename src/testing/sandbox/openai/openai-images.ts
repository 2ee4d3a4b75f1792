import { Buffer } from 'node:buffer'
import { type ImageHeader, imageHeader } from '../../../wire/image-header.ts'
import { sseEvent } from '../../../wire/sse.ts'
import { drawPicture, type PictureRequest } from '../files/draw-image.ts'
import { pictureLink } from '../files/stored-files.ts'
import { countTokens } from '../model/chat-turn.ts'
import { checkRanges } from '../openai-dialect/chat.ts'
import { type FormPart, formParts } from '../openai-dialect/form-parts.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  type IncomingCall,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid, refuseRepeatedParts } from './openai-models.ts'

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

/** The image to draw, with every `auto` resolved. */
interface PictureOrder {
  readonly model: string
  readonly prompt: string
  readonly count: number
  readonly width: number
  readonly height: number
  readonly quality: 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  readonly format: 'png' | 'jpeg' | 'webp'
  readonly background: string
  readonly isStream: boolean
  readonly partials: number
  /** Whether the model is of the older family: no tokens, and links by default. */
  readonly isLegacy: boolean
  readonly wantsUrl: boolean
}

const RANGES = { n: [1, 10], output_compression: [0, 100], partial_images: [0, 3] } as const
const FREE_SIZES = /^gpt-image-(?:2|[3-9])/
const IMAGE_MODELS = /^(?:gpt-image-\d|chatgpt-image-|dall-e-[23]$)/
const LISTED_SIZES = ['1024x1024', '1024x1536', '1536x1024', 'auto']
const QUALITIES = ['low', 'medium', 'high', 'auto']
const GPT_IMAGE_FIELDS = [
  'output_format',
  'background',
  'output_compression',
  'moderation',
  'partial_images',
  'input_fidelity',
]
/** Longest prompt, sizes, qualities and most images of the older models (OpenAI API reference, images). */
const LEGACY = {
  'dall-e-2': { prompt: 1000, sizes: ['256x256', '512x512', '1024x1024'], qualities: ['standard'], count: 10 },
  'dall-e-3': { prompt: 4000, sizes: ['1024x1024', '1792x1024', '1024x1792'], qualities: ['standard', 'hd'], count: 1 },
} as const
const MAX_SIDE = 3840
const MAX_PIXELS = 3840 * 2160

/**
 * Checks the fields that text to image and edits share (OpenAI API reference, images).
 * @throws RefusedCall with the vendor's text.
 */
function checkedOrder(fields: Fields): PictureOrder {
  const model = asText(fields['model'])
  const prompt = asText(fields['prompt'])
  if (model === '') refuse('you must provide a model parameter', 'model')
  if (prompt === '') refuse("Missing required parameter: 'prompt'.", 'prompt', 'missing_required_parameter')
  if (!IMAGE_MODELS.test(model)) refuse(`The model '${model}' does not exist.`, 'model', 'invalid_value')
  const legacy = model === 'dall-e-2' || model === 'dall-e-3' ? LEGACY[model] : undefined
  if (prompt.length > (legacy?.prompt ?? 32_000))
    refuse("Invalid 'prompt': string too long.", 'prompt', 'string_above_max_length')
  checkRanges(fields, RANGES, openaiInvalid)
  const isLegacy = legacy !== undefined
  if ((asNumber(fields['n']) ?? 1) > (legacy?.count ?? 10)) refuse('You must provide n=1 for this model.', null)
  const size = isLegacy ? chosen(fields, 'size', legacy.sizes, '1024x1024') : checkedSize(fields, model)
  const quality = isLegacy
    ? chosen(fields, 'quality', legacy.qualities, 'standard')
    : chosen(fields, 'quality', qualitiesOf(model), 'auto')
  const unknown = isLegacy ? GPT_IMAGE_FIELDS : ['response_format']
  for (const name of [...unknown, ...(model === 'dall-e-3' ? [] : ['style'])]) {
    if (fields[name] !== undefined) refuse(`Unknown parameter: '${name}'.`, name, 'unknown_parameter')
  }
  if (isLegacy && fields['stream'] === true)
    refuse("The 'stream' parameter is not supported with this model.", 'stream', 'invalid_value')
  chosen(fields, 'style', ['vivid', 'natural'], 'vivid')
  const format = chosen(fields, 'output_format', ['png', 'jpeg', 'webp'], 'png') as PictureOrder['format']
  const background = chosen(fields, 'background', ['transparent', 'opaque', 'auto'], 'auto')
  if (background === 'transparent' && format === 'jpeg') {
    refuse('Transparent background is not supported for JPEG output format.', 'background', 'invalid_value')
  }
  if (!isLegacy) chosen(fields, 'moderation', ['auto', 'low'], 'auto')
  const [width = 1024, height = 1024] = size === 'auto' ? [] : size.split('x').map(Number)
  return {
    model,
    prompt,
    count: asNumber(fields['n']) ?? 1,
    width,
    height,
    quality: quality === 'auto' || isLegacy ? 'medium' : (quality as PictureOrder['quality']),
    format,
    background: background === 'auto' ? 'opaque' : background,
    isStream: fields['stream'] === true,
    partials: asNumber(fields['partial_images']) ?? 0,
    isLegacy,
    wantsUrl: isLegacy && chosen(fields, 'response_format', ['url', 'b64_json'], 'url') === 'url',
  }
}

/** GPT Image 2.5 and later models also have two higher qualities (types of OpenAI's SDK 7.59). */
function qualitiesOf(model: string): readonly string[] {
  return /^gpt-image-(?:2\.|[3-9])/.test(model) ? [...QUALITIES, 'xhigh', 'max'] : QUALITIES
}

/** @throws RefusedCall always. */
function refuse(message: string, param: string | null, code: string | null = null): never {
  throw new RefusedCall(openaiInvalid(message, param, code))
}

function chosen(fields: Fields, name: string, values: readonly string[], usual: string): string {
  const value = fields[name]
  if (!isGiven(value)) return usual
  if (typeof value === 'string' && values.includes(value)) return value
  const list = values.map((one) => `'${one}'`).join(', ')
  return refuse(`Invalid value: '${String(value)}'. Supported values are: ${list}.`, name, 'invalid_value')
}

function checkedSize(fields: Fields, model: string): string {
  const size = fields['size']
  const match = /^(\d{1,5})x(\d{1,5})$/.exec(asText(size))
  if (match === null || !FREE_SIZES.test(model)) return chosen(fields, 'size', LISTED_SIZES, 'auto')
  const [width, height] = [Number(match[1]), Number(match[2])]
  const fault = (text: string): never => refuse(`Invalid size '${asText(size)}'. ${text}`, 'size', 'invalid_value')
  if (width % 16 !== 0 || height % 16 !== 0) fault('Width and height must both be divisible by 16.')
  const [longer, shorter] = [Math.max(width, height), Math.min(width, height)]
  if (longer > shorter * 3) fault('The aspect ratio must be between 1:3 and 3:1.')
  if (longer > MAX_SIDE || width * height > MAX_PIXELS)
    fault('The requested resolution exceeds the current pixel limit.')
  return asText(size)
}

/** A file as the stand-in received it. */
interface ReceivedFile {
  readonly filename: string
  readonly contentType: string
  readonly bytes: Buffer
}

/** An edit request, as form or JSON. */
interface ReceivedEdit {
  /** Text fields as in the JSON form: numbers and booleans are parsed. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly images: readonly (ReceivedFile | undefined)[]
  /** Undefined if there is none. Null if the stand-in cannot read it. */
  readonly mask: ReceivedFile | null | undefined
  readonly isForm: boolean
}

/** Reads an edit. Never throws; unreadable parts are missing. */
function receivedEdit(call: IncomingCall, json: unknown): ReceivedEdit {
  const parts = formParts(call)
  return parts === undefined ? editFromJson(asObject(json)) : editFromForm(parts)
}

function editFromForm(parts: readonly FormPart[]): ReceivedEdit {
  const fields = parts.filter((part) => part.filename === undefined)
  const files = parts.filter((part) => part.filename !== undefined)
  return {
    fields: Object.fromEntries(fields.map((part) => [part.name, fieldValue(part)])),
    images: files.filter((part) => part.name === 'image' || part.name === 'image[]').map(fileOf),
    mask: files.filter((part) => part.name === 'mask').map(fileOf)[0],
    isForm: true,
  }
}

function editFromJson(body: Readonly<Record<string, unknown>>): ReceivedEdit {
  const { images, mask, ...fields } = body
  return {
    fields,
    images: asList(images).map(referencedFile),
    mask: mask === undefined || mask === null ? undefined : (referencedFile(mask) ?? null),
    isForm: false,
  }
}

function referencedFile(reference: unknown): ReceivedFile | undefined {
  const match = /^data:([^;,]*);base64,(.*)$/s.exec(asText(asObject(reference)['image_url']))
  if (match === null) return undefined
  return { filename: '', contentType: match[1] ?? '', bytes: Buffer.from(match[2] ?? '', 'base64') }
}

function fieldValue({ name, bytes }: FormPart): unknown {
  const text = bytes.toString('utf8')
  if (/^(?:n|partial_images|output_compression)$/.test(name) && /^-?\d+$/.test(text)) return Number(text)
  return name === 'stream' && /^(?:true|false)$/.test(text) ? text === 'true' : text
}

function fileOf({ filename, contentType, bytes }: FormPart): ReceivedFile {
  return { filename: filename ?? '', contentType, bytes }
}
