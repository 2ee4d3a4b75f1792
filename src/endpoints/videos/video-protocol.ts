import type { ModelFacts } from '../model-facts.ts'
import type { ReadIntent, VideoIntent, WrittenIntent } from './video-intent.ts'
import type { VideoRequest } from './video-request.ts'

/** Name of a body layout, as catalog rows carry it. */
export type VideoProtocolName = 'wan-2-6' | 'wan-2-7'

/** The two members of a request that belong to the vendor. */
export type VideoParts = Pick<VideoRequest, 'input' | 'parameters'>

/** What a protocol needs to know of a model. Without `video`, what depends on it is left to the vendor. */
export type VideoModelFacts = Pick<ModelFacts, 'id' | 'protocol' | 'video'>

/** A field that belongs to another protocol. */
export interface MisplacedField {
  /** `input.img_url`. */
  readonly param: string
  /** What stands for it in this protocol: `input.media`. */
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
  /** Does a video stand among the references? Those shorten what a model renders. */
  holdsReferenceVideo(parts: VideoParts): boolean
  /**
   * The parameters for the vendor: the caller's, with those added that decide the bill and are missing there. Nothing else
   * is touched, and order is kept.
   * @throws GatewayError `invalid_request` naming `aspect_ratio` when the tier has no size of that ratio.
   */
  fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown>
  readIntent(request: VideoRequest): ReadIntent
  writeIntent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent
}
