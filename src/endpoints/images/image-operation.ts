import type { PassThroughOperation } from '../operation.ts'
import type { InteractionRequest } from './interactions/interaction-request.ts'
import type { MultimodalImageRequest } from './multimodal/multimodal-image-request.ts'
import type { OpenAIImageRequest } from './openai/openai-image-request.ts'

/** Image generation at one vendor, in its own request shape. Unless the vendor reports `images`, they are counted. */
export type ImageOperation<Request> = PassThroughOperation<Request>

/** Image request shapes that a vendor accepts, by the protocol that the catalog names. */
export interface ImageOperations {
  readonly multimodal?: ImageOperation<MultimodalImageRequest>
  readonly interactions?: ImageOperation<InteractionRequest>
  readonly generations?: ImageOperation<OpenAIImageRequest>
}

/** Part of a vendor that handles image generation. */
export interface ImagesOffer {
  readonly images?: ImageOperations
}
