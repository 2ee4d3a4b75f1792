import { GatewayError } from '../../core/errors.ts'
import type { PictureArgument } from './arguments.ts'

/** A picture argument that is either bytes or an address. */
export type GivenPicture =
  | { readonly data: string; readonly mimeType: string }
  | { readonly url: string; readonly mimeType: string | undefined }

const IMAGE_TYPE = /^image\/[\w.+-]+$/i

/**
 * Reads a picture argument.
 * @throws GatewayError `invalid_request` naming `param` when it is not exactly one of the two ways to give a picture.
 */
export function givenPicture({ data, mime_type: mimeType, url }: PictureArgument, param: string): GivenPicture {
  if (data !== undefined && url !== undefined) throw fault(param, 'takes either data or url')
  if (url !== undefined) {
    if (!/^https:\/\//i.test(url)) throw fault(`${param}.url`, 'must be an https URL')
    return { url, mimeType }
  }
  if (data === undefined) throw fault(param, 'needs data or url')
  if (mimeType === undefined || !IMAGE_TYPE.test(mimeType)) {
    throw fault(`${param}.mime_type`, 'must be the media type of the picture, such as image/png')
  }
  return { data, mimeType }
}

/** The picture as one URL: its own, or a `data:` URL. */
export function pictureUrl(given: GivenPicture): string {
  return 'url' in given ? given.url : `data:${given.mimeType};base64,${given.data}`
}

function fault(param: string, text: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param })
}
