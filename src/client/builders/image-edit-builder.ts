import { IMAGE_MODELS } from '../../catalog/models/image-models.ts'
import { checkListedSize } from '../../endpoints/images/openai/image-size.ts'
import type { EditedImages } from '../gateway-client.ts'
import { imageEditForm } from '../image-edit-form.ts'
import type { ImageEditModels, OtherImageEditRequest } from '../models/image-edit-models.ts'
import type { FieldOf, ModelId, RequestOf } from '../models/model-request.ts'
import type { ImageQuality } from '../models/openai-images.ts'
import type { Upload } from '../upload.ts'
import { builderFault } from './draft.ts'
import { knownModel } from './known-model.ts'
import { PictureDraft } from './picture-draft.ts'
import { checkPictureFields, type PictureFields } from './picture-fields.ts'

type FieldsOf<Model> = RequestOf<ImageEditModels, Model, OtherImageEditRequest>

/** An edit, ready to be sent by the client. */
export type BuiltImageEdit<Model> = FieldsOf<Model> & EditedImages & { readonly model: Model }

/** Steps that every model on the edits route takes. */
interface EditSteps<Model> {
  prompt(text: string): this
  /** A picture to change; call it again to give several. */
  image(picture: Upload): this
  /** A PNG of the same size, transparent where the picture shall change. */
  mask(picture: Upload): this
  size(size: FieldOf<FieldsOf<Model>, 'size', string>): this
  quality(quality: ImageQuality): this
  /** 1 to 10. */
  count(pictures: number): this
  endUser(id: string): this
  /**
   * The request for `client.images.edit`.
   * @throws GatewayError naming the field that is missing, wrong, or not the model's.
   */
  build(): BuiltImageEdit<Model>
  /** The request as a form, for any other HTTP client. Throws as {@link EditSteps.build} does, and for a path outside Node. */
  form(): Promise<FormData>
}

/** Steps of models that let the format be chosen. */
interface FormatSteps {
  /** `compression` is 0 to 100, and not for `png`. */
  format(format: 'png' | 'jpeg' | 'webp', compression?: number): this
  /** `transparent` needs `png` or `webp`. */
  background(background: 'transparent' | 'opaque' | 'auto'): this
}

/** Steps of models that can answer with addresses. */
interface AddressSteps {
  /** The answer holds addresses of the pictures in place of bytes. */
  urls(): this
}

/** Builds an edit step by step. A model shows the steps that it can do; an unknown one shows all. */
export type ImageEditBuilder<Model> = EditSteps<Model> &
  (Model extends keyof ImageEditModels
    ? 'output_format' extends keyof FieldsOf<Model>
      ? FormatSteps
      : unknown
    : FormatSteps) &
  ('url' extends FieldOf<FieldsOf<Model>, 'response_format', 'url'> ? AddressSteps : unknown)

/** Begins an edit. */
export function imageEdit<const Model extends ModelId<ImageEditModels>>(model: Model): ImageEditBuilder<Model> {
  // It has every step; the type shows those of the model.
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
    const { model, images, mask, fields } = this.state
    const { prompt } = fields
    if (prompt === undefined || prompt === '') throw builderFault('prompt', 'is required')
    if (images.length === 0) throw builderFault('image', 'is required')
    const abilities = knownModel(IMAGE_MODELS, model)?.image
    checkListedSize(fields.size, abilities)
    checkPictureFields(fields, abilities)
    const most = abilities?.referenceImages?.max
    if (most !== undefined && images.length > most) throw builderFault('image', `${model} takes at most ${most}`)
    return { model, ...fields, prompt, image: [...images], ...(mask === undefined ? {} : { mask }) }
  }
  async form(): Promise<FormData> {
    return imageEditForm(this.build())
  }
}
