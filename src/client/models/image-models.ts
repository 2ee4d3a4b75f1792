import type {
  InteractionConfig,
  InteractionEvent,
  InteractionImageAnswer,
  InteractionImageRequest,
  InteractionRatio,
  ThinkingInteractionConfig,
  WideInteractionRatio,
} from './interaction-images.ts'
import type {
  MultimodalImageAnswer,
  MultimodalPictureRequest,
  MultimodalPlainEditRequest,
  MultimodalTextRequest,
} from './multimodal-images.ts'
import type {
  ImageEditRequest,
  OpenAIImageAnswer,
  OpenAIImageEditEvent,
  OpenAIImageEvent,
  OpenAIImageRequest,
  PlainImageEditRequest,
} from './openai-images.ts'

/** A row of {@link ImageModels}. A model that cannot stream has no events. */
export interface ImageModel<Request, Answer, Event = never> {
  readonly request: Request
  readonly answer: Answer
  readonly event: Event
}

type Multimodal<Request> = ImageModel<Request, MultimodalImageAnswer>
type Interaction<Size extends string, Ratio extends string, Config> = ImageModel<
  InteractionImageRequest<Size, Ratio, Config>,
  InteractionImageAnswer,
  InteractionEvent
>

/** Image models with narrowed requests and answers. Add your own by `declare module 'signalbox/client'`. */
export interface ImageModels {
  'qw-image-2.0': Multimodal<MultimodalPictureRequest>
  'qw-image-2.0-pro': Multimodal<MultimodalPictureRequest>
  'qw-image-max': Multimodal<MultimodalTextRequest>
  'qw-image-edit': Multimodal<MultimodalPlainEditRequest>
  'qw-image-edit-plus': Multimodal<MultimodalPictureRequest>
  'qw-image-edit-max': Multimodal<MultimodalPictureRequest>
  'gmn-3.1-flash-image-preview': Interaction<
    '512px' | '1K' | '2K' | '4K',
    WideInteractionRatio,
    ThinkingInteractionConfig
  >
  'gmn-3-pro-image-preview': Interaction<'1K' | '2K' | '4K', InteractionRatio, ThinkingInteractionConfig>
  'gmn-2.5-flash-image': Interaction<'1K', InteractionRatio, InteractionConfig>
  'gmn-2.5-flash-image-preview': Interaction<'1K', InteractionRatio, InteractionConfig>
  'gp-image-2': ImageModel<OpenAIImageRequest, OpenAIImageAnswer, OpenAIImageEvent>
}

/** A request to an image model outside {@link ImageModels}. */
export interface OtherImageRequest {
  readonly [field: string]: unknown
}

/** The answer of such a model, in one of the shapes. */
export type OtherImageAnswer = Partial<
  MultimodalImageAnswer & InteractionImageAnswer & Omit<OpenAIImageAnswer, 'usage'>
>

/** An event of such a model, in one of the shapes. */
export interface OtherImageEvent {
  /** In OpenAI's shape. */
  readonly type?: string
  /** In the interactions shape. */
  readonly event_type?: string
  readonly [field: string]: unknown
}

/** A row of {@link ImageEditModels}. A model that cannot stream has no events. */
export interface ImageEditModel<Request = ImageEditRequest, Event = OpenAIImageEditEvent> {
  readonly request: Request
  readonly event: Event
}

/** Models on the edits route with narrowed requests. Add your own by `declare module 'signalbox/client'`. */
export interface ImageEditModels {
  'gp-image-2': ImageEditModel
  'gp-image-1': ImageEditModel
  'de-2': ImageEditModel<PlainImageEditRequest, never>
}

/** A request to a model on the edits route outside {@link ImageEditModels}. */
export interface OtherImageEditRequest {
  readonly prompt: string
  readonly [field: string]: unknown
}
