import { DASHSCOPE_VIDEO_MODELS } from '../../catalog/models/dashscope-models.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import {
  referenceKind,
  type VideoIntent,
  type VideoModelFacts,
  type VideoReference,
} from '../../endpoints/videos/video-protocol.ts'
import { buildBody, videoProtocolOf } from '../../endpoints/videos/video-protocols.ts'
import { mediaAddresses, type VideoRequest } from '../../endpoints/videos/video-request.ts'
import type { FieldOf, ModelId, ModelRequest, RequestOf } from '../models/model-request.ts'
import type { OtherVideoRequest, VideoAbility, VideoModels, VideoRatio, VideoTaskKind } from '../models/video-models.ts'
import { createBuilder, knownModel, type Steps } from './draft.ts'

/** Defaults of the API specification, "Video generation request". */
const DEFAULT_RESOLUTION = '720p'
const DEFAULT_SECONDS = 5

/** A video request, ready to be sent. */
export type BuiltVideo<Model> = ModelRequest<VideoModels, Model, OtherVideoRequest>

type FieldsOf<Model> = RequestOf<VideoModels, Model, OtherVideoRequest>

/** Steps that every video model supports. */
interface CommonSteps<Model> {
  /** Sets the prompt. It refers to references as `Image 1` or `Video 1`; images and videos are numbered separately, in their order. */
  prompt(text: string): this
  negativePrompt(text: string): this
  /** Sets the resolution. Default `720p`. */
  tier(tier: FieldOf<FieldsOf<Model>, 'resolution', string>): this
  /** Sets the duration in whole seconds. Default 5. */
  seconds(seconds: FieldOf<FieldsOf<Model>, 'duration', number>): this
  seed(value: number): this
  /** Sets the watermark. Off by default, whatever the vendor's default is. */
  watermark(isOn?: boolean): this
  /** Lets the vendor rewrite the prompt. */
  promptExtend(isOn?: boolean): this
  /** Sets the URL that is called when the video has ended. */
  webhook(url: string): this
  /**
   * @throws GatewayError naming the step that the model does not support (`unsupported_parameter`), or the missing or invalid field
   *   (`invalid_request`); `model_not_configured` for a model without a known layout.
   */
  build(): BuiltVideo<Model>
}

/** Steps that some models support. */
interface OptionalSteps<Model> {
  /** Sets the aspect ratio. Default `16:9`. */
  aspectRatio(ratio: VideoRatio): VideoBuilder<Model>
  /** Sets the URL of the audio track. */
  audio(url: string): VideoBuilder<Model>
  /** Sets the URL of the first frame. */
  firstFrame(url: string): VideoBuilder<Model>
  /** Sets the URL of the last frame. */
  lastFrame(url: string): VideoBuilder<Model>
  /** Sets the URL of a video to continue; its seconds count towards the duration. */
  firstClip(url: string): VideoBuilder<Model>
  /** Adds an image or video whose subject appears in the video. `kind` is required if the file name does not show it. */
  reference(
    url: string,
    options?: { readonly kind?: 'image' | 'video' } & ('voices' extends AbilityOf<Model> ? VoiceOption : unknown),
  ): VideoBuilder<Model>
  shots(type: 'single' | 'multi'): VideoBuilder<Model>
  /** Removes the audio. */
  mute(): VideoBuilder<Model>
}

interface VoiceOption {
  /** URL of a recording of the subject's voice. */
  readonly voice?: string
}

type RowOf<Model> = Model extends keyof VideoModels ? VideoModels[Model] : unknown
type KindOf<Model> = FieldOf<RowOf<Model>, 'kind', VideoTaskKind>
type AbilityOf<Model> = RowOf<Model> extends { readonly ability: infer Ability } ? Ability : VideoAbility

/** Names of the optional steps. Every model with voices also supports a first frame. */
type StepNames<Kind, Ability> =
  | ('t2v' extends Kind ? 'aspectRatio' | 'audio' : never)
  | ('i2v' extends Kind ? 'firstFrame' | 'audio' : never)
  | ('r2v' extends Kind ? 'aspectRatio' | 'reference' | ('voices' extends Ability ? 'firstFrame' : never) : never)
  | ('last_frame' extends Ability ? 'lastFrame' | 'firstClip' : never)
  | ('shots' extends Ability ? 'shots' : never)
  | ('mute' extends Ability ? 'mute' : never)

/** Builds a video request step by step. A known model has the steps that it supports; an unknown one has all steps. */
export type VideoBuilder<Model> = CommonSteps<Model> &
  Pick<OptionalSteps<Model>, StepNames<KindOf<Model>, AbilityOf<Model>>>

/**
 * Starts a video request in the layout of the model: the same steps give different bodies for a 2.6 and a 2.7 model, and the fields
 * at the top always agree with `parameters`.
 * @param facts Layout and abilities of a model that the package does not know, equal to its row in the gateway.
 */
export function video<const Model extends ModelId<VideoModels>>(
  model: Model,
  facts?: Omit<VideoModelFacts, 'id'>,
): VideoBuilder<Model> {
  const { protocol, video: abilities } = facts ?? knownModel(model, DASHSCOPE_VIDEO_MODELS) ?? {}
  const row: VideoModelFacts = {
    id: model,
    ...(protocol === undefined ? {} : { protocol }),
    ...(abilities === undefined ? {} : { video: abilities }),
  }
  const start: State = { resolution: DEFAULT_RESOLUTION, seconds: DEFAULT_SECONDS }
  return createBuilder(start, STEPS, {
    build({ webhookUrl, ...intent }): VideoRequest {
      const body = buildBody(intent, row)
      videoProtocolOf(row).check(body, row)
      mediaAddresses(body.input)
      return webhookUrl === undefined ? body : { ...body, webhook_url: webhookUrl }
    },
  })
}

interface State extends VideoIntent {
  readonly webhookUrl?: string
}

const STEPS = {
  prompt: (_, prompt: string) => ({ prompt }),
  negativePrompt: (_, negativePrompt: string) => ({ negativePrompt }),
  tier: (_, resolution: string) => ({ resolution }),
  seconds: (_, seconds: number) => {
    if (!Number.isInteger(seconds)) throw invalidField('seconds', 'must be a whole number')
    return { seconds }
  },
  aspectRatio: (_, aspectRatio: string) => ({ aspectRatio }),
  seed: (_, seed: number) => ({ seed }),
  watermark: (_, isOn = true) => ({ watermark: isOn }),
  promptExtend: (_, isOn = true) => ({ promptExtend: isOn }),
  audio: (_, audio: string) => ({ audio }),
  firstFrame: (_, firstFrame: string) => ({ firstFrame }),
  lastFrame: (_, lastFrame: string) => ({ lastFrame }),
  firstClip: (_, firstClip: string) => ({ firstClip }),
  shots: (_, shotType: string) => ({ shotType }),
  mute: () => ({ mute: true }),
  reference: (
    { references = [] },
    url: string,
    { kind = referenceKind(url), voice }: Partial<Omit<VideoReference, 'url'>> = {},
  ) => {
    if (kind === undefined) {
      throw invalidField(
        `references[${references.length}]`,
        'its file name does not show the kind; give kind: image or video',
      )
    }
    return { references: [...references, { kind, url, ...(voice === undefined ? {} : { voice }) }] }
  },
  webhook: (_, webhookUrl: string) => {
    if (!/^https?:\/\//i.test(webhookUrl) || !URL.canParse(webhookUrl)) {
      throw invalidField('webhook_url', 'must be an http(s) URL')
    }
    return { webhookUrl }
  },
} satisfies Steps<State>
