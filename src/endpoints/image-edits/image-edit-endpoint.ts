import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { formTexts, withFormTexts } from '../form-texts.ts'
import {
  checkListedSize,
  checkPictureOptions,
  pictureBillingFields,
  pictureEstimate,
} from '../images/openai/openai-image-request.ts'
import { pictureSchema } from '../images/openai/openai-image-schema.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { type PassThroughOperation, passThrough } from '../operation.ts'
import { checkRequest } from '../request-field.ts'
import { type RequestPlaces, requestTexts } from '../request-texts.ts'
import { checkPictures, isDataUrl } from './edited-pictures.ts'
import { ImageEditForm, type ImageEditRequest, imageReference, imageReferencesSchema } from './image-edit-request.ts'

type EditFields = Omit<ImageEditRequest, 'images' | 'mask' | 'form'>
type References = ReturnType<ReturnType<typeof imageReferencesSchema>['parse']>

/** Part of a vendor that handles image edits. */
export interface ImageEditsOffer {
  readonly imageEdits?: PassThroughOperation<ImageEditRequest>
}

/** `POST /v1/images/edits`, as a form or as JSON (API specification, "Image edit request"). */
export const imageEditEndpoint = defineEndpoint<ImageEditRequest, ImageEditsOffer>({
  id: 'image_edits',
  path: '/v1/images/edits',
  kind: 'image_edit',
  servesUnlisted: ({ imageEdits }) => imageEdits !== undefined,
  protocols: ({ imageEdits }) => (imageEdits === undefined ? [] : ['generations']),
  errors: openaiErrors,
  isPaidJob: true,
  formBody: (form) => new ImageEditForm(form),
  parse(body, { image }) {
    const request = body instanceof ImageEditForm ? formRequest(body) : jsonRequest(body)
    checkListedSize(request.size, image)
    checkPictureOptions(request, image)
    checkPictures(request, image)
    return request
  },
  requestSchema: () => jsonSchemaOf(pictureSchema().extend(imageReferencesSchema().shape), 'input'),
  isStream: (request) => request.stream === true,
  textBytes: (request) => Buffer.byteLength(request.prompt),
  estimate(request, textTokens, model) {
    const { images, mask, markup, form } = request
    const files = form?.filter(({ kind }) => kind === 'file') ?? [...images, mask, markup]
    const pictures = files.filter((file) => file !== undefined).length
    return pictureEstimate(request, { textTokens, pictures }, model)
  },
  priceFields: pictureBillingFields,
  priceFieldNames: ['size', 'quality'],
  callerUrls,
  texts: {
    request: (request) =>
      request.form === undefined ? requestTexts(request, PLACES) : formTexts(request.form, PLACES),
    replace: ({ form = [] }, texts) => formRequest(new ImageEditForm(withFormTexts(form, texts))),
  },
  createOperation: ({ imageEdits }, call) => imageEdits && passThrough(imageEdits.toWire(call), imageEdits, call),
})

const PLACES: RequestPlaces = { kinds: { prompt: 'text' }, last: ['prompt'], roleOf: () => 'user' }

function formRequest(body: ImageEditForm): ImageEditRequest {
  const fields = checkRequest<EditFields>(pictureSchema(), body.fields)
  if (body.images.length === 0) {
    throw new GatewayError('invalid_request', { message: 'image: is required, as a file', param: 'image' })
  }
  return { ...fields, images: body.images, mask: body.mask, form: body.form }
}

function jsonRequest(body: unknown): ImageEditRequest {
  const fields = checkRequest<EditFields>(pictureSchema(), body)
  if (isJsonObject(body) && body['images'] === undefined) {
    const message = 'images: is required: a list of { image_url } or { file_id }; or send a form with the file image'
    throw new GatewayError('invalid_request', { message, param: 'images' })
  }
  const { images, mask, markup } = checkRequest<References>(imageReferencesSchema(), body)
  // A JSON member called `form` is the caller's own, not a form.
  return {
    ...fields,
    images: images.map(imageReference),
    mask: mask ? imageReference(mask) : undefined,
    markup: markup ? imageReference(markup) : undefined,
    form: undefined,
  }
}

/** Addresses of images in a JSON body, which the vendor fetches. */
function callerUrls({ images, mask, markup }: ImageEditRequest): readonly CallerUrl[] {
  const pictures = [
    ...images.map((picture, index) => ({ picture, param: `images[${index}].image_url` })),
    ...(mask === undefined ? [] : [{ picture: mask, param: 'mask.image_url' }]),
    ...(markup === undefined ? [] : [{ picture: markup, param: 'markup.image_url' }]),
  ]
  return pictures.flatMap(({ picture, param }) =>
    'image_url' in picture && !isDataUrl(picture.image_url) ? [{ url: picture.image_url, param }] : [],
  )
}
