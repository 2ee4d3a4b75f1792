import { DASHSCOPE_IMAGE_MODELS } from '../../catalog/models/dashscope-models.ts'
import { GEMINI_IMAGE_MODELS } from '../../catalog/models/gemini-models.ts'
import { imageFamilyOf } from '../../catalog/models/image-families.ts'
import { OPENAI_IMAGE_MODELS } from '../../catalog/models/openai-models.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import { checkListedSize } from '../../endpoints/images/openai/openai-image-request.ts'
import type { EditedImages } from '../gateway-client.ts'
import type { ImageEditModels, OtherImageEditRequest, OtherImageEvent } from '../models/image-models.ts'
import type { EventOf, FieldOf, ModelId, RequestOf } from '../models/model-request.ts'
import { imageEditForm, type Upload } from '../upload.ts'
import { knownModel } from './draft.ts'
import {
  type FormatSteps,
  type PartialStreamStep,
  PictureDraft,
  type PictureFields,
  type PictureSteps,
  type StreamField,
} from './picture-draft.ts'

type FieldsOf<Model> = RequestOf<ImageEditModels, Model, OtherImageEditRequest>

/** Image edit, ready to be sent by the client. */
export type BuiltImageEdit<Model, Stream extends boolean = false> = FieldsOf<Model> &
  EditedImages & { readonly model: Model } & StreamField<Stream>

/** Steps that every model on the edits route supports. */
interface EditSteps<Model, Stream extends boolean> extends PictureSteps {
  prompt(text: string): this
  /** Adds an image to edit. */
  image(picture: Upload): this
  /** Sets the mask: a PNG of the same size, transparent where the image should change. */
  mask(picture: Upload): this
  size(size: FieldOf<FieldsOf<Model>, 'size', string>): this
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
    ? 'output_format' extends keyof FieldsOf<Model>
      ? FormatSteps
      : unknown
    : FormatSteps) &
  ('url' extends FieldOf<FieldsOf<Model>, 'response_format', 'url'> ? AddressSteps : unknown) &
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
