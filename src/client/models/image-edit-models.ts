import type { ImageEditRequest, PlainImageEditRequest } from './openai-images.ts'

/** A row of {@link ImageEditModels}. */
export interface ImageEditModel<Request = ImageEditRequest> {
  readonly request: Request
}

/** Models on the edits route whose requests are narrowed. Add your own by `declare module 'signalbox/client'`. */
export interface ImageEditModels {
  'gp-image-2': ImageEditModel
  'gp-image-1': ImageEditModel
  'de-2': ImageEditModel<PlainImageEditRequest>
}

/** A request to a model on the edits route that {@link ImageEditModels} does not know. */
export interface OtherImageEditRequest {
  readonly prompt: string
  readonly [field: string]: unknown
}
