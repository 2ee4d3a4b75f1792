import type { ModelFacts, VideoAbilities } from '../../catalog/model-facts.ts'
import type { VideoParts, VideoRequest } from './video-request.ts'

/** An image or video whose subject appears in the video. */
export interface VideoReference {
  readonly kind: 'image' | 'video'
  readonly url: string
  /** URL of a recording of the subject's voice. */
  readonly voice?: string
}

/** A video to render, in a protocol-neutral layout. An absent field gets the vendor's default. */
export interface VideoIntent {
  /** Prompt. It names references `Image 1` or `Video 1`, numbered separately, in the order of `references`. */
  readonly prompt?: string
  readonly negativePrompt?: string
  /** URL of the image that the video begins with. */
  readonly firstFrame?: string
  /** URL of the image that the video ends with. */
  readonly lastFrame?: string
  /** URL of a video to continue. Its seconds are part of `seconds`. */
  readonly firstClip?: string
  readonly references?: readonly VideoReference[]
  /** URL of the soundtrack. */
  readonly audio?: string
  /** `480p`, `720p` or `1080p`. */
  readonly resolution: string
  /** Aspect ratio. Default `16:9`. A first frame or clip overrides it. */
  readonly aspectRatio?: string
  /** Duration in whole seconds. */
  readonly seconds: number
  readonly seed?: number
  readonly watermark?: boolean
  /** Whether the vendor may rewrite the prompt. */
  readonly promptExtend?: boolean
  /** `single` (default) or `multi`. */
  readonly shotType?: string
  /** Whether to render without sound. */
  readonly mute?: boolean
}

/** An intent written in a protocol. */
export interface WrittenIntent extends VideoParts {
  readonly parameters: Readonly<Record<string, unknown>>
  /** Fields of the intent that the protocol or the model cannot express, such as `references[1].voice`. */
  readonly impossible: readonly string[]
}

/** Name of a body layout, as in catalog rows. */
export type VideoProtocolName = 'wan-2-6' | 'wan-2-7'

/** Model facts that a protocol needs. Without `video`, the vendor checks fields that depend on it. */
export type VideoModelFacts = Pick<ModelFacts, 'id' | 'protocol' | 'video'>

/** A field that belongs to another protocol. */
export interface MisplacedField {
  /** `input.img_url`. */
  readonly param: string
  /** Path of the field in this protocol: `input.media`. */
  readonly use: string
}

/** One layout of `input` and `parameters` (API specification, "Video generation request"). All functions are pure. */
export interface VideoProtocol {
  readonly name: VideoProtocolName
  /** Name in error messages: `a 2.7 model`. */
  readonly describedAs: string
  /** Characters of a prompt that the vendor reads. It truncates longer prompts. */
  readonly maxPromptCharacters: number
  /** Returns the first field that only the other protocol has, if any. */
  misplacedField(parts: VideoParts, model: VideoModelFacts): MisplacedField | undefined
  /**
   * Checks the requirements of the model's kind.
   * @throws GatewayError `invalid_request` naming the field.
   */
  check(parts: VideoParts, model: VideoModelFacts): void
  /** Whether the references include a video, which shortens the longest video of a model. */
  holdsReferenceVideo(parts: VideoParts): boolean
  /**
   * Returns the caller's parameters, plus missing ones that decide the bill. Everything else stays unchanged and in order.
   * @throws GatewayError `invalid_request` naming `aspect_ratio` if the tier has no size of that ratio.
   */
  fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown>
  writeIntent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent
}

/** Returns the parameters that are the same in every layout, unless the intent does not set them. */
export function writtenSettings({ promptExtend, watermark, seed }: VideoIntent): Record<string, unknown> {
  return {
    ...(promptExtend === undefined ? {} : { prompt_extend: promptExtend }),
    ...(watermark === undefined ? {} : { watermark }),
    ...(seed === undefined ? {} : { seed }),
  }
}

/** Returns the kind of model that an intent needs, for models without a kind in the catalog. */
export function taskOfIntent(intent: VideoIntent): VideoAbilities['task'] {
  if ((intent.references ?? []).length > 0) return 'r2v'
  const isFromPicture = intent.firstFrame ?? intent.lastFrame ?? intent.firstClip
  return isFromPicture === undefined ? 't2v' : 'i2v'
}
