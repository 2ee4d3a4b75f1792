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
import { Draft, knownModel, required, within } from './draft.ts'

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

/** Minimum state of an image draft in OpenAI's shape. */
interface PictureState {
  readonly fields: PictureFields
}

/** Steps that new and edited images of OpenAI's shape have in common. */
abstract class PictureDraft<State extends PictureState> extends Draft<State> {
  prompt(prompt: string): this {
    return this.set({ prompt })
  }
  size(size: string): this {
    return this.set({ size })
  }
  count(n: number): this {
    return this.set({ n })
  }
  quality(quality: string): this {
    return this.set({ quality })
  }
  format(format: string, compression?: number): this {
    return this.set({
      output_format: format,
      ...(compression === undefined ? {} : { output_compression: compression }),
    })
  }
  background(background: string): this {
    return this.set({ background })
  }
  endUser(user: string): this {
    return this.set({ user })
  }
  stream(partialImages?: number): this {
    return this.set({ stream: true, ...(partialImages === undefined ? {} : { partial_images: partialImages }) })
  }

  /** Returns the fields after the checks of the model's limits. Each of the two routes has its own rule for sizes. */
  protected checked(
    abilities: ImageAbilities | undefined,
    checkSize: (size: string | undefined, abilities: ImageAbilities | undefined) => void,
  ): PictureFields & { readonly prompt: string } {
    const { fields } = this.state
    const prompt = required('prompt', fields.prompt)
    checkSize(fields.size, abilities)
    checkPictureFields(fields, abilities)
    return { ...fields, prompt }
  }

  protected set(change: PictureFields): this {
    return this.with({ fields: { ...this.state.fields, ...change } } as Partial<State>)
  }
}

/**
 * Checks the range of numbers and, like the gateway, the fields that depend on the model or on another field. Sizes are checked
 * separately.
 */
function checkPictureFields(fields: PictureFields, abilities: ImageAbilities | undefined): void {
  const { n, partial_images: partialImages, output_compression: compression } = fields
  if (n !== undefined) within('n', n, [1, abilities?.maxImages ?? MAX_PICTURES])
  checkPictureOptions(fields, abilities)
  if (partialImages !== undefined) within('partial_images', partialImages, [0, MAX_PARTIAL_IMAGES])
  if (compression !== undefined) within('output_compression', compression, [0, 100])
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
  // The draft has every step; the type exposes only those of the model.
  return new ImageEditDraft({ model, images: [], fields: {} }) as never
}

interface State {
  readonly model: string
  readonly images: readonly Upload[]
  readonly mask?: Upload
  readonly fields: PictureFields
}

class ImageEditDraft extends PictureDraft<State> {
  image(picture: Upload): this {
    return this.with({ images: [...this.state.images, picture] })
  }
  mask(mask: Upload): this {
    return this.with({ mask })
  }
  urls(): this {
    return this.set({ response_format: 'url' })
  }
  build() {
    const { model, images, mask } = this.state
    const known = knownModel(model, DASHSCOPE_IMAGE_MODELS, GEMINI_IMAGE_MODELS, OPENAI_IMAGE_MODELS)
    const abilities = (known ?? imageFamilyOf(model))?.image
    const fields = this.checked(abilities, checkListedSize)
    if (images.length === 0) throw invalidField('image', 'is required')
    const most = abilities?.referenceImages?.max
    if (most !== undefined && images.length > most) throw invalidField('image', `${model} takes at most ${most}`)
    return { model, ...fields, image: [...images], ...(mask === undefined ? {} : { mask }) }
  }
  async form(): Promise<FormData> {
    return imageEditForm(this.build())
  }
}

/** Image as base64 data or as a URL. */
export type InteractionPicture =
  | { readonly mimeType: string; readonly data: string }
  | { readonly mimeType: string; readonly uri: string }

interface MultimodalState {
  readonly model: ModelFacts
  readonly prompt?: string
  readonly references: readonly string[]
  readonly parameters: NonNullable<MultimodalImageRequest['parameters']>
}

/** An image request in the multimodal shape (API specification, "Multimodal image request"). */
class MultimodalImageDraft extends Draft<MultimodalState> {
  prompt(prompt: string): this {
    return this.with({ prompt })
  }
  reference(url: string): this {
    if (!/^https:\/\//i.test(url))
      throw invalidField(`references[${this.state.references.length}]`, 'must be an https URL')
    return this.with({ references: [...this.state.references, url] })
  }
  size(size: string): this {
    return this.#set({ size })
  }
  negativePrompt(text: string): this {
    return this.#set({ negative_prompt: text })
  }
  seed(seed: number): this {
    return this.#set({ seed })
  }
  watermark(isOn = true): this {
    return this.#set({ watermark: isOn })
  }
  promptExtend(isOn = true): this {
    return this.#set({ prompt_extend: isOn })
  }
  stream(): never {
    throw invalidField('stream', 'this shape does not stream')
  }
  build(): MultimodalImageRequest {
    const { model, references, parameters } = this.state
    const prompt = required('prompt', this.state.prompt)
    const request: MultimodalImageRequest = {
      model: model.id,
      input: { messages: [{ role: 'user', content: [...references.map((image) => ({ image })), { text: prompt }] }] },
      ...(Object.keys(parameters).length === 0 ? {} : { parameters: { ...parameters } }),
    }
    if (model.image !== undefined) checkAbilities(request, model.image)
    return request
  }

  #set(change: MultimodalState['parameters']): this {
    return this.with({ parameters: { ...this.state.parameters, ...change } })
  }
}

interface InteractionState {
  readonly model: ModelFacts
  readonly prompt?: string
  readonly references: readonly InteractionBlock[]
  readonly format: { readonly image_size?: string; readonly aspect_ratio?: string }
  readonly config: NonNullable<InteractionRequest['generation_config']>
  readonly system?: string
  readonly previousId?: string
  readonly isStored?: boolean
  readonly isStreamed?: true
}

/** An image request in the interactions shape (API specification, "Interactions-style image request"). */
class InteractionImageDraft extends Draft<InteractionState> {
  prompt(prompt: string): this {
    return this.with({ prompt })
  }
  size(size: string): this {
    return this.with({ format: { ...this.state.format, image_size: size } })
  }
  aspectRatio(ratio: string): this {
    return this.with({ format: { ...this.state.format, aspect_ratio: ratio } })
  }
  reference({ mimeType, ...picture }: InteractionPicture): this {
    return this.with({ references: [...this.state.references, { type: 'image', mime_type: mimeType, ...picture }] })
  }
  system(instruction: string): this {
    return this.with({ system: instruction })
  }
  temperature(value: number): this {
    const temperature = within('generation_config.temperature', value, [0, 2])
    return this.with({ config: { ...this.state.config, temperature } })
  }
  thinking(level: string): this {
    return this.with({ config: { ...this.state.config, thinking_level: level } })
  }
  continuing(interactionId: string): this {
    return this.with({ previousId: interactionId })
  }
  store(isStored: boolean): this {
    return this.with({ isStored })
  }
  stream(partialImages?: number): this {
    if (partialImages !== undefined) throw invalidField('partial_images', 'this shape has no partial images')
    return this.with({ isStreamed: true })
  }
  build(): InteractionRequest {
    const { model, references, format, config, system, previousId, isStored, isStreamed } = this.state
    const prompt = required('prompt', this.state.prompt)
    if (isStored === false && previousId !== undefined) {
      throw invalidField('previous_interaction_id', 'cannot be combined with store false')
    }
    const request: InteractionRequest = {
      model: model.id,
      input: references.length === 0 ? prompt : [...references, { type: 'text', text: prompt }],
      ...(system === undefined ? {} : { system_instruction: system }),
      ...(Object.keys(format).length === 0 ? {} : { response_format: { type: 'image', ...format } }),
      ...(Object.keys(config).length === 0 ? {} : { generation_config: { ...config } }),
      ...(previousId === undefined ? {} : { previous_interaction_id: previousId }),
      ...(isStored === undefined ? {} : { store: isStored }),
      ...(isStreamed === undefined ? {} : { stream: isStreamed }),
    }
    checkInteractionAbilities(request, model)
    return request
  }
}

interface OpenAIState {
  readonly model: ModelFacts
  readonly fields: PictureFields
}

/** An image request in OpenAI's shape (OpenAI API, "Create image"). */
class OpenAIImageDraft extends PictureDraft<OpenAIState> {
  moderation(moderation: string): this {
    return this.set({ moderation })
  }
  build(): OpenAIImageRequest {
    const { model } = this.state
    return { model: model.id, ...this.checked(model.image, checkFreeSize) }
  }
}

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
