import type { PassThroughOperation } from '../operation.ts'
import type { InteractionRequest } from './interactions/interaction-request.ts'
import type { MultimodalImageRequest } from './multimodal/multimodal-image-request.ts'
import type { OpenAIImageRequest } from './openai/openai-image-request.ts'

/**
 * Pictures at one vendor, in the vendor's own request shape. If the vendor does not report `images`, they are counted from
 * the answer.
 */
export type ImageOperation<Request> = PassThroughOperation<Request>

/** The shapes of image generation that a vendor speaks, by the protocol that the catalog names. */
export interface ImageOperations {
  readonly multimodal?: ImageOperation<MultimodalImageRequest>
  readonly interactions?: ImageOperation<InteractionRequest>
  readonly generations?: ImageOperation<OpenAIImageRequest>
}

/** What of a vendor carries out image generation. */
export interface ImagesOffer {
  readonly images?: ImageOperations
}
