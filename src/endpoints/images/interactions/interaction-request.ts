import * as z from 'zod'
import type { ModelFacts } from '../../../catalog/model-facts.ts'
import { onDemand } from '../../../core/maps.ts'
import type { Usage } from '../../../core/usage.ts'
import { invalidField, listOf } from '../../schema.ts'

/** A block of the input: text, or an image as base64 without a `data:` prefix. */
export type InteractionBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mime_type?: string; readonly data?: string; readonly uri?: string }

/** Format of the output. */
export interface InteractionResponseFormat {
  readonly type: 'image'
  readonly mime_type?: string
  /** `512px`, `1K`, `2K` or `4K`. */
  readonly image_size?: string
  readonly aspect_ratio?: string
}

/** A request to a `gmn-*-image*` model (API specification, "Interactions-style image request"). */
export interface InteractionRequest {
  readonly model: string
  readonly input: string | readonly InteractionBlock[]
  readonly system_instruction?: string
  readonly response_format?: InteractionResponseFormat
  readonly generation_config?: { readonly thinking_level?: string; readonly temperature?: number }
  readonly previous_interaction_id?: string
  readonly tools?: readonly { readonly type?: string }[]
  readonly store?: boolean
  readonly service_tier?: string
  readonly stream?: boolean
}

const THINKING_FIELD = 'generation_config.thinking_level'
const THINKING_LEVELS = ['minimal', 'high']

/**
 * Checks a request against the abilities of its model (API specification, "Interactions-style image request"). If they
 * are unknown, the vendor decides.
 * @throws GatewayError `invalid_request` naming the field.
 */
export function checkInteractionAbilities(request: InteractionRequest, model: ModelFacts): void {
  const abilities = model.image
  if (abilities === undefined) return
  for (const path of abilities.refusedFields ?? []) {
    if (memberAt(request, path) !== undefined) throw invalidField(path, 'this model does not support it')
  }
  const format = request.response_format
  checkOneOf(format?.image_size, abilities.sizes, 'response_format.image_size')
  checkOneOf(format?.aspect_ratio, abilities.aspectRatios, 'response_format.aspect_ratio')
  checkOneOf(request.generation_config?.thinking_level, THINKING_LEVELS, THINKING_FIELD)
  const count = referenceImageCount(request)
  const { min, max } = abilities.referenceImages ?? { min: 0, max: Number.POSITIVE_INFINITY }
  if (count > max) throw invalidField('input', `this model accepts at most ${max} images`)
  if (count < min) throw invalidField('input', `this model needs at least ${min} images`)
}

function checkOneOf(value: string | undefined, offered: readonly string[] | undefined, param: string): void {
  if (value === undefined || offered === undefined || offered.includes(value)) return
  throw invalidField(param, `must be one of ${offered.join(', ')} for this model`)
}

function memberAt(value: object, path: string): unknown {
  let member: unknown = value
  for (const name of path.split('.')) {
    if (typeof member !== 'object' || member === null || !Object.hasOwn(member, name)) return undefined
    member = (member as Record<string, unknown>)[name]
  }
  return member
}

// Default of the API specification, "Interactions-style image request".
const DEFAULT_SIZE = '1K'

/** Returns the rendered and billed size: the requested one, else the model's default. */
export function imageSize(request: InteractionRequest, model: ModelFacts): string {
  return request.response_format?.image_size ?? model.image?.defaultSize ?? DEFAULT_SIZE
}

/** Number of images in the input, as data or by address. */
function referenceImageCount({ input }: InteractionRequest): number {
  return typeof input === 'string' ? 0 : input.filter((block) => block.type === 'image').length
}

// Token counts of the vendor's most expensive documented images, for models of unknown abilities.
const MOST_PICTURE_TOKENS = 2520
const MOST_REFERENCE_TOKENS = 1120

// The gateway's own allowances for text next to the image, and for thoughts, which the vendor counts as output.
const TEXT_TOKENS = 1024
const THINKING_TOKENS = { high: 8192, usual: 4096 } as const

/** Returns an upper estimate of one interaction: one image, the reference images, some text, and thoughts if any. */
export function estimateInteraction(request: InteractionRequest, textTokens: number, model: ModelFacts): Usage {
  const references = referenceImageCount(request)
  const inputImageTokens = references * (model.image?.inputTokensPerImage ?? MOST_REFERENCE_TOKENS)
  const most = model.limits.maxOutputTokens ?? Number.POSITIVE_INFINITY
  const outputImageTokens = Math.min(pictureTokens(model, imageSize(request, model)), most)
  return {
    inputTokens: textTokens + inputImageTokens,
    inputImageTokens,
    outputTokens: Math.min(outputImageTokens + TEXT_TOKENS + thinkingTokens(request, model), most),
    outputImageTokens,
    images: 1,
  }
}

function thinkingTokens(request: InteractionRequest, model: ModelFacts): number {
  if (model.image?.refusedFields?.includes(THINKING_FIELD) === true) return 0
  return request.generation_config?.thinking_level === 'high' ? THINKING_TOKENS.high : THINKING_TOKENS.usual
}

/** Output tokens of one image of this size, as an upper bound (Gemini API, "Image generation", table of tokens). */
export function pictureTokens(model: ModelFacts, size: string): number {
  const table = model.image?.outputTokens ?? {}
  return (Object.hasOwn(table, size) ? table[size] : table['default']) ?? MOST_PICTURE_TOKENS
}

const HTTP_URL = /^https?:\/\/./i
const IMAGE_TYPE = /^image\/[\w.+-]+$/i

const block = onDemand(() =>
  z
    .looseObject({
      type: z.enum(['text', 'image']),
      text: z.string().min(1).optional(),
      mime_type: z.string().optional(),
      data: z.string().optional(),
      uri: z.string().optional(),
    })
    .check((context) => {
      const { type, text, mime_type, data, uri } = context.value
      if (type === 'text') {
        if (text === undefined) issue(context, ['text'], 'is required in a text block')
        return
      }
      if (data === undefined && uri === undefined) issue(context, ['data'], 'is required in an image block')
      else if (data !== undefined && uri !== undefined) issue(context, ['uri'], 'cannot be combined with data')
      const dataFault = data === undefined ? undefined : base64Fault(data)
      if (dataFault !== undefined) issue(context, ['data'], dataFault)
      if (uri !== undefined && !HTTP_URL.test(uri)) issue(context, ['uri'], 'must be an http or https URL')
      if (mime_type === undefined) issue(context, ['mime_type'], 'is required in an image block')
      else if (!IMAGE_TYPE.test(mime_type)) issue(context, ['mime_type'], 'must be an image MIME type')
    }),
)

const RESPONSE_FORMAT_FIELDS = ['type', 'mime_type', 'image_size', 'aspect_ratio', 'delivery'] as const

const responseFormat = onDemand(() =>
  z
    .looseObject({
      type: z.literal('image'),
      mime_type: z.string().optional(),
      image_size: z.string().optional(),
      aspect_ratio: z.string().optional(),
    })
    .check((context) => {
      refuseOtherSpellings(context, RESPONSE_FORMAT_FIELDS)
      if (context.value.image_size === '512') issue(context, ['image_size'], 'must be written 512px')
    }),
)

const CONFIG_FIELDS = ['thinking_level', 'temperature', 'image_config', 'candidate_count'] as const

const generationConfig = onDemand(() =>
  z
    .looseObject({
      thinking_level: z.string().optional(),
      temperature: z.number().min(0).max(2).optional(),
    })
    .check((context) => {
      refuseOtherSpellings(context, CONFIG_FIELDS)
      const { image_config, candidate_count } = context.value
      // A field of the vendor's other API: each candidate is another image, and the hold covers one.
      if (isSet(candidate_count) && candidate_count !== 1) issue(context, ['candidate_count'], 'must be 1')
      // The vendor's older place of the size, which would take effect without being billed.
      if (isSet(image_config)) issue(context, ['image_config'], 'is not supported; use response_format')
    }),
)

const REQUEST_FIELDS = [
  'model',
  'input',
  'system_instruction',
  'response_format',
  'generation_config',
  'previous_interaction_id',
  'tools',
  'store',
  'stream',
  'background',
  'service_tier',
  'agent',
  'cached_content',
  'continuation_token',
  'webhook_config',
] as const

/** Fields that refer to state of the operator or of other callers at the vendor. Stored state has no owner here. */
const REFUSED_FIELDS = ['agent', 'cached_content', 'continuation_token', 'webhook_config'] as const

/**
 * Rules of the interactions-style image request. Unknown fields are passed on. Some fields that the vendor knows are
 * rejected: names in camel case, which would bypass the checks here; `background`, because its answer could not be
 * fetched; `agent`, which would answer instead of the billed model; contents and tokens stored at the vendor, possibly
 * by another caller; and `webhook_config`, which would make the vendor call unchecked addresses.
 */
export const interactionSchema = onDemand(() =>
  z
    .looseObject({
      model: z.string().min(1),
      input: z.union([z.string().min(1), listOf(block()).min(1)]),
      system_instruction: z.string().optional(),
      response_format: responseFormat().optional(),
      generation_config: generationConfig().optional(),
      previous_interaction_id: z.string().min(1).optional(),
      tools: listOf(z.looseObject({ type: z.string().optional() })).optional(),
      store: z.boolean().optional(),
      stream: z.boolean().optional(),
      background: z.boolean().optional(),
      service_tier: z.unknown().optional(),
    })
    .check((context) => {
      refuseOtherSpellings(context, REQUEST_FIELDS)
      const { background, previous_interaction_id, store } = context.value
      if (background === true) issue(context, ['background'], 'is not supported')
      for (const name of REFUSED_FIELDS) if (isSet(context.value[name])) issue(context, [name], 'is not supported')
      // Only stored interactions can be continued (Gemini API, "Interactions").
      if (store === false && previous_interaction_id !== undefined)
        issue(context, ['previous_interaction_id'], 'cannot be combined with store false')
    }),
)

interface Checked {
  readonly value: Record<string, unknown>
  readonly issues: unknown[]
}

function issue(context: Checked, path: PropertyKey[], message: string): void {
  context.issues.push({ code: 'custom', path, message, input: context.value })
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Rejects `imageSize` for `image_size`: the vendor may accept both spellings, and only one is checked here. */
function refuseOtherSpellings(context: Checked, fields: readonly string[]): void {
  for (const name of Object.keys(context.value)) {
    if (fields.includes(name)) continue
    const snakeName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    if (fields.includes(snakeName)) issue(context, [name], `must be written ${snakeName}`)
  }
}

const DATA_URL_PREFIX = /^\s*data:/i
// One class without repetition: the search is linear and needs no stack, however long the text is.
const FOREIGN_CHARACTER = /[^A-Za-z0-9+/=_-]/

/** Returns the fault of a base64 image as the end of a sentence, if any. Linear in its length. */
function base64Fault(data: string): string | undefined {
  if (data === '') return 'must not be empty'
  if (DATA_URL_PREFIX.test(data.slice(0, 64))) return 'must be base64 without a data: URI prefix'
  return hasValidEnd(data) && !FOREIGN_CHARACTER.test(data) ? undefined : 'must be base64'
}

/** Padding is optional; if present, it fills the last group of four. */
function hasValidEnd(data: string): boolean {
  const padding = data.indexOf('=')
  if (padding === -1) return data.length % 4 !== 1
  return data.length % 4 === 0 && padding >= data.length - 2 && data.endsWith('=')
}
