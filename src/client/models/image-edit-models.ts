import type { ImageEditRequest, OpenAIImageEditEvent, PlainImageEditRequest } from './openai-images.ts'

/** A row of {@link ImageEditModels}. A model that cannot stream has no events. */
export interface ImageEditModel<Request = ImageEditRequest, Event = OpenAIImageEditEvent> {
  readonly request: Request
  readonly event: Event
}

/** Models on the edits route whose requests are narrowed. Add your own by `declare module 'signalbox/client'`. */
export interface ImageEditModels {
  'gp-image-2': ImageEditModel
  'gp-image-1': ImageEditModel
  'de-2': ImageEditModel<PlainImageEditRequest, never>
}

/** A request to a model on the edits route that {@link ImageEditModels} does not know. */
export interface OtherImageEditRequest {
  readonly prompt: string
  readonly [field: string]: unknown
}
