import type { FieldOf, RequestOf } from '../models/model-request.ts'
import type { OtherVideoRequest, VideoAbility, VideoModels, VideoTaskKind } from '../models/video-models.ts'
import type { VideoRatio } from '../models/video-requests.ts'

/** A video request, ready to be sent. */
export type BuiltVideo<Model> = RequestOf<VideoModels, Model, OtherVideoRequest> & { readonly model: Model }

type FieldsOf<Model> = RequestOf<VideoModels, Model, OtherVideoRequest>

/** Steps that every video model takes. */
interface CommonSteps<Model> {
  /** References are named `Image 1`, `Video 1`: pictures and videos counted apart, in their order. */
  prompt(text: string): this
  negativePrompt(text: string): this
  /** Default `720p`. */
  tier(tier: FieldOf<FieldsOf<Model>, 'resolution', string>): this
  /** Whole seconds; default 5. */
  seconds(seconds: FieldOf<FieldsOf<Model>, 'duration', number>): this
  seed(value: number): this
  /** Off by default, whatever the vendor's default. */
  watermark(isOn?: boolean): this
  /** Lets the vendor rewrite the prompt. */
  promptExtend(isOn?: boolean): this
  /** Called when the video has ended. */
  webhook(url: string): this
  /**
   * @throws GatewayError naming the step that the model cannot do (`unsupported_parameter`), or the field that is missing or
   *   wrong (`invalid_request`); `model_not_configured` for a model without a known layout.
   */
  build(): BuiltVideo<Model>
}

interface RatioStep {
  /** Default `16:9`. */
  aspectRatio(ratio: VideoRatio): this
}

interface AudioStep {
  /** URL of the sound track. */
  audio(url: string): this
}

interface FirstFrameStep {
  /** URL of the picture that the video begins with. */
  firstFrame(url: string): this
}

interface LastFrameSteps {
  /** URL of the picture that the video ends with. */
  lastFrame(url: string): this
  /** URL of a video that is continued; its seconds count. */
  firstClip(url: string): this
}

interface ReferenceStep<Voice> {
  /** A picture or video whose subject shall appear. `kind` is needed where the file name does not tell. */
  reference(url: string, options?: { readonly kind?: 'image' | 'video' } & Voice): this
}

interface VoiceOption {
  /** URL of a recording whose voice the subject shall have. */
  readonly voice?: string
}

interface ShotsStep {
  shots(type: 'single' | 'multi'): this
}

interface MuteStep {
  /** Without sound. */
  mute(): this
}

type RowOf<Model> = Model extends keyof VideoModels ? VideoModels[Model] : unknown
type KindOf<Model> = FieldOf<RowOf<Model>, 'kind', VideoTaskKind>
type AbilityOf<Model> = RowOf<Model> extends { readonly ability: infer Ability } ? Ability : VideoAbility

type StepsOfKind<Kind, Ability> = ('t2v' extends Kind ? RatioStep & AudioStep : unknown) &
  ('i2v' extends Kind ? FirstFrameStep & AudioStep : unknown) &
  ('r2v' extends Kind ? RatioStep & ReferenceSteps<Ability> : unknown)

/** Where voices are known, a first picture is too. */
type ReferenceSteps<Ability> = 'voices' extends Ability
  ? ReferenceStep<VoiceOption> & FirstFrameStep
  : ReferenceStep<unknown>

type StepsOfAbility<Ability> = ('last_frame' extends Ability ? LastFrameSteps : unknown) &
  ('shots' extends Ability ? ShotsStep : unknown) &
  ('mute' extends Ability ? MuteStep : unknown)

/** Builds a video request step by step. A model shows the steps that it can do; an unknown one shows all. */
export type VideoBuilder<Model> = CommonSteps<Model> &
  StepsOfKind<KindOf<Model>, AbilityOf<Model>> &
  StepsOfAbility<AbilityOf<Model>>
