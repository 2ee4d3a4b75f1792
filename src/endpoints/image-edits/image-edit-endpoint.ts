import { Buffer } from 'node:buffer'
import type { ImageAbilities } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import { type ImageHeader, imageHeader } from '../../wire/image-header.ts'
import type { FormFile } from '../../wire/write-form.ts'
import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { invalidField } from '../field-errors.ts'
import { formTexts, withFormTexts } from '../forms.ts'
import {
  checkListedSize,
  checkPictureOptions,
  pictureBillingFields,
  pictureEstimate,
} from '../images/openai/openai-image-request.ts'
import { pictureSchema } from '../images/openai/openai-image-schema.ts'
import { type PassThroughOperation, passThroughIfOffered } from '../operation.ts'
import { checkRequest, jsonSchemaOf } from '../schema.ts'
import { type RequestPlaces, requestTexts } from '../texts.ts'
import {
  ImageEditForm,
  type ImageEditRequest,
  type ImageReference,
  imageReference,
  imageReferencesSchema,
} from './image-edit-request.ts'

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
  createOperation: ({ imageEdits }, call) => passThroughIfOffered(imageEdits, call),
})

const PLACES: RequestPlaces = { kinds: { prompt: 'text' }, last: ['prompt'], roleOf: () => 'user' }

function formRequest(body: ImageEditForm): ImageEditRequest {
  const fields = checkRequest<EditFields>(pictureSchema(), body.fields)
  if (body.images.length === 0) throw invalidField('image', 'is required, as a file')
  return { ...fields, images: body.images, mask: body.mask, form: body.form }
}

function jsonRequest(body: unknown): ImageEditRequest {
  const fields = checkRequest<EditFields>(pictureSchema(), body)
  if (isJsonObject(body) && body['images'] === undefined) {
    const problem = 'is required: a list of { image_url } or { file_id }; or send a form with the file image'
    throw invalidField('images', problem)
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
    { picture: mask, param: 'mask.image_url' },
    { picture: markup, param: 'markup.image_url' },
  ]
  return pictures.flatMap(({ picture, param }) =>
    picture && 'image_url' in picture && !isDataUrl(picture.image_url) ? [{ url: picture.image_url, param }] : [],
  )
}

type Pictures = Pick<ImageEditRequest, 'images' | 'mask' | 'form'>

/**
 * Checks images and mask by their headers (API specification, "Image edit request"), except images that only the vendor reads.
 * @throws GatewayError `invalid_request`; with code `invalid_mask` if the model does not support the mask, or if the mask is not a
 *   PNG or differs in size from the first image, which it applies to.
 */
function checkPictures(pictures: Pictures, abilities: ImageAbilities | undefined): void {
  const { images, mask, form } = pictures
  const isForm = form !== undefined
  const range = abilities?.referenceImages
  if (range !== undefined && (images.length < range.min || images.length > range.max)) {
    const count = range.min === range.max ? `exactly ${range.max}` : `${range.min} to ${range.max}`
    throw invalidField(isForm ? 'image' : 'images', `this model accepts ${count} images, not ${images.length}`)
  }
  const headers = images.map((image, index) => givenHeader(image, imageParam(index, images.length, isForm)))
  if (mask === undefined) return
  if (abilities?.takesMask !== true) throw badMask('this model does not support a mask')
  checkMask(maskHeader(mask), headers[0])
}

/** Returns the path of an image as callers write it: `image` alone for the only file of a form. */
function imageParam(index: number, count: number, isForm: boolean): string {
  if (!isForm) return `images[${index}]`
  return count === 1 ? 'image' : `image[${index}]`
}

function maskHeader(mask: NonNullable<Pictures['mask']>): ImageHeader | undefined {
  try {
    return givenHeader(mask, 'mask')
  } catch (error) {
    // Errors with a public code concern the image, all others the way it is given.
    if (!GatewayError.isInstance(error) || error.publicCode === error.code) throw error
    throw badMask('must be a PNG image of a valid size')
  }
}

function checkMask(mask: ImageHeader | undefined, image: ImageHeader | undefined): void {
  if (mask === undefined) return
  if (mask.format !== 'png') throw badMask(`must be a PNG image, not ${mask.format}`)
  if (image === undefined || (mask.width === image.width && mask.height === image.height)) return
  throw badMask(
    `must have the size of the image: it has ${mask.width}x${mask.height} pixels, the image ${image.width}x${image.height}`,
  )
}

function badMask(text: string): GatewayError {
  return invalidField('mask', text, 'invalid_mask')
}

/** Longest side of an image, in pixels. A file with a longer side cannot be edited. */
export const MAX_PICTURE_SIDE = 30_000

// Only JPEG files with large profiles have a later header. They are decoded completely.
const HEADER_BASE64_LENGTH = 65_536

const DATA_URL = /^data:[^,]{0,200};base64,/i

/**
 * Reads the header of an image, unless only the vendor can read it: https URLs and ids of its files.
 * @throws GatewayError `invalid_request` naming `param`: with code `unsupported_image_format` unless it is a PNG, JPEG or WebP,
 *   with `invalid_image` for an impossible size, and for a URL other than https and `data:`.
 */
function givenHeader(picture: FormFile | ImageReference, param: string): ImageHeader | undefined {
  if ('file_id' in picture) return undefined
  if ('chunks' in picture) return usable(imageHeader(picture.chunks), param)
  const url = picture.image_url
  if (isDataUrl(url)) return usable(dataUrlHeader(url), `${param}.image_url`)
  if (URL.canParse(url) && new URL(url).protocol === 'https:') return undefined
  throw invalidField(`${param}.image_url`, 'must be an https URL, or a data: URL in base64')
}

/** Whether a URL contains the image itself. */
function isDataUrl(url: string): boolean {
  return /^data:/i.test(url)
}

function usable(header: ImageHeader | undefined, param: string): ImageHeader {
  if (header === undefined) throw invalidField(param, 'must be a PNG, JPEG or WebP image', 'unsupported_image_format')
  const { width, height } = header
  if (width > MAX_PICTURE_SIDE || height > MAX_PICTURE_SIDE) {
    throw invalidField(param, `claims to have ${width}x${height} pixels`, 'invalid_image')
  }
  return header
}

function dataUrlHeader(url: string): ImageHeader | undefined {
  const start = DATA_URL.exec(url)?.[0].length
  if (start === undefined) return undefined
  const first = imageHeader([Buffer.from(url.slice(start, start + HEADER_BASE64_LENGTH), 'base64')])
  if (first !== undefined || url.length <= start + HEADER_BASE64_LENGTH) return first
  return imageHeader([Buffer.from(url.slice(start), 'base64')])
}
