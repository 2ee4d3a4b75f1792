import type { AnyModelKind } from '../core/model-kind.ts'

/** Limits of a model that the gateway itself needs. An omitted limit is unknown. */
export interface ModelLimits {
  /** Maximum number of input tokens. */
  readonly contextTokens?: number
  /** Maximum number of output tokens per answer. Used to reserve money if a request sets no limit. */
  readonly maxOutputTokens?: number
  /** Size of an embedding vector if the request names none. */
  readonly dimensions?: number
  /** Vector sizes that the vendor supports: a list of exact sizes, or a range. */
  readonly nativeDimensions?: readonly number[] | { readonly min: number; readonly max: number }
  /** Whether vectors may be truncated to sizes that the vendor does not support. False for models with a closed list of sizes. */
  readonly truncatesDimensions?: boolean
}

/** Abilities of an image model. If an ability is omitted, the vendor decides, unless documented otherwise. */
export interface ImageAbilities {
  /** Supported sizes in the callers' notation: `1024*1024`, `1K`, `1024x1024`. If omitted, the model accepts any size. */
  readonly sizes?: readonly string[]
  /** Size of an image if the request names none, in the callers' notation. */
  readonly defaultSize?: string
  /** Rule for sizes that are not in `sizes`, in pixels. The ratio is the longer side divided by the shorter one. */
  readonly freeSize?: {
    readonly multipleOf?: number
    readonly maxSide?: number
    readonly maxRatio?: number
    readonly minPixels?: number
    readonly maxPixels?: number
  }
  /** Supported aspect ratios. If omitted, the model accepts any ratio. */
  readonly aspectRatios?: readonly string[]
  /** Minimum and maximum number of reference images per request. */
  readonly referenceImages?: { readonly min: number; readonly max: number }
  /** Maximum number of images per request. */
  readonly maxImages?: number
  /** Whether the model accepts a mask. Default false. */
  readonly takesMask?: boolean
  /** Values of `quality` in the vendor's notation. If omitted, the model accepts any value. */
  readonly qualities?: readonly string[]
  /** Values of `output_format` in the vendor's notation. If omitted, png, jpeg and webp. */
  readonly outputFormats?: readonly string[]
  /** Unsupported request fields. A request that sets one is rejected. */
  readonly refusedFields?: readonly string[]
  /** Whether the model can answer with URLs if the caller requests them. By default it always returns bytes. */
  readonly answersWithUrls?: boolean
  /** Maximum number of tokens per image, for reservations, by `size` or `quality size`, with `default` for all others. */
  readonly outputTokens?: Readonly<Record<string, number>>
  /** Maximum number of tokens per reference image, for reservations. */
  readonly inputTokensPerImage?: number
}

/** Image models with the same abilities, identified by the form of their vendors' ids. */
export interface ImageFamily {
  /** Matches the vendor's own ids. */
  readonly ids: RegExp
  /** Snapshot ids of the vendors that serve every model of the family, including models outside the snapshot. */
  readonly catalogs: readonly string[]
  readonly kinds: readonly AnyModelKind[]
  /** Shape of the request. The abilities apply only at vendors that offer the model in this shape. */
  readonly protocol: string
  readonly image: ImageAbilities
}

/** Kinds of input from which a video is generated. */
export const VIDEO_TASKS = ['t2v', 'i2v', 'r2v'] as const

/** Fields by which a video request specifies its geometry. */
export const VIDEO_GEOMETRIES = ['size', 'resolution', 'resolution-ratio'] as const

/** Abilities of a video model. If an ability is omitted, the vendor decides. */
export interface VideoAbilities {
  /** `t2v` text to video, `i2v` image to video, `r2v` references to video. */
  readonly task: (typeof VIDEO_TASKS)[number]
  /** Supported resolutions in the callers' notation: `720p`. */
  readonly resolutions: readonly string[]
  /** Supported durations in seconds: a list of exact values, or a range. */
  readonly durations: readonly number[] | { readonly min: number; readonly max: number }
  /** Supported durations in seconds if the references include a video. Defaults to `durations`. */
  readonly durationsWithReferenceVideo?: { readonly min: number; readonly max: number }
  /** Maximum number of seconds that the vendor can bill for one task, references included. Higher reports are not trusted. */
  readonly maxBilledSeconds?: number
  /** `size` in pixels, `resolution` as a tier, `resolution` with `ratio`. */
  readonly geometry: (typeof VIDEO_GEOMETRIES)[number]
  /** Whether `audio: false` switches off the audio. */
  readonly canMute?: boolean
  /** Whether the model supports `shot_type`. */
  readonly takesShotType?: boolean
}

/** Audio formats of speech answers. */
export const SPEECH_FORMATS = ['mp3', 'wav', 'pcm', 'opus', 'aac', 'flac'] as const

/** Abilities of a speech model. */
export interface SpeechAbilities {
  /** Names of its voices in the vendor's notation. */
  readonly voices: readonly string[]
  /** Formats of the answer. The first is the default. */
  readonly formats: readonly (typeof SPEECH_FORMATS)[number][]
  /** Whether the model supports `instructions`. */
  readonly takesInstructions: boolean
  /** Maximum number of characters per call to the vendor. Longer texts are split into several calls. */
  readonly maxCharacters: number
}

/** Formats of transcripts. */
export const TRANSCRIPTION_FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json'] as const

/** Abilities of a transcription model. */
export interface TranscriptionAbilities {
  /**
   * Formats that callers may request. A model with `verbose_json` returns timestamps: the vendor always gets a request for that
   * format, and the other formats are derived from it. Other models get `json`, or `diarized_json` if the caller wants it.
   */
  readonly formats: readonly (typeof TRANSCRIPTION_FORMATS)[number][]
  /** Whether the model can stream. If false, a request with `stream` gets a complete answer. */
  readonly streams: boolean
  /** Unsupported request fields. A request that sets one is rejected. If omitted, the model accepts all fields. */
  readonly refusedFields?: readonly string[]
  /** Maximum size of a file in bytes. Default 25 MiB. */
  readonly maxFileBytes?: number
}

/** Facts of the called model that an endpoint may use. */
export interface ModelFacts {
  /** The public id. */
  readonly id: string
  /**
   * Wire protocol if a vendor has several for one kind: `multimodal`, `interactions`, `wan-2-6`, … It is `responses` for chat
   * models that their vendor offers only by Responses.
   */
  readonly protocol?: string
  readonly limits: ModelLimits
  /**
   * Whether the model's reasoning is hidden, so that only the usage report contains its tokens. By default, the vendor's rule for
   * the model and the request decides.
   */
  readonly hasHiddenReasoning?: boolean
  /** Abilities for images. */
  readonly image?: ImageAbilities
  /** Abilities for video. */
  readonly video?: VideoAbilities
  /** Abilities for speech. If omitted, the model accepts any voice and format, instructions, and texts of any length. */
  readonly speech?: SpeechAbilities
  /** Abilities for transcription. Defaults to its vendor's rule for models without a row. */
  readonly transcription?: TranscriptionAbilities
}
