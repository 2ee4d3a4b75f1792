import type { ModelFacts } from '../../../catalog/model-facts.ts'
import type { Usage } from '../../../core/usage.ts'
import { invalidField } from '../../field-errors.ts'

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
const MAX_PICTURE_TOKENS = 2520
const MAX_REFERENCE_TOKENS = 1120

// The gateway's own allowances for text next to the image, and for thoughts, which the vendor counts as output.
const TEXT_TOKENS = 1024
const THINKING_TOKENS = { high: 8192, usual: 4096 } as const

/** Returns an upper estimate of one interaction: one image, the reference images, some text, and thoughts if any. */
export function estimateInteraction(request: InteractionRequest, textTokens: number, model: ModelFacts): Usage {
  const references = referenceImageCount(request)
  const inputImageTokens = references * (model.image?.inputTokensPerImage ?? MAX_REFERENCE_TOKENS)
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
  return (Object.hasOwn(table, size) ? table[size] : table['default']) ?? MAX_PICTURE_TOKENS
}
