/** Text to image in OpenAI's shape (OpenAI API, "Create image"). */
export interface OpenAIImageRequest {
  readonly model: string
  readonly prompt: string
  readonly n?: number | null
  /** `auto`, or width and height in pixels: `1536x864`. */
  readonly size?: string | null
  readonly quality?: string | null
  readonly background?: string | null
  readonly output_format?: string | null
  readonly output_compression?: number | null
  readonly moderation?: string | null
  readonly response_format?: string | null
  readonly stream?: boolean | null
  readonly partial_images?: number | null
  readonly user?: string
}
