import { GatewayError } from '../../../core/errors.ts'
import type { ImageAbilities, ModelFacts } from '../../model-facts.ts'
import { fieldPath } from '../../request-field.ts'
import type { InteractionRequest } from './interaction-request.ts'
import { referenceImageCount } from './reference-images.ts'

const THINKING_LEVELS = ['minimal', 'high']

/**
 * Checks a request against what its model can do (API specification, "Interactions-style image request"). Of a model without
 * stated abilities nothing is checked: its vendor judges.
 * @throws GatewayError `invalid_request` naming the field.
 */
export function checkInteractionAbilities(request: InteractionRequest, model: ModelFacts): void {
  const abilities = model.image
  if (abilities === undefined) return
  for (const path of abilities.refusedFields ?? []) {
    if (memberAt(request, path) !== undefined) throw refusal(path, 'this model does not take it')
  }
  const format = request.response_format
  checkOneOf(format?.image_size, abilities.sizes, ['response_format', 'image_size'])
  checkOneOf(format?.aspect_ratio, abilities.aspectRatios, ['response_format', 'aspect_ratio'])
  checkOneOf(request.generation_config?.thinking_level, THINKING_LEVELS, ['generation_config', 'thinking_level'])
  checkReferenceImages(request, abilities)
}

function checkReferenceImages(request: InteractionRequest, abilities: ImageAbilities): void {
  const count = referenceImageCount(request)
  const { min, max } = abilities.referenceImages ?? { min: 0, max: Number.POSITIVE_INFINITY }
  if (count > max) throw refusal('input', `this model takes at most ${max} images`)
  if (count < min) throw refusal('input', `this model needs at least ${min} images`)
}

function checkOneOf(value: string | undefined, offered: readonly string[] | undefined, path: readonly string[]): void {
  if (value === undefined || offered === undefined || offered.includes(value)) return
  throw refusal(fieldPath(path), `must be one of ${offered.join(', ')} for this model`)
}

function memberAt(value: object, path: string): unknown {
  let member: unknown = value
  for (const name of path.split('.')) {
    if (typeof member !== 'object' || member === null || !Object.hasOwn(member, name)) return undefined
    member = (member as Record<string, unknown>)[name]
  }
  return member
}

function refusal(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${message}`, param })
}
