import type { ModelFacts } from '../../model-facts.ts'
import type { MultimodalImageRequest } from './multimodal-image-request.ts'

/** API specification, "Multimodal image request": default of `parameters.size`. */
const DEFAULT_SIZE = '1024*1024'

/** URLs of the reference pictures, each with its place in the content. */
export function referenceImages(request: MultimodalImageRequest): readonly { url: string; position: number }[] {
  return request.input.messages[0].content.flatMap(({ image }, position) =>
    image === undefined ? [] : [{ url: image, position }],
  )
}

/**
 * Size of the picture to be made, as callers write it: `1024*1024`. For text to image it is never left to the vendor, whose
 * own default is larger than the one that is billed. Undefined for an edit that names none: the picture follows the last
 * reference.
 */
export function pictureSize(request: MultimodalImageRequest, model: ModelFacts): string | undefined {
  const asked = request.parameters?.size
  if (asked !== undefined) return asked
  return referenceImages(request).length > 0 ? undefined : (model.image?.defaultSize ?? DEFAULT_SIZE)
}
