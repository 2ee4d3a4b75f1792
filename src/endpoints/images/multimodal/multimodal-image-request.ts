/** A block of the prompt: text, or the URL of a picture. Exactly one of the two. */
export interface MultimodalBlock {
  readonly text?: string
  readonly image?: string
}

/** A request to a `qw-image-*` model (API specification, "Multimodal image request"). */
export interface MultimodalImageRequest {
  readonly model: string
  readonly input: {
    readonly messages: readonly [{ readonly role: 'user'; readonly content: readonly MultimodalBlock[] }]
  }
  readonly parameters?: {
    /** `1024*1024`. */
    readonly size?: string
    readonly n?: number
    readonly seed?: number
    readonly watermark?: boolean
    readonly negative_prompt?: string
    readonly prompt_extend?: boolean
  }
}
