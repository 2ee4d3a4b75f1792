import type { ImageAbilities, ModelFacts } from '../../../catalog/model-facts.ts'
import { GatewayError } from '../../../core/errors.ts'
import { invalidField } from '../../field-errors.ts'

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
