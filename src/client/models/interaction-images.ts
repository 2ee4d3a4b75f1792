import type { INTERACTION_RATIOS, STRIP_RATIOS } from '../../catalog/models/gemini-models.ts'

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
