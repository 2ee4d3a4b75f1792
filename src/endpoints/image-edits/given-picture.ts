import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { type ImageHeader, imageHeader } from '../../wire/image-header.ts'
import type { FormFile } from '../../wire/multipart.ts'
import type { ImageReference } from './image-edit-request.ts'

/** Longest side that is believed, in pixels; a file that claims more is not a picture anybody can edit. */
export const MAX_PICTURE_SIDE = 30_000

// Headers stand at the beginning, but for JPEG files with large profiles: those are decoded as a whole.
const HEADER_BASE64_LENGTH = 65_536

const DATA_URL = /^data:[^,]{0,200};base64,/i

/**
 * Reads the header of a picture. Undefined for pictures that only the vendor can see: https URLs and ids of its files.
 * @throws GatewayError `invalid_request` naming `param`: with code `unsupported_image_format` for what is no PNG, JPEG or
 *   WebP by its first bytes, `invalid_image` for a size that cannot be, and for a URL that is neither https nor `data:`.
 */
export function givenHeader(picture: FormFile | ImageReference, param: string): ImageHeader | undefined {
  if ('file_id' in picture) return undefined
  if ('chunks' in picture) return usable(imageHeader(picture.chunks), param)
  const url = picture.image_url
  if (isDataUrl(url)) return usable(dataUrlHeader(url), `${param}.image_url`)
  if (URL.canParse(url) && new URL(url).protocol === 'https:') return undefined
  throw fault(`${param}.image_url`, 'must be an https URL, or a data: URL in base64')
}

/** Does a URL hold the picture itself? */
export function isDataUrl(url: string): boolean {
  return /^data:/i.test(url)
}

function usable(header: ImageHeader | undefined, param: string): ImageHeader {
  if (header === undefined) throw fault(param, 'must be a PNG, JPEG or WebP picture', 'unsupported_image_format')
  const { width, height } = header
  if (width > MAX_PICTURE_SIDE || height > MAX_PICTURE_SIDE) {
    throw fault(param, `claims to have ${width}x${height} pixels`, 'invalid_image')
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

function fault(param: string, text: string, publicCode?: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param, publicCode })
}
