import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'

export const model = z.string().min(1).describe('Id of a model from list_models.')

/** Idempotency key of calls that cost money. */
export const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .optional()
  .describe('Makes retries safe: calls with the same key and arguments are executed and charged once in 24 hours.')

/** Field of endpoints that can stream: a tool cannot read a streamed answer, but it would be charged. */
export const noStream = z.literal(false).optional().describe('Tools return whole answers, so only false is accepted.')

export const taskId = z.string().min(1).max(10_000).describe('The task_id from submit_video.')

/** Image argument. */
export const picture = z
  .object({
    data: z.string().min(1).optional().describe('Image in base64, without a data: prefix.'),
    mime_type: z
      .string()
      .optional()
      .describe('Media type of data, such as image/png. Required with data, and by some models with url.'),
    url: z.string().min(1).optional().describe('Public https URL of the image, instead of data.'),
  })
  .describe('Image: data with mime_type, or url.')

/** Checked image argument: base64 data, or a URL. */
export type GivenPicture =
  | { readonly data: string; readonly mimeType: string }
  | { readonly url: string; readonly mimeType: string | undefined }

const IMAGE_TYPE = /^image\/[\w.+-]+$/i

/**
 * Checks an image argument.
 * @throws GatewayError `invalid_request` naming `param` unless it contains either data or a URL.
 */
export function givenPicture({ data, mime_type: mimeType, url }: z.infer<typeof picture>, param: string): GivenPicture {
  if (data !== undefined && url !== undefined) throw fault(param, 'takes either data or url')
  if (url !== undefined) {
    if (!/^https:\/\//i.test(url)) throw fault(`${param}.url`, 'must be an https URL')
    return { url, mimeType }
  }
  if (data === undefined) throw fault(param, 'needs data or url')
  if (mimeType === undefined || !IMAGE_TYPE.test(mimeType)) {
    throw fault(`${param}.mime_type`, 'must be the media type of the image, such as image/png')
  }
  return { data, mimeType }
}

/** Returns the image as one URL: its own, or a `data:` URL. */
export function pictureUrl(given: GivenPicture): string {
  return 'url' in given ? given.url : `data:${given.mimeType};base64,${given.data}`
}

function fault(param: string, text: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param })
}
