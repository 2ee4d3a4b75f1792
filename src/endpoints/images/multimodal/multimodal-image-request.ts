import * as z from 'zod'
import type { ImageAbilities, ModelFacts } from '../../../catalog/model-facts.ts'
import { GatewayError } from '../../../core/errors.ts'
import { onDemand } from '../../../core/maps.ts'
import { hasAtMost } from '../../character-count.ts'
import { invalidField, listOf } from '../../schema.ts'

/** A block of the prompt: either text or the URL of an image. */
export interface MultimodalBlock {
  readonly text?: string
  readonly image?: string
}

/** A request to a `qw-image-*` model (API specification, "Multimodal image request"). */
export interface MultimodalImageRequest {
  readonly model: string
  readonly input: {
    readonly messages: readonly [{ readonly role: 'user'; readonly content: readonly MultimodalBlock[] }]
  }
  readonly parameters?: {
    /** `1024*1024`. */
    readonly size?: string
    readonly n?: number
    readonly seed?: number
    readonly watermark?: boolean
    readonly negative_prompt?: string
    readonly prompt_extend?: boolean
  }
}

/**
 * Checks a request against its model's abilities. The vendor checks unknown abilities.
 * @throws GatewayError `invalid_request` with the code `InvalidParameter`, naming the field.
 */
export function checkAbilities(request: MultimodalImageRequest, abilities: ImageAbilities): void {
  checkReferences(referenceImages(request).length, abilities.referenceImages)
  const given: Readonly<Record<string, unknown>> = request.parameters ?? {}
  for (const field of unsupportedParameters(request, abilities)) {
    if (IDLE_VALUES.get(field)?.includes(given[field]) === true) continue
    throw invalidParameter(`parameters.${field}`, 'this model does not support it')
  }
  const size = request.parameters?.size
  if (size === undefined || abilities.sizes === undefined || abilities.sizes.includes(size)) return
  throw invalidParameter('parameters.size', `must be one of ${abilities.sizes.join(', ')}`)
}

/** API specification, "Multimodal image request": default of `parameters.size`. */
const DEFAULT_SIZE = '1024*1024'

/** Parameter values that need no support by the model: the defaults of the API specification, and no prompt expansion. */
const IDLE_VALUES: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
  ['size', [DEFAULT_SIZE]],
  ['prompt_extend', [true, false]],
])

/** Returns the parameters that the model does not support. In a checked request they have no effect. */
export function unsupportedParameters(
  { parameters }: MultimodalImageRequest,
  abilities: ImageAbilities | undefined,
): readonly string[] {
  if (parameters === undefined) return []
  return abilities?.refusedFields?.filter((field) => Object.hasOwn(parameters, field)) ?? []
}

function checkReferences(count: number, bounds: ImageAbilities['referenceImages']): void {
  if (bounds === undefined || (count >= bounds.min && count <= bounds.max)) return
  const { min, max } = bounds
  const range = min === max ? String(max) : `${min} to ${max}`
  const rule = max === 0 ? 'takes no reference images' : `${min === 0 ? 'takes' : 'needs'} ${range} reference images`
  throw invalidParameter('input.messages[0].content', `this model ${rule}, and the request has ${count}`)
}

/** Returns the URLs of the reference images, each with its position in the content. */
export function referenceImages(request: MultimodalImageRequest): readonly { url: string; position: number }[] {
  return request.input.messages[0].content.flatMap(({ image }, position) =>
    image === undefined ? [] : [{ url: image, position }],
  )
}

/**
 * Returns the size of the image, as callers write it: `1024*1024`. Text to image always has one, because the vendor's default is
 * larger than the billed one. An edit without a size returns `undefined` and gets the size of its last reference.
 */
export function pictureSize(request: MultimodalImageRequest, model: ModelFacts): string | undefined {
  const asked = request.parameters?.size
  if (asked !== undefined && !unsupportedParameters(request, model.image).includes('size')) return asked
  return referenceImages(request).length > 0 ? undefined : (model.image?.defaultSize ?? DEFAULT_SIZE)
}

/** Code of every error in this shape (API specification, "Errors": multimodal image). */
const INVALID_PARAMETER = 'InvalidParameter'

/** Creates a 400 `InvalidParameter` about one field. `problem` follows the field's name: `is not supported`. */
export function invalidParameter(param: string, problem: string): GatewayError {
  return invalidField(param, problem, INVALID_PARAMETER)
}

/** Runs a check, and adds the code `InvalidParameter` to its `invalid_request` errors. */
export function asInvalidParameter<Result>(check: () => Result): Result {
  try {
    return check()
  } catch (error) {
    if (!GatewayError.isInstance(error) || error.code !== 'invalid_request') throw error
    const { message, param } = error
    throw new GatewayError('invalid_request', { message, param, publicCode: INVALID_PARAMETER, cause: error.cause })
  }
}

/** Longest `negative_prompt`, in characters (code points), as the vendor counts. */
const MAX_NEGATIVE_PROMPT = 500

const LARGEST_SEED = 2 ** 31 - 1

const httpsUrl = onDemand(() =>
  z
    .string()
    .refine(
      (text) => /^https:\/\//i.test(text) && URL.canParse(text),
      'must be an https URL, which the vendor downloads',
    ),
)

const block = onDemand(() =>
  z
    .looseObject({ text: z.string().min(1).optional(), image: httpsUrl().optional() })
    .refine(
      ({ text, image }) => (text === undefined) !== (image === undefined),
      'must hold either text or image, not both',
    ),
)

/** Maximum number of blocks of a message. Current models accept one text and a few images. */
const MAX_BLOCKS = 64

const message = onDemand(() =>
  z.looseObject({
    role: z.literal('user'),
    content: listOf(block(), MAX_BLOCKS).refine(
      (blocks) => blocks.some(({ text }) => text !== undefined),
      'must hold at least one text block',
    ),
  }),
)

const negativePrompt = onDemand(() =>
  z
    .string()
    .refine((text) => hasAtMost(text, MAX_NEGATIVE_PROMPT), `must have at most ${MAX_NEGATIVE_PROMPT} characters`),
)

/**
 * Rules of the multimodal image request (API specification, "Multimodal image request") that hold for every model. Unknown fields
 * are passed on. So are several texts: the vendor rejects them with its own text.
 */
export const multimodalImageSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    input: z.looseObject({ messages: listOf(message()).length(1, 'must hold exactly one message') }),
    parameters: z
      .looseObject({
        size: z
          .string()
          .regex(/^[1-9]\d{0,4}\*[1-9]\d{0,4}$/, 'must be width and height joined by *, such as 1024*1024')
          .optional(),
        n: z.literal(1, 'must be exactly 1').optional(),
        seed: z.int().min(0).max(LARGEST_SEED).optional(),
        watermark: z.boolean().optional(),
        negative_prompt: negativePrompt().optional(),
        prompt_extend: z.boolean().optional(),
      })
      .optional(),
  }),
)
