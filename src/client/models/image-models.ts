import type { MULTIMODAL_SIZES } from '../../catalog/models/dashscope-models.ts'
import type { INTERACTION_RATIOS, STRIP_RATIOS } from '../../catalog/models/gemini-models.ts'
import type { GeminiImageAliases, GeminiListedImages } from '../../catalog/models/model-aliases.ts'

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

/** Generated or edited images in OpenAI's shape (OpenAI API, "Create image"). */
export interface OpenAIImageAnswer {
  /** Creation time in Unix seconds. */
  readonly created: number
  /** Images. `url` is set only if `response_format` requested it and the model supports it. */
  readonly data: readonly { readonly b64_json?: string; readonly url?: string; readonly revised_prompt?: string }[]
  readonly background?: string
  readonly output_format?: string
  readonly quality?: string
  readonly size?: string
  readonly usage?: {
    readonly input_tokens: number
    readonly output_tokens: number
    readonly total_tokens: number
    readonly input_tokens_details?: { readonly text_tokens: number; readonly image_tokens: number }
  }
}

/** Members of both events of a streamed image (OpenAI API, "Image streaming events"). */
interface StreamedPicture {
  readonly b64_json: string
  /** Creation time in Unix seconds. */
  readonly created_at?: number
  readonly background?: string
  readonly output_format?: string
  readonly quality?: string
  readonly size?: string
}

/** Event of a streamed image: a partial image, if `partial_images` requested it, or a finished one. */
export type OpenAIImageEvent<Route extends string = 'image_generation'> =
  | (StreamedPicture & { readonly type: `${Route}.partial_image`; readonly partial_image_index: number })
  | (StreamedPicture & { readonly type: `${Route}.completed`; readonly usage?: OpenAIImageAnswer['usage'] })

/** An event of a streamed edit. */
export type OpenAIImageEditEvent = OpenAIImageEvent<'image_edit'>

/** Quality. `standard` and `hd` are other names for `medium` and `high`. */
export type ImageQuality = 'auto' | 'low' | 'medium' | 'high' | 'standard' | 'hd'

/** Qualities of GPT Image 2.5 and of later models. */
export type PlannedImageQuality = ImageQuality | 'xhigh' | 'max'

/** File format of an image. */
interface Encoding {
  /** Image format. Default `png`. */
  readonly output_format?: 'png' | 'jpeg' | 'webp'
  /** Compression from 0 to 100, for `jpeg` and `webp`. */
  readonly output_compression?: number
  /** Background. `transparent` requires `png` or `webp`. */
  readonly background?: 'transparent' | 'opaque' | 'auto'
}

/** Whether partial images are streamed. */
interface Streaming {
  /** Number of partial images that `stream: true` sends before each image. Default 0. Each costs tokens. */
  readonly partial_images?: 0 | 1 | 2 | 3
}

/** Fields of every image request in OpenAI's shape. */
interface PictureOptions<Size extends string, Quality extends string = ImageQuality> {
  readonly prompt: string
  /** Number of images, from 1 to 10. */
  readonly n?: number
  readonly size?: Size
  readonly quality?: Quality
  readonly user?: string
}

type ListedSize = 'auto' | '1024x1024' | '1024x1536' | '1536x1024'

/** Text to image. Sizes other than the listed ones are multiples of 16 (API specification, "Endpoints", note 1). */
export interface OpenAIImageRequest<
  Quality extends string = ImageQuality,
  Size extends string = 'auto' | `${number}x${number}`,
> extends PictureOptions<Size, Quality>,
    Encoding,
    Streaming {
  readonly moderation?: 'auto' | 'low'
}

/** Text to image by models that allow only listed sizes (OpenAI API, "Create image"). */
export interface ListedSizeImageRequest extends OpenAIImageRequest<ImageQuality, ListedSize> {}

/** Edit request for models that return only bytes (API specification, "Image edit request"). */
export interface ImageEditRequest<Quality extends string = ImageQuality>
  extends PictureOptions<ListedSize, Quality>,
    Encoding,
    Streaming {
  readonly response_format?: 'b64_json'
}

/** Images and edits by the older model, which can return URLs (API specification, "Image edit request"). */
export interface PlainImageEditRequest extends PictureOptions<'auto' | '256x256' | '512x512' | '1024x1024'> {
  readonly response_format?: 'b64_json' | 'url'
}

/** Sizes of the multimodal shape: those of the API specification, and two in the vendor's own spelling. */
export type MultimodalSize = (typeof MULTIMODAL_SIZES)[number]

interface TextBlock {
  readonly text: string
}
interface ImageBlock {
  /** HTTPS URL, which the vendor downloads. */
  readonly image: string
}

interface PlainParameters {
  readonly n?: 1
  readonly seed?: number
  readonly watermark?: boolean
  readonly negative_prompt?: string
}

interface Parameters extends PlainParameters {
  readonly size?: MultimodalSize
  readonly prompt_extend?: boolean
}

interface Shape<Block, Settings> {
  readonly input: { readonly messages: readonly [{ readonly role: 'user'; readonly content: readonly Block[] }] }
  readonly parameters?: Settings
}

/** Text to image, without reference images (API specification, "Multimodal image request"). */
export interface MultimodalTextRequest extends Shape<TextBlock, Parameters> {}

/** Text to image, or an edit of 1 to 3 images. The content contains exactly one text. */
export interface MultimodalPictureRequest extends Shape<TextBlock | ImageBlock, Parameters> {}

/** Edit of 1 to 3 images that keeps their size. */
export interface MultimodalPlainEditRequest extends Shape<TextBlock | ImageBlock, PlainParameters> {}

/** Images as URLs (API specification, "Multimodal image request"). */
export interface MultimodalImageAnswer {
  readonly request_id: string
  readonly output: {
    readonly choices: readonly {
      readonly finish_reason: string
      readonly message: {
        readonly role: 'assistant'
        /** Signed URLs that expire. */
        readonly content: readonly { readonly image?: string; readonly text?: string }[]
      }
    }[]
  }
  readonly usage: { readonly image_count?: number; readonly width?: number; readonly height?: number }
}

/** Block of the input: a text, or an image as base64 without a `data:` prefix or as a URL. */
export type InteractionInput =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mime_type: string; readonly data: string }
  | { readonly type: 'image'; readonly mime_type: string; readonly uri: string }

/** Ratios of every model of this shape (Gemini API, "Image generation"). */
export type InteractionRatio = (typeof INTERACTION_RATIOS)[number]

/** Ratios that only some models have. */
export type WideInteractionRatio = InteractionRatio | (typeof STRIP_RATIOS)[number]

/** Image request in the interactions shape (API specification, "Interactions-style image request"). */
export interface InteractionImageRequest<Size extends string, Ratio extends string, Config> {
  readonly input: string | readonly InteractionInput[]
  readonly system_instruction?: string
  readonly response_format?: {
    readonly type: 'image'
    readonly mime_type?: string
    /** Size of the image. Default `1K`. */
    readonly image_size?: Size
    readonly aspect_ratio?: Ratio
  }
  readonly generation_config?: Config
  /** `id` of an earlier answer to continue; its images need not be sent again. */
  readonly previous_interaction_id?: string
  /** Whether the answer can be continued. Default true. */
  readonly store?: boolean
}

/** Settings of the generation. */
export interface InteractionConfig {
  /** Sampling temperature, from 0 to 2. */
  readonly temperature?: number
}

/** Settings of the generation, for models that reason. */
export interface ThinkingInteractionConfig extends InteractionConfig {
  /** Amount of reasoning. Default `minimal`. */
  readonly thinking_level?: 'minimal' | 'high'
}

/** Step of an answer. Images and text are in `model_output` steps, of which there may be several. */
export interface InteractionStep {
  /** `model_output`, `thought`, and others that a vendor may add. */
  readonly type: string
  readonly content?: readonly {
    readonly type: string
    readonly mime_type?: string
    /** Base64 data. */
    readonly data?: string
    readonly text?: string
  }[]
  readonly [member: string]: unknown
}

/** An answer in the interactions shape. */
export interface InteractionImageAnswer {
  /** Id such as `v1_…`, for `previous_interaction_id`. */
  readonly id: string
  /** Public id of the model. */
  readonly model: string
  /** `completed`; `failed`, without steps, if a vendor's filter blocked it. Other values are possible. */
  readonly status: string
  readonly steps: readonly InteractionStep[]
  readonly usage?: Readonly<Record<string, unknown>>
  readonly errors?: readonly { readonly code: string; readonly message: string }[]
}

/** Part of a step: text, or a whole image. */
export type InteractionDelta =
  | { readonly type: 'text'; readonly text: string }
  /** Base64 in `data`, or a URL. */
  | { readonly type: 'image'; readonly mime_type: string; readonly data?: string; readonly uri?: string }
  | { readonly type: 'thought_summary'; readonly content: unknown }
  | { readonly type: 'thought_signature'; readonly signature: string }

/** An event of a streamed interaction. Vendors may send other types and deltas; ignore unknown ones. */
export type InteractionEvent =
  | {
      readonly event_type: 'interaction.created' | 'interaction.completed'
      /** Final interaction without the steps, which came before. `id` and `status` are those of {@link InteractionImageAnswer}. */
      readonly interaction: Omit<InteractionImageAnswer, 'steps'>
    }
  | {
      readonly event_type: 'interaction.status_update'
      readonly interaction_id: string
      readonly status: string
    }
  | { readonly event_type: 'step.start'; readonly index: number; readonly step: InteractionStep }
  | { readonly event_type: 'step.delta'; readonly index: number; readonly delta: InteractionDelta }
  | { readonly event_type: 'step.stop'; readonly index: number }
