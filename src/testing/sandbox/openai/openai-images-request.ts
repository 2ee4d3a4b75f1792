import { Buffer } from 'node:buffer'
import { checkRanges } from '../openai-dialect/chat-request.ts'
import { type FormPart, formParts } from '../openai-dialect/form-parts.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import { type IncomingCall, RefusedCall } from '../sandbox-operation.ts'
import { openaiInvalid } from './openai-errors.ts'

/** The image to draw, with every `auto` resolved. */
export interface PictureOrder {
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
export function checkedOrder(fields: Fields): PictureOrder {
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
export function refuse(message: string, param: string | null, code: string | null = null): never {
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
export interface ReceivedFile {
  readonly filename: string
  readonly contentType: string
  readonly bytes: Buffer
}

/** An edit request, as form or JSON. */
export interface ReceivedEdit {
  /** Text fields as in the JSON form: numbers and booleans are parsed. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly images: readonly (ReceivedFile | undefined)[]
  /** Undefined if there is none. Null if the stand-in cannot read it. */
  readonly mask: ReceivedFile | null | undefined
  readonly isForm: boolean
}

/** Reads an edit. Never throws; unreadable parts are missing. */
export function receivedEdit(call: IncomingCall, json: unknown): ReceivedEdit {
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
