import { GatewayError } from '../core/errors.ts'
import { DEFAULT_FORM_LIMITS, type FormLimits } from './form-limits.ts'
import { FormParser } from './form-parser.ts'
import { headerParameters } from './header-parameters.ts'
import type { Form } from './multipart.ts'

export type { FormLimits } from './form-limits.ts'

// RFC 2046, section 5.1.1.
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/**
 * Reads a `multipart/form-data` body that is in memory. The parts come in the order of the body; the chunks of files are
 * slices of `chunks`, apart from a few bytes at their edges. Files are not bounded one by one: the body itself is.
 *
 * A part counts as a file when it has a file name, or when it has none but an image, audio, video, font or
 * `application/octet-stream` type; its file name is then empty. All else is a text field, read as UTF-8 or in the charset that
 * its type names.
 *
 * Rejects with GatewayError `invalid_request` when `contentType` is no form or has no proper boundary, when the form is cut
 * short, when a part cannot be understood, and when a limit is passed.
 */
export async function readForm(
  contentType: string,
  chunks: readonly Uint8Array[],
  limits: Partial<FormLimits> = {},
): Promise<Form> {
  return new FormParser(boundaryOf(contentType), { ...DEFAULT_FORM_LIMITS, ...limits }).read(chunks)
}

function boundaryOf(contentType: string): string {
  const header = headerParameters(contentType)
  if (header?.value !== 'multipart/form-data') {
    throw new GatewayError('invalid_request', {
      message: 'The Content-Type header is not a proper multipart/form-data.',
    })
  }
  const boundary = header.parameters.get('boundary')
  if (boundary === undefined || !BOUNDARY.test(boundary)) {
    throw new GatewayError('invalid_request', {
      message: 'The Content-Type header of the form has no boundary of 1 to 70 characters.',
    })
  }
  return boundary
}
