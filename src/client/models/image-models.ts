import type { GeminiImageAliases, GeminiListedImages } from '../../catalog/models/model-aliases.ts'
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
  ListedSizeImageRequest,
  OpenAIImageAnswer,
  OpenAIImageEditEvent,
  OpenAIImageEvent,
  OpenAIImageRequest,
  PlainImageEditRequest,
  PlannedImageQuality,
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

type WideInteraction = Interaction<'512px' | '1K' | '2K' | '4K', WideInteractionRatio, ThinkingInteractionConfig>
type ProInteraction = Interaction<'1K' | '2K' | '4K', InteractionRatio, ThinkingInteractionConfig>
type PlainInteraction = Interaction<'1K', InteractionRatio, InteractionConfig>

type OpenInteraction = Interaction<string, string, ThinkingInteractionConfig>

type ListedSizeImage = ImageModel<ListedSizeImageRequest, OpenAIImageAnswer, OpenAIImageEvent>
type FreeSizeImage = ImageModel<OpenAIImageRequest, OpenAIImageAnswer, OpenAIImageEvent>
type PlannedImage = ImageModel<OpenAIImageRequest<PlannedImageQuality>, OpenAIImageAnswer, OpenAIImageEvent>
type PlannedEdit = ImageEditModel<ImageEditRequest<PlannedImageQuality>>

/** Image models of GPT Image 2.5 and later, under the vendor's own ids. */
export interface PlannedImageModels<Row> {
  'gpt-image-2.5-sunburst': Row
  'gpt-image-2.5-sunburst-2026-09-08': Row
  'gpt-image-2.5-flare': Row
  'gpt-image-2.5-flare-2026-09-08': Row
  'gpt-image-2.6-sunburst': Row
  'gpt-image-2.6-flare': Row
}

/** Image models that need no row in the gateway, under the vendor's own ids. */
export interface ListedImageModels
  extends GeminiListedImages<WideInteraction, ProInteraction, OpenInteraction>,
    PlannedImageModels<PlannedImage> {
  'gpt-image-1.5': ListedSizeImage
  'gpt-image-1-mini': ListedSizeImage
  'chatgpt-image-latest': ListedSizeImage
  'gpt-image-2-2026-04-21': FreeSizeImage
}

/** Image models with narrowed requests and answers, under their ids and aliases. Add your own by `declare module 'signalbox/client'`. */
export interface ImageModels
  extends GeminiImageAliases<WideInteraction, ProInteraction, PlainInteraction>,
    ListedImageModels {
  'qw-image-2.0': Multimodal<MultimodalPictureRequest>
  'qw-image-2.0-pro': Multimodal<MultimodalPictureRequest>
  'qw-image-max': Multimodal<MultimodalTextRequest>
  'qw-image-edit': Multimodal<MultimodalPlainEditRequest>
  'qw-image-edit-plus': Multimodal<MultimodalPictureRequest>
  'qw-image-edit-max': Multimodal<MultimodalPictureRequest>
  'gmn-3.1-flash-image-preview': WideInteraction
  'gmn-3-pro-image-preview': ProInteraction
  'gmn-2.5-flash-image': PlainInteraction
  'gp-image-2': FreeSizeImage
  'gp-image-1': ListedSizeImage
  'de-2': ImageModel<PlainImageEditRequest, OpenAIImageAnswer>
  'qwen-image-2.0': ImageModels['qw-image-2.0']
  'qwen-image-2.0-pro': ImageModels['qw-image-2.0-pro']
  'qwen-image-max': ImageModels['qw-image-max']
  'qwen-image-edit': ImageModels['qw-image-edit']
  'qwen-image-edit-plus': ImageModels['qw-image-edit-plus']
  'qwen-image-edit-max': ImageModels['qw-image-edit-max']
  'gmn-2.5-flash-image-preview': PlainInteraction
  'gpt-image-2': ImageModels['gp-image-2']
  'gpt-image-1': ImageModels['gp-image-1']
  'dall-e-2': ImageModels['de-2']
}

/** A request to an image model outside {@link ImageModels}. */
export interface OtherImageRequest {
  readonly [field: string]: unknown
}

/** Answer of such a model, in one of the shapes. */
export type OtherImageAnswer = Partial<
  MultimodalImageAnswer & InteractionImageAnswer & Omit<OpenAIImageAnswer, 'usage'>
>

/** Event of such a model, in one of the shapes. */
export interface OtherImageEvent {
  /** Type of an event in OpenAI's shape. */
  readonly type?: string
  /** Type of an event in the interactions shape. */
  readonly event_type?: string
  readonly [field: string]: unknown
}

/** A row of {@link ImageEditModels}. A model that cannot stream has no events. */
export interface ImageEditModel<Request = ImageEditRequest, Event = OpenAIImageEditEvent> {
  readonly request: Request
  readonly event: Event
}

/** Models on the edits route with narrowed requests, under their ids and aliases. Add your own by `declare module 'signalbox/client'`. */
export interface ImageEditModels extends PlannedImageModels<PlannedEdit> {
  'gp-image-2': ImageEditModel
  'gp-image-1': ImageEditModel
  'de-2': ImageEditModel<PlainImageEditRequest, never>
  'gpt-image-2': ImageEditModels['gp-image-2']
  'gpt-image-1': ImageEditModels['gp-image-1']
  'dall-e-2': ImageEditModels['de-2']
  'gpt-image-2-2026-04-21': ImageEditModel
  'gpt-image-1.5': ImageEditModel
  'gpt-image-1-mini': ImageEditModel
  'chatgpt-image-latest': ImageEditModel
}

/** A request to a model on the edits route outside {@link ImageEditModels}. */
export interface OtherImageEditRequest {
  readonly prompt: string
  readonly [field: string]: unknown
}
