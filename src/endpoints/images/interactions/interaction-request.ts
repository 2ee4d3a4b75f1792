/** A block of the input: text, or a picture as base64 without a `data:` prefix. */
export type InteractionBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mime_type?: string; readonly data?: string; readonly uri?: string }

/** What shall be drawn. */
export interface InteractionResponseFormat {
  readonly type: 'image'
  readonly mime_type?: string
  /** `512px`, `1K`, `2K`, `4K`. */
  readonly image_size?: string
  readonly aspect_ratio?: string
}

/** A request to a `gmn-*-image*` model (API specification, "Interactions-style image request"). */
export interface InteractionRequest {
  readonly model: string
  readonly input: string | readonly InteractionBlock[]
  readonly system_instruction?: string
  readonly response_format?: InteractionResponseFormat
  readonly generation_config?: { readonly thinking_level?: string; readonly temperature?: number }
  readonly previous_interaction_id?: string
  readonly tools?: readonly { readonly type?: string }[]
  readonly store?: boolean
  readonly service_tier?: string
  readonly stream?: boolean
}
