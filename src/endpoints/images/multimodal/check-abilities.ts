import type { ImageAbilities } from '../../model-facts.ts'
import { invalidParameter } from './invalid-parameter.ts'
import type { MultimodalImageRequest } from './multimodal-image-request.ts'
import { referenceImages } from './picture-size.ts'

const CONTENT = 'input.messages[0].content'

/**
 * Checks a request against what its model can do. What is not known of a model is left to the vendor.
 * @throws GatewayError `invalid_request` with the code `InvalidParameter`, naming the field.
 */
export function checkAbilities(request: MultimodalImageRequest, abilities: ImageAbilities): void {
  checkReferences(referenceImages(request).length, abilities.referenceImages)
  const given: Readonly<Record<string, unknown>> = request.parameters ?? {}
  for (const field of abilities.refusedFields ?? []) {
    if (Object.hasOwn(given, field)) throw invalidParameter(`parameters.${field}`, 'this model does not take it')
  }
  const size = request.parameters?.size
  if (size === undefined || abilities.sizes === undefined || abilities.sizes.includes(size)) return
  throw invalidParameter('parameters.size', `must be one of ${abilities.sizes.join(', ')}`)
}

function checkReferences(count: number, bounds: ImageAbilities['referenceImages']): void {
  if (bounds === undefined || (count >= bounds.min && count <= bounds.max)) return
  const { min, max } = bounds
  const range = min === max ? String(max) : `${min} to ${max}`
  const rule = max === 0 ? 'takes no reference images' : `${min === 0 ? 'takes' : 'needs'} ${range} reference images`
  throw invalidParameter(CONTENT, `this model ${rule}, and the request has ${count}`)
}
