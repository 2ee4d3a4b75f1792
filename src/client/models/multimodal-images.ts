import type { MULTIMODAL_SIZES } from '../../catalog/models/dashscope-models.ts'

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
