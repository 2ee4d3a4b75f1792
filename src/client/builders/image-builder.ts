import type { ImageAbilities, ModelFacts } from '../../catalog/model-facts.ts'
import { DASHSCOPE_IMAGE_MODELS } from '../../catalog/models/dashscope-models.ts'
import { GEMINI_IMAGE_MODELS } from '../../catalog/models/gemini-models.ts'
import { imageFamilyOf } from '../../catalog/models/image-families.ts'
import { OPENAI_IMAGE_MODELS } from '../../catalog/models/openai-models.ts'
import { GatewayError } from '../../core/errors.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import {
  checkInteractionAbilities,
  type InteractionBlock,
  type InteractionRequest,
} from '../../endpoints/images/interactions/interaction-request.ts'
import {
  checkAbilities,
  type MultimodalImageRequest,
} from '../../endpoints/images/multimodal/multimodal-image-request.ts'
import {
  checkFreeSize,
  checkListedSize,
  checkPictureOptions,
  type OpenAIImageRequest,
} from '../../endpoints/images/openai/openai-image-request.ts'
import type { EditedImages } from '../gateway-client.ts'
import type {
  ImageEditModels,
  ImageModels,
  InteractionImageAnswer,
  MultimodalImageAnswer,
  MultimodalTextRequest,
  OpenAIImageAnswer,
  OtherImageAnswer,
  OtherImageEditRequest,
  OtherImageEvent,
  OtherImageRequest,
  PlannedImageQuality,
  ThinkingInteractionConfig,
} from '../models/image-models.ts'
import type { AnswerOf, EventOf, FieldOf, ModelId, RequestOf } from '../models/model-request.ts'
import { imageEditForm, type Upload } from '../upload.ts'
import { createBuilder, knownModel, required, type Steps, within } from './draft.ts'

/** Maximum number of images (API specification, "Limits"). */
const MAX_PICTURES = 10

/** Maximum number of partial images (OpenAI API, "Create image"). */
const MAX_PARTIAL_IMAGES = 3

/** Steps that every model of OpenAI's shape supports, for new images and edits (OpenAI API, "Create image"). */
interface PictureSteps {
  quality(quality: PlannedImageQuality): this
  /** Sets the number of images, from 1 to 10. */
  count(pictures: number): this
  endUser(id: string): this
}

/** Steps of models with a choice of formats. */
interface FormatSteps {
  /** Sets the format. `compression` is from 0 to 100, and is not available for `png`. */
  format(format: 'png' | 'jpeg' | 'webp', compression?: number): this
  /** Sets the background. `transparent` requires `png` or `webp`. */
  background(background: 'transparent' | 'opaque' | 'auto'): this
}

/** Step of models that stream partial images. */
interface PartialStreamStep<Streaming> {
  /** Requests each image in its own event, after up to 3 partial images, which cost tokens. Default 0. */
  stream(partialImages?: 0 | 1 | 2 | 3): Streaming
}

/** The `stream` member of a request; absent unless the step was used. */
type StreamField<Stream extends boolean> = Stream extends true ? { readonly stream: true } : unknown

/** Fields of new and edited images of OpenAI's shape. */
interface PictureFields {
  readonly prompt?: string
  readonly n?: number
  readonly size?: string
  readonly quality?: string
  readonly output_format?: string
  readonly output_compression?: number
  readonly background?: string
  readonly response_format?: string
  readonly moderation?: string
  readonly user?: string
  readonly stream?: true
  readonly partial_images?: number
}

/** Steps that new and edited images of OpenAI's shape have in common. */
const PICTURE_STEPS = {
  prompt: (_, prompt: string) => ({ prompt }),
  size: (_, size: string) => ({ size }),
  count: (_, n: number) => ({ n }),
  quality: (_, quality: string) => ({ quality }),
  format: (_, format: string, compression?: number) => ({
    output_format: format,
    ...(compression === undefined ? {} : { output_compression: compression }),
  }),
  background: (_, background: string) => ({ background }),
  endUser: (_, user: string) => ({ user }),
  stream: (_, partialImages?: number) => ({
    stream: true,
    ...(partialImages === undefined ? {} : { partial_images: partialImages }),
  }),
} satisfies Steps<PictureFields>

/** Returns the fields after the checks of the model's limits. Each of the two routes has its own rule for sizes. */
function checkedPicture(
  fields: PictureFields,
  abilities: ImageAbilities | undefined,
  checkSize: typeof checkListedSize,
): PictureFields & { readonly prompt: string } {
  const prompt = required('prompt', fields.prompt)
  const { n, size, partial_images: partialImages, output_compression: compression } = fields
  checkSize(size, abilities)
  if (n !== undefined) within('n', n, [1, abilities?.maxImages ?? MAX_PICTURES])
  checkPictureOptions(fields, abilities)
  if (partialImages !== undefined) within('partial_images', partialImages, [0, MAX_PARTIAL_IMAGES])
  if (compression !== undefined) within('output_compression', compression, [0, 100])
  return { ...fields, prompt }
}

type ImageEditFields<Model> = RequestOf<ImageEditModels, Model, OtherImageEditRequest>

/** Image edit, ready to be sent by the client. */
export type BuiltImageEdit<Model, Stream extends boolean = false> = ImageEditFields<Model> &
  EditedImages & { readonly model: Model } & StreamField<Stream>

/** Steps that every model on the edits route supports. */
interface EditSteps<Model, Stream extends boolean> extends PictureSteps {
  prompt(text: string): this
  /** Adds an image to edit. */
  image(picture: Upload): this
  /** Sets the mask: a PNG of the same size, transparent where the image should change. */
  mask(picture: Upload): this
  size(size: FieldOf<ImageEditFields<Model>, 'size', string>): this
  /**
   * Returns the request for `client.images.edit`.
   * @throws GatewayError naming the field that is missing, invalid, or unsupported by the model.
   */
  build(): BuiltImageEdit<Model, Stream>
  /** Returns the request as a form, for any other HTTP client. Throws as {@link EditSteps.build} does, and for a path outside Node. */
  form(): Promise<FormData>
}

/** Steps of models that can return URLs. */
interface AddressSteps {
  /** Requests URLs of the images instead of bytes. */
  urls(): this
}

/** Builds an edit step by step. A known model has the steps that it supports; an unknown one has all steps. */
export type ImageEditBuilder<Model, Stream extends boolean = false> = EditSteps<Model, Stream> &
  (Model extends keyof ImageEditModels
    ? 'output_format' extends keyof ImageEditFields<Model>
      ? FormatSteps
      : unknown
    : FormatSteps) &
  ('url' extends FieldOf<ImageEditFields<Model>, 'response_format', 'url'> ? AddressSteps : unknown) &
  ([EventOf<ImageEditModels, Model, OtherImageEvent>] extends [never]
    ? unknown
    : PartialStreamStep<ImageEditBuilder<Model, true>>)

/** Starts an edit. */
export function imageEdit<const Model extends ModelId<ImageEditModels>>(model: Model): ImageEditBuilder<Model> {
  const build = ({ images, mask, ...fields }: EditState) => {
    const abilities = knownImageModel(model)?.image
    const checked = checkedPicture(fields, abilities, checkListedSize)
    if (images.length === 0) throw invalidField('image', 'is required')
    const most = abilities?.referenceImages?.max
    if (most !== undefined && images.length > most) throw invalidField('image', `${model} takes at most ${most}`)
    return { model, ...checked, image: [...images], ...(mask === undefined ? {} : { mask }) }
  }
  const form = async (state: EditState): Promise<FormData> => imageEditForm(build(state))
  return createBuilder<EditState>({ images: [] }, EDIT_STEPS, { build, form })
}

interface EditState extends PictureFields {
  readonly images: readonly Upload[]
  readonly mask?: Upload
}

const EDIT_STEPS = {
  ...PICTURE_STEPS,
  image: ({ images }, picture: Upload) => ({ images: [...images, picture] }),
  mask: (_, mask: Upload) => ({ mask }),
  urls: () => ({ response_format: 'url' }),
} satisfies Steps<EditState>

/** Returns the package's definition of an image model, or the abilities of its family. */
function knownImageModel(id: string) {
  return knownModel(id, DASHSCOPE_IMAGE_MODELS, GEMINI_IMAGE_MODELS, OPENAI_IMAGE_MODELS) ?? imageFamilyOf(id)
}

/** Image as base64 data or as a URL. */
export type InteractionPicture =
  | { readonly mimeType: string; readonly data: string }
  | { readonly mimeType: string; readonly uri: string }

interface MultimodalState {
  readonly prompt?: string
  readonly references: readonly string[]
  readonly parameters: NonNullable<MultimodalImageRequest['parameters']>
}

/** Steps of a request in the multimodal shape (API specification, "Multimodal image request"). */
const MULTIMODAL_STEPS = {
  prompt: (_, prompt: string) => ({ prompt }),
  reference: ({ references }, url: string) => {
    if (!/^https:\/\//i.test(url)) throw invalidField(`references[${references.length}]`, 'must be an https URL')
    return { references: [...references, url] }
  },
  size: ({ parameters }, size: string) => ({ parameters: { ...parameters, size } }),
  negativePrompt: ({ parameters }, text: string) => ({ parameters: { ...parameters, negative_prompt: text } }),
  seed: ({ parameters }, seed: number) => ({ parameters: { ...parameters, seed } }),
  watermark: ({ parameters }, isOn = true) => ({ parameters: { ...parameters, watermark: isOn } }),
  promptExtend: ({ parameters }, isOn = true) => ({ parameters: { ...parameters, prompt_extend: isOn } }),
  stream: () => {
    throw invalidField('stream', 'this shape does not stream')
  },
} satisfies Steps<MultimodalState>

function multimodalRequest(model: ModelFacts, state: MultimodalState): MultimodalImageRequest {
  const { references, parameters } = state
  const text = required('prompt', state.prompt)
  const request: MultimodalImageRequest = {
    model: model.id,
    input: { messages: [{ role: 'user', content: [...references.map((image) => ({ image })), { text }] }] },
    ...(Object.keys(parameters).length === 0 ? {} : { parameters: { ...parameters } }),
  }
  if (model.image !== undefined) checkAbilities(request, model.image)
  return request
}

interface InteractionState {
  readonly prompt?: string
  readonly references: readonly InteractionBlock[]
  readonly format: { readonly image_size?: string; readonly aspect_ratio?: string }
  readonly config: NonNullable<InteractionRequest['generation_config']>
  readonly system_instruction?: string
  readonly previous_interaction_id?: string
  readonly store?: boolean
  readonly stream?: true
}

/** Steps of a request in the interactions shape (API specification, "Interactions-style image request"). */
const INTERACTION_STEPS = {
  prompt: (_, prompt: string) => ({ prompt }),
  size: ({ format }, size: string) => ({ format: { ...format, image_size: size } }),
  aspectRatio: ({ format }, ratio: string) => ({ format: { ...format, aspect_ratio: ratio } }),
  reference: ({ references }, { mimeType, ...picture }: InteractionPicture) => ({
    references: [...references, { type: 'image', mime_type: mimeType, ...picture }],
  }),
  system: (_, instruction: string) => ({ system_instruction: instruction }),
  temperature: ({ config }, value: number) => ({
    config: { ...config, temperature: within('generation_config.temperature', value, [0, 2]) },
  }),
  thinking: ({ config }, level: string) => ({ config: { ...config, thinking_level: level } }),
  continuing: (_, interactionId: string) => ({ previous_interaction_id: interactionId }),
  store: (_, isOn: boolean) => ({ store: isOn }),
  stream: (_, partialImages?: number) => {
    if (partialImages !== undefined) throw invalidField('partial_images', 'this shape has no partial images')
    return { stream: true }
  },
} satisfies Steps<InteractionState>

function interactionRequest(model: ModelFacts, state: InteractionState): InteractionRequest {
  const { references, format, config, prompt: _, ...members } = state
  const prompt = required('prompt', state.prompt)
  if (members.store === false && members.previous_interaction_id !== undefined) {
    throw invalidField('previous_interaction_id', 'cannot be combined with store false')
  }
  const request: InteractionRequest = {
    model: model.id,
    input: references.length === 0 ? prompt : [...references, { type: 'text', text: prompt }],
    ...(Object.keys(format).length === 0 ? {} : { response_format: { type: 'image', ...format } }),
    ...(Object.keys(config).length === 0 ? {} : { generation_config: { ...config } }),
    ...members,
  }
  checkInteractionAbilities(request, model)
  return request
}

/** Steps of a request in OpenAI's shape (OpenAI API, "Create image"). */
const OPENAI_STEPS = {
  ...PICTURE_STEPS,
  moderation: (_, moderation: string) => ({ moderation }),
} satisfies Steps<PictureFields>

type ImageFields<Model> = RequestOf<ImageModels, Model, OtherImageRequest>

/** Image request, ready to be sent. */
export type BuiltImage<Model, Stream extends boolean = false> = ImageFields<Model> & {
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
    ? StepsOfMultimodal<ImageFields<Model>>
    : AnswerOfModel<Model> extends InteractionImageAnswer
      ? StepsOfInteraction<ImageFields<Model>>
      : AnswerOfModel<Model> extends OpenAIImageAnswer
        ? StepsOfOpenAI<ImageFields<Model>>
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
  const { protocol, image: abilities } = facts ?? knownImageModel(model) ?? {}
  const row: ModelFacts = { id: model, limits: {}, ...(abilities === undefined ? {} : { image: abilities }) }
  switch (protocol) {
    case 'multimodal':
      return createBuilder<MultimodalState>({ references: [], parameters: {} }, MULTIMODAL_STEPS, {
        build: (state) => multimodalRequest(row, state),
      })
    case 'interactions':
      return createBuilder<InteractionState>({ references: [], format: {}, config: {} }, INTERACTION_STEPS, {
        build: (state) => interactionRequest(row, state),
      })
    case 'generations':
      return createBuilder<PictureFields>({}, OPENAI_STEPS, {
        build: (fields): OpenAIImageRequest => ({ model, ...checkedPicture(fields, abilities, checkFreeSize) }),
      })
    default:
      throw new GatewayError('model_not_configured', {
        message: `The shape of ${model} is not known: give its protocol, multimodal, interactions or generations.`,
        param: 'model',
      })
  }
}
