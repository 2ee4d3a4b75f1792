import type { ModelFacts, VideoAbilities } from '../../catalog/model-facts.ts'
import type { VideoParts, VideoRequest } from './video-request.ts'

/** A picture or video whose subject appears in the video. */
export interface VideoReference {
  readonly kind: 'image' | 'video'
  readonly url: string
  /** URL of a recording of the subject's voice. */
  readonly voice?: string
}

/** What to render, in a protocol-neutral layout. An absent field gets the vendor's default. */
export interface VideoIntent {
  /** References are named `Image 1`, `Video 1`: pictures and videos are counted apart, in the order of `references`. */
  readonly prompt?: string
  readonly negativePrompt?: string
  /** URL of the picture that the video begins with. */
  readonly firstFrame?: string
  /** URL of the picture that the video ends with. */
  readonly lastFrame?: string
  /** URL of a video that is continued; its seconds are part of `seconds`. */
  readonly firstClip?: string
  readonly references?: readonly VideoReference[]
  /** URL of the sound track. */
  readonly audio?: string
  /** `480p`, `720p`, `1080p`. */
  readonly resolution: string
  /** `16:9`, which is also the default. With a first frame or clip, the picture decides. */
  readonly aspectRatio?: string
  /** Whole seconds. */
  readonly seconds: number
  readonly seed?: number
  readonly watermark?: boolean
  /** Lets the vendor rewrite the prompt. */
  readonly promptExtend?: boolean
  /** `single` (the default) or `multi`. */
  readonly shotType?: string
  /** True: without sound. */
  readonly mute?: boolean
}

/** An intent written in a protocol. */
export interface WrittenIntent extends VideoParts {
  readonly parameters: Readonly<Record<string, unknown>>
  /** Fields of the intent that the protocol or the model cannot express; of references `references[1].voice`. */
  readonly impossible: readonly string[]
}

/** Name of a body layout, as catalog rows carry it. */
export type VideoProtocolName = 'wan-2-6' | 'wan-2-7'

/** The model facts that a protocol needs. Without `video`, the vendor checks what depends on it. */
export type VideoModelFacts = Pick<ModelFacts, 'id' | 'protocol' | 'video'>

/** A field that belongs to another protocol. */
export interface MisplacedField {
  /** `input.img_url`. */
  readonly param: string
  /** Its path in this protocol: `input.media`. */
  readonly use: string
}

/** One layout of `input` and `parameters` (API specification, "Video generation request"). All functions are pure. */
export interface VideoProtocol {
  readonly name: VideoProtocolName
  /** For messages: `a 2.7 model`. */
  readonly describedAs: string
  /** Characters of a prompt that the vendor reads; it cuts off the rest. */
  readonly maxPromptCharacters: number
  /** The first field that only the other protocol has; undefined when there is none. */
  misplacedField(parts: VideoParts, model: VideoModelFacts): MisplacedField | undefined
  /**
   * Checks what the model's kind requires.
   * @throws GatewayError `invalid_request` naming the field.
   */
  check(parts: VideoParts, model: VideoModelFacts): void
  /** Is a video among the references? That shortens the longest video of a model. */
  holdsReferenceVideo(parts: VideoParts): boolean
  /**
   * The parameters for the vendor: the caller's, with those added that decide the bill and are missing there. Nothing else
   * is touched, and order is kept.
   * @throws GatewayError `invalid_request` naming `aspect_ratio` when the tier has no size of that ratio.
   */
  fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown>
  writeIntent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent
}

/** The parameters that every layout writes alike; absent if the intent does not set them. */
export function writtenSettings({ promptExtend, watermark, seed }: VideoIntent): Record<string, unknown> {
  return {
    ...(promptExtend === undefined ? {} : { prompt_extend: promptExtend }),
    ...(watermark === undefined ? {} : { watermark }),
    ...(seed === undefined ? {} : { seed }),
  }
}

/** The kind of model that an intent needs, for models without a kind in the catalog. */
export function taskOfIntent(intent: VideoIntent): VideoAbilities['task'] {
  if ((intent.references ?? []).length > 0) return 'r2v'
  const isFromPicture = intent.firstFrame ?? intent.lastFrame ?? intent.firstClip
  return isFromPicture === undefined ? 't2v' : 'i2v'
}
