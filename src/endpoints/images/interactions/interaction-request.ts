import type { ModelFacts } from '../../../catalog/model-facts.ts'
import type { Usage } from '../../../core/usage.ts'
import { invalidField } from '../../field-errors.ts'

/** A block of the input: text, or a picture as base64 without a `data:` prefix. */
export type InteractionBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mime_type?: string; readonly data?: string; readonly uri?: string }

/** What to render. */
export interface InteractionResponseFormat {
  readonly type: 'image'
  readonly mime_type?: string
  /** `512px`, `1K`, `2K`, `4K`. */
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
 * Checks a request against what its model can do (API specification, "Interactions-style image request"). A model of
 * unknown abilities is not checked: its vendor judges.
 * @throws GatewayError `invalid_request` naming the field.
 */
export function checkInteractionAbilities(request: InteractionRequest, model: ModelFacts): void {
  const abilities = model.image
  if (abilities === undefined) return
  for (const path of abilities.refusedFields ?? []) {
    if (memberAt(request, path) !== undefined) throw invalidField(path, 'this model does not take it')
  }
  const format = request.response_format
  checkOneOf(format?.image_size, abilities.sizes, 'response_format.image_size')
  checkOneOf(format?.aspect_ratio, abilities.aspectRatios, 'response_format.aspect_ratio')
  checkOneOf(request.generation_config?.thinking_level, THINKING_LEVELS, THINKING_FIELD)
  const count = referenceImageCount(request)
  const { min, max } = abilities.referenceImages ?? { min: 0, max: Number.POSITIVE_INFINITY }
  if (count > max) throw invalidField('input', `this model takes at most ${max} images`)
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

// API specification, "Interactions-style image request".
const DEFAULT_SIZE = '1K'

/** The rendered and billed size: the requested one, else the model's default. */
export function imageSize(request: InteractionRequest, model: ModelFacts): string {
  return request.response_format?.image_size ?? model.image?.defaultSize ?? DEFAULT_SIZE
}

/** How many pictures the input holds, as data or by address. */
function referenceImageCount({ input }: InteractionRequest): number {
  return typeof input === 'string' ? 0 : input.filter((block) => block.type === 'image').length
}

// For models of unknown abilities: the most expensive pictures that the vendor documents.
const MOST_PICTURE_TOKENS = 2520
const MOST_REFERENCE_TOKENS = 1120

// The gateway's own allowances: text beside the picture, and thoughts, which the vendor counts as output too.
const TEXT_TOKENS = 1024
const THINKING_TOKENS = { high: 8192, usual: 4096 } as const

/** An upper estimate of one interaction: one picture, the reference pictures, some text, and thoughts where it thinks. */
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

/** Output tokens of one picture of this size, from above (Gemini API, "Image generation", table of tokens). */
export function pictureTokens(model: ModelFacts, size: string): number {
  const table = model.image?.outputTokens ?? {}
  return (Object.hasOwn(table, size) ? table[size] : table['default']) ?? MOST_PICTURE_TOKENS
}
