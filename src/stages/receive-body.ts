import { GatewayError } from '../core/errors.ts'
import type { BodyFailure, GatewayRequest } from '../core/exchange.ts'
import { mediaType } from '../wire/headers.ts'
import { joinChunks } from '../wire/join-chunks.ts'
import type { Form } from '../wire/multipart.ts'
import { readForm } from '../wire/read-form.ts'
import type { Authenticated } from './records.ts'
import type { StageContext } from './stage-context.ts'

/** A body that has arrived: the bytes of a JSON text, or the parts of a form. */
export type ReceivedBody = Uint8Array | Form

/** Tells forms from bytes. */
export function isForm(received: ReceivedBody): received is Form {
  return !(received instanceof Uint8Array)
}

/**
 * Reads the body.
 * @throws GatewayError `unsupported_media_type` before anything is read; `body_too_large`, `body_consumed` or
 *   `client_closed_request` when there is no body to be had; `invalid_request` for a form that cannot be read.
 */
export function receiveBody(context: StageContext, { request, endpoint }: Authenticated): Promise<ReceivedBody> {
  const contentType = request.header('content-type')
  const type = mediaType(contentType)
  if (type === 'application/json') return readBody(request, context.bodyLimitBytes).then(joinChunks)
  const takesForms = endpoint.formBody !== undefined
  if (takesForms && type === 'multipart/form-data' && contentType !== undefined)
    return readBody(request, context.bodyLimitBytes).then((chunks) => readForm(contentType, chunks))
  const types = takesForms ? 'multipart/form-data or application/json' : 'application/json'
  throw new GatewayError('unsupported_media_type', { message: `Send the body as Content-Type: ${types}.` })
}

function readBody(request: GatewayRequest, limitBytes: number): Promise<readonly Uint8Array[]> {
  return new Promise((resolve, reject) => {
    request.readBody(limitBytes, (failure, chunks) => {
      if (failure !== undefined) reject(bodyError(failure, limitBytes))
      else resolve(chunks)
    })
  })
}

function bodyError(failure: BodyFailure, limitBytes: number): GatewayError {
  if (failure === 'too_large') {
    return new GatewayError('body_too_large', { message: `The request body is larger than ${limitBytes} bytes.` })
  }
  return new GatewayError(failure === 'consumed' ? 'body_consumed' : 'client_closed_request')
}
