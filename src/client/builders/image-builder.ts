import type { ModelFacts } from '../../catalog/model-facts.ts'
import { DASHSCOPE_IMAGE_MODELS } from '../../catalog/models/dashscope-models.ts'
import { GEMINI_IMAGE_MODELS } from '../../catalog/models/gemini-models.ts'
import { imageFamilyOf } from '../../catalog/models/image-families.ts'
import { OPENAI_IMAGE_MODELS } from '../../catalog/models/openai-models.ts'
import { GatewayError } from '../../core/errors.ts'
import type { ImageModels, OtherImageAnswer, OtherImageEvent, OtherImageRequest } from '../models/image-models.ts'
import type { InteractionImageAnswer, ThinkingInteractionConfig } from '../models/interaction-images.ts'
import type { AnswerOf, EventOf, FieldOf, ModelId, RequestOf } from '../models/model-request.ts'
import type { MultimodalImageAnswer, MultimodalTextRequest } from '../models/multimodal-images.ts'
import type { OpenAIImageAnswer } from '../models/openai-images.ts'
import { knownModel } from './draft.ts'
import {
  InteractionImageDraft,
  type InteractionPicture,
  MultimodalImageDraft,
  OpenAIImageDraft,
} from './image-drafts.ts'
import type { FormatSteps, PartialStreamStep, PictureSteps, StreamField } from './picture-draft.ts'

type FieldsOf<Model> = RequestOf<ImageModels, Model, OtherImageRequest>

/** Image request, ready to be sent. */
export type BuiltImage<Model, Stream extends boolean = false> = FieldsOf<Model> & {
  readonly model: Model
} & StreamField<Stream>

interface CommonSteps<Model, Stream extends boolean> {
  prompt(text: string): this
  /** @throws GatewayError `invalid_request` or `unsupported_parameter` naming the missing or invalid field. */
  build(): BuiltImage<Model, Stream>
}

/** Size in the model's own format: `1024*1024`, `2K`, `1536x1024`. */
interface SizeStep<Size> {
  size(size: Size): this
}

/** Steps of the multimodal shape (API specification, "Multimodal image request"). */
interface MultimodalSteps {
  negativePrompt(text: string): this
  seed(value: number): this
  /** Sets the watermark. Default off. */
  watermark(isOn?: boolean): this
}

interface PromptExtendStep {
  /** Lets the vendor rewrite the prompt. The vendor's default is on. */
  promptExtend(isOn?: boolean): this
}

interface ReferenceUrlStep {
  /** Adds a reference image by its https URL. */
  reference(url: string): this
}

type StepsOfMultimodal<Request> = MultimodalSteps &
  ('size' extends keyof FieldOf<Request, 'parameters', unknown>
    ? SizeStep<FieldOf<FieldOf<Request, 'parameters', unknown>, 'size', string>> & PromptExtendStep
    : unknown) &
  (MultimodalTextRequest extends Request
    ? [Request] extends [MultimodalTextRequest]
      ? unknown
      : ReferenceUrlStep
    : ReferenceUrlStep)

/** Steps of the interactions shape (API specification, "Interactions-style image request"). */
interface InteractionSteps<Format> {
  /** Sets the size. Default `1K`. */
  size(size: FieldOf<Format, 'image_size', string>): this
  aspectRatio(ratio: FieldOf<Format, 'aspect_ratio', string>): this
  /** Adds a reference image. */
  reference(picture: InteractionPicture): this
  system(instruction: string): this
  /** Sets the temperature, from 0 to 2. */
  temperature(value: number): this
  /** Continues an earlier answer. */
  continuing(interactionId: string): this
  /** Sets whether the answer is stored, so that it can be continued. Default true. */
  store(isOn: boolean): this
}

interface ThinkingStep {
  thinking(level: NonNullable<ThinkingInteractionConfig['thinking_level']>): this
}

type StepsOfInteraction<Request> = InteractionSteps<FieldOf<Request, 'response_format', unknown>> &
  ('thinking_level' extends keyof FieldOf<Request, 'generation_config', unknown> ? ThinkingStep : unknown)

/** Steps of OpenAI's shape that the older models do not have (OpenAI API, "Create image"). */
interface GptImageSteps extends FormatSteps {
  moderation(level: 'auto' | 'low'): this
}

type StepsOfOpenAI<Request> = PictureSteps &
  SizeStep<FieldOf<Request, 'size', string>> &
  ('output_format' extends keyof Request ? GptImageSteps : unknown)

interface StreamStep<Streaming> {
  /** Requests each image in its own event. */
  stream(): Streaming
}

/** Models of the interactions shape have no partial images; some models do not stream. */
type StepsOfStream<Model> = [EventOf<ImageModels, Model, OtherImageEvent>] extends [never]
  ? unknown
  : AnswerOfModel<Model> extends InteractionImageAnswer
    ? StreamStep<ImageBuilder<Model, true>>
    : PartialStreamStep<ImageBuilder<Model, true>>

type AnswerOfModel<Model> = AnswerOf<ImageModels, Model, OtherImageAnswer>

/** Builds an image request step by step. A known model has the steps of its shape; an unknown one has the steps of all shapes. */
export type ImageBuilder<Model, Stream extends boolean = false> = CommonSteps<Model, Stream> &
  StepsOfStream<Model> &
  (AnswerOfModel<Model> extends MultimodalImageAnswer
    ? StepsOfMultimodal<FieldsOf<Model>>
    : AnswerOfModel<Model> extends InteractionImageAnswer
      ? StepsOfInteraction<FieldsOf<Model>>
      : AnswerOfModel<Model> extends OpenAIImageAnswer
        ? StepsOfOpenAI<FieldsOf<Model>>
        : StepsOfMultimodal<unknown> &
            StepsOfInteraction<unknown> &
            ThinkingStep &
            StepsOfOpenAI<unknown> &
            GptImageSteps &
            PromptExtendStep)

/** Facts of a model that the package does not know, equal to its row in the gateway. */
export type ImageModelFacts = Pick<ModelFacts, 'protocol' | 'image'>

/**
 * Starts an image request, in the shape of the model.
 * @throws GatewayError `model_not_configured` if the shape of the model is unknown.
 */
export function image<const Model extends ModelId<ImageModels>>(
  model: Model,
  facts?: ImageModelFacts,
): ImageBuilder<Model> {
  const { protocol, image: abilities } =
    facts ??
    knownModel(model, DASHSCOPE_IMAGE_MODELS, GEMINI_IMAGE_MODELS, OPENAI_IMAGE_MODELS) ??
    imageFamilyOf(model) ??
    {}
  const row: ModelFacts = { id: model, limits: {}, ...(abilities === undefined ? {} : { image: abilities }) }
  // Each draft has every step of its shape; the type exposes only those of the model.
  return draftOf(protocol, row) as never
}

function draftOf(protocol: string | undefined, model: ModelFacts): object {
  switch (protocol) {
    case 'multimodal':
      return new MultimodalImageDraft({ model, references: [], parameters: {} })
    case 'interactions':
      return new InteractionImageDraft({ model, references: [], format: {}, config: {} })
    case 'generations':
      return new OpenAIImageDraft({ model, fields: {} })
    default:
      throw new GatewayError('model_not_configured', {
        message: `The shape of ${model.id} is not known: give its protocol, multimodal, interactions or generations.`,
        param: 'model',
      })
  }
}
