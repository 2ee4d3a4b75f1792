import type { MemberNames } from '../core/known-members.ts'

/** Bounds of a model that the gateway itself needs. Absent means unknown. */
export interface ModelLimits {
  /** Most input tokens. */
  readonly contextTokens?: number
  /** Most output tokens of one answer; used to reserve money when a request sets no bound. */
  readonly maxOutputTokens?: number
  /** Size of an embedding vector if the request names none. */
  readonly dimensions?: number
  /** Vector sizes the vendor can make itself; a list of exact sizes, or a range. */
  readonly nativeDimensions?: readonly number[] | { readonly min: number; readonly max: number }
  /** May a vector be truncated to sizes that the vendor cannot make? False for models whose sizes are a closed list. */
  readonly truncatesDimensions?: boolean
}

export const MODEL_LIMITS_MEMBERS = {
  contextTokens: true,
  maxOutputTokens: true,
  dimensions: true,
  nativeDimensions: true,
  truncatesDimensions: true,
} satisfies MemberNames<ModelLimits>

/** Abilities of an image model. Absent means unknown: the vendor then decides, unless documented otherwise. */
export interface ImageAbilities {
  /** Sizes it takes, as callers write them: `1024*1024`, `1K`, `1024x1024`. Absent: any. */
  readonly sizes?: readonly string[]
  /** Size of a picture when the request names none, as callers write it. */
  readonly defaultSize?: string
  /** A rule for sizes that are not in `sizes`. Pixels; the ratio is that of the longer to the shorter side. */
  readonly freeSize?: {
    readonly multipleOf?: number
    readonly maxSide?: number
    readonly maxRatio?: number
    readonly minPixels?: number
    readonly maxPixels?: number
  }
  /** Aspect ratios it takes. Absent: any. */
  readonly aspectRatios?: readonly string[]
  /** How many reference pictures a request may, or must, hold. */
  readonly referenceImages?: { readonly min: number; readonly max: number }
  /** Most pictures of one request. */
  readonly maxImages?: number
  /** Does it take a mask? Absent: no. */
  readonly takesMask?: boolean
  /** Values of `quality`, as the vendor writes them. Absent: any. */
  readonly qualities?: readonly string[]
  /** Values of `output_format`, as the vendor writes them. Absent: png, jpeg and webp. */
  readonly outputFormats?: readonly string[]
  /** Unsupported request fields; a request that sets one is refused. */
  readonly refusedFields?: readonly string[]
  /** Can it answer with URLs if the caller requests them? Absent: always bytes. */
  readonly answersWithUrls?: boolean
  /** Tokens of one picture, from above, for reservations; by `size` or `quality size`, with `default` for all others. */
  readonly outputTokens?: Readonly<Record<string, number>>
  /** Tokens of one reference picture, from above, for reservations. */
  readonly inputTokensPerImage?: number
}

export const IMAGE_MEMBERS = {
  sizes: true,
  defaultSize: true,
  freeSize: true,
  aspectRatios: true,
  referenceImages: true,
  maxImages: true,
  takesMask: true,
  qualities: true,
  outputFormats: true,
  refusedFields: true,
  answersWithUrls: true,
  outputTokens: true,
  inputTokensPerImage: true,
} satisfies MemberNames<ImageAbilities>

/** What a video is made from. */
export const VIDEO_TASKS = ['t2v', 'i2v', 'r2v'] as const

/** How a video request names its geometry. */
export const VIDEO_GEOMETRIES = ['size', 'resolution', 'resolution-ratio'] as const

/** Abilities of a video model. Absent means unknown: the vendor then decides. */
export interface VideoAbilities {
  /** `t2v` text to video, `i2v` picture to video, `r2v` references to video. */
  readonly task: (typeof VIDEO_TASKS)[number]
  /** Tiers it renders, as callers write them: `720p`. */
  readonly resolutions: readonly string[]
  /** Seconds it renders: a list of exact values, or a range. */
  readonly durations: readonly number[] | { readonly min: number; readonly max: number }
  /** Seconds it renders with a reference video among the references; absent: the same. */
  readonly durationsWithReferenceVideo?: { readonly min: number; readonly max: number }
  /** Most seconds that the vendor can bill for one task, references included; reports above it are not believed. */
  readonly maxBilledSeconds?: number
  /** `size` in pixels, `resolution` as a tier, `resolution` with `ratio`. */
  readonly geometry: (typeof VIDEO_GEOMETRIES)[number]
  /** Can its sound be switched off by `audio: false`? */
  readonly canMute?: boolean
  /** Does it support `shot_type`? */
  readonly takesShotType?: boolean
}

export const VIDEO_MEMBERS = {
  task: true,
  resolutions: true,
  durations: true,
  durationsWithReferenceVideo: true,
  maxBilledSeconds: true,
  geometry: true,
  canMute: true,
  takesShotType: true,
} satisfies MemberNames<VideoAbilities>

/** Formats of spoken answers. */
export const SPEECH_FORMATS = ['mp3', 'wav', 'pcm', 'opus', 'aac', 'flac'] as const

/** What a model for speech can do. */
export interface SpeechAbilities {
  /** Names of its voices, as its vendor writes them. */
  readonly voices: readonly string[]
  /** Formats of the answer; the first is the one of a request that names none. */
  readonly formats: readonly (typeof SPEECH_FORMATS)[number][]
  /** Does it take `instructions`? */
  readonly takesInstructions: boolean
  /** Most characters of one call at the vendor; longer texts are spoken part by part. */
  readonly maxCharacters: number
}

export const SPEECH_MEMBERS = {
  voices: true,
  formats: true,
  takesInstructions: true,
  maxCharacters: true,
} satisfies MemberNames<SpeechAbilities>

/** Formats of transcripts. */
export const TRANSCRIPTION_FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json'] as const

/** What a model that transcribes can do. */
export interface TranscriptionAbilities {
  /**
   * Formats that callers may ask for. A model with `verbose_json` gives times: the vendor is always asked for that format, and the
   * others are made of it. Any other is asked for `json`, or for `diarized_json` if the caller wants that.
   */
  readonly formats: readonly (typeof TRANSCRIPTION_FORMATS)[number][]
  /** Can it stream? False: a request with `stream` is answered whole. */
  readonly streams: boolean
  /** Request fields that it does not take; a request that sets one is refused. Absent: it takes all. */
  readonly refusedFields?: readonly string[]
  /** Largest file, in bytes. Absent: 25 MiB. */
  readonly maxFileBytes?: number
}

export const TRANSCRIPTION_MEMBERS = {
  formats: true,
  streams: true,
  refusedFields: true,
  maxFileBytes: true,
} satisfies MemberNames<TranscriptionAbilities>

/** The facts of the called model that an endpoint may use. */
export interface ModelFacts {
  /** The public id. */
  readonly id: string
  /**
   * Wire protocol where a vendor has several for one kind: `multimodal`, `interactions`, `wan-2-6`, … Chat models that their vendor
   * offers by Responses only have `responses`.
   */
  readonly protocol?: string
  readonly limits: ModelLimits
  /**
   * Does it reason without showing it, so that only its report tells what it used? Absent: its vendor's rule for the model and
   * the request decides.
   */
  readonly reasonsUnseen?: boolean
  /** What it can do with pictures. */
  readonly image?: ImageAbilities
  /** What it can do with video. */
  readonly video?: VideoAbilities
  /** What it can do with speech. Absent: any voice and format, instructions, and texts of any length in one call. */
  readonly speech?: SpeechAbilities
  /** What it can do with recordings. Absent: its vendor's rule for models that have no row decides. */
  readonly transcription?: TranscriptionAbilities
}
