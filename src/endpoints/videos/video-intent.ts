import type { VideoParts } from './video-protocol.ts'

/** A picture or video whose subject shall appear. */
export interface VideoReference {
  readonly kind: 'image' | 'video'
  readonly url: string
  /** URL of a recording whose voice the subject shall have. */
  readonly voice?: string
}

/** What shall be rendered, said once for every protocol. An absent field is left to the vendor's default. */
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

/** A field of {@link VideoIntent}. */
export type VideoIntentField = keyof VideoIntent

/** A body read as an intent. */
export interface ReadIntent {
  readonly intent: VideoIntent
  /** Where each field of the intent was found: `firstFrame` → `input.img_url`. */
  readonly origins: ReadonlyMap<string, string>
  /** Members of the body that an intent cannot hold. */
  readonly unread: readonly string[]
}

/** An intent written in a protocol. */
export interface WrittenIntent extends VideoParts {
  readonly parameters: Readonly<Record<string, unknown>>
  /** Fields of the intent that the protocol or the model cannot express; of references `references[1].voice`. */
  readonly impossible: readonly string[]
}
