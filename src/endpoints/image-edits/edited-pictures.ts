import { GatewayError } from '../../core/errors.ts'
import type { ImageHeader } from '../../wire/image-header.ts'
import type { ImageAbilities } from '../model-facts.ts'
import { givenHeader } from './given-picture.ts'
import type { ImageEditRequest } from './image-edit-request.ts'

/** The pictures of a request, as far as they are checked here. */
type Pictures = Pick<ImageEditRequest, 'images' | 'mask' | 'form'>

/**
 * Checks pictures and mask by their first bytes (API specification, "Image edit request" and "Errors"). What only the
 * vendor can see is left to it.
 * @throws GatewayError `invalid_request`; with code `invalid_mask` for a mask that the model does not take, that is no
 *   PNG, or that has another size than the first picture, which is the one it applies to.
 */
export function checkPictures(pictures: Pictures, abilities: ImageAbilities | undefined): void {
  const { images, mask, form } = pictures
  const isForm = form !== undefined
  const range = abilities?.referenceImages
  if (range !== undefined && (images.length < range.min || images.length > range.max)) {
    const count = range.min === range.max ? `exactly ${range.max}` : `${range.min} to ${range.max}`
    throw invalid(isForm ? 'image' : 'images', `this model takes ${count} of them, not ${images.length}`)
  }
  const headers = images.map((image, index) => givenHeader(image, imageParam(index, images.length, isForm)))
  if (mask === undefined) return
  if (abilities?.takesMask !== true) throw badMask('this model does not take a mask')
  checkMask(maskHeader(mask), headers[0])
}

/** Where a picture stands, as callers write it; `image` alone for the only file of a form. */
function imageParam(index: number, count: number, isForm: boolean): string {
  if (!isForm) return `images[${index}]`
  return count === 1 ? 'image' : `image[${index}]`
}

function maskHeader(mask: NonNullable<Pictures['mask']>): ImageHeader | undefined {
  try {
    return givenHeader(mask, 'mask')
  } catch (error) {
    // Errors with a code of their own are about the picture, all others about the way it is given.
    if (!GatewayError.isInstance(error) || error.publicCode === error.code) throw error
    throw badMask('must be a PNG picture of a size that can be')
  }
}

function checkMask(mask: ImageHeader | undefined, image: ImageHeader | undefined): void {
  if (mask === undefined) return
  if (mask.format !== 'png') throw badMask(`must be a PNG picture, not ${mask.format}`)
  if (image === undefined || (mask.width === image.width && mask.height === image.height)) return
  throw badMask(
    `must have the size of the picture: it has ${mask.width}x${mask.height} pixels, the picture ${image.width}x${image.height}`,
  )
}

function badMask(text: string): GatewayError {
  return invalid('mask', text, 'invalid_mask')
}

function invalid(param: string, text: string, publicCode?: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param, publicCode })
}
