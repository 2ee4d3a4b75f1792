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

/** Text to image. Sizes other than the listed ones are multiples of 16 (API specification, "Endpoints", note 1). */
export interface OpenAIImageRequest<Quality extends string = ImageQuality>
  extends PictureOptions<'auto' | `${number}x${number}`, Quality>,
    Encoding,
    Streaming {
  readonly moderation?: 'auto' | 'low'
}

/** Text to image by models that allow only listed sizes (OpenAI API, "Create image"). */
export interface ListedSizeImageRequest
  extends PictureOptions<'auto' | '1024x1024' | '1024x1536' | '1536x1024'>,
    Encoding,
    Streaming {
  readonly moderation?: 'auto' | 'low'
}

/** Edit request for models that return only bytes (API specification, "Image edit request"). */
export interface ImageEditRequest<Quality extends string = ImageQuality>
  extends PictureOptions<'auto' | '1024x1024' | '1024x1536' | '1536x1024', Quality>,
    Encoding,
    Streaming {
  readonly response_format?: 'b64_json'
}

/** Images and edits by the older model, which can return URLs (API specification, "Image edit request"). */
export interface PlainImageEditRequest extends PictureOptions<'auto' | '256x256' | '512x512' | '1024x1024'> {
  readonly response_format?: 'b64_json' | 'url'
}
