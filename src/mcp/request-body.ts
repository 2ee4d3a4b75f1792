import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import { mediaType } from '../wire/headers.ts'

/**
 * Says by its headers whether a body can be read.
 * @throws GatewayError `unsupported_media_type`.
 */
export function checkContentType(request: GatewayRequest): void {
  if (mediaType(request.header('content-type')) === 'application/json') return
  throw new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: application/json.' })
}

/**
 * Reads a whole body.
 * @throws GatewayError `body_too_large`, `body_consumed` or `client_closed_request`.
 */
export function readRequestBody(request: GatewayRequest, limitBytes: number): Promise<readonly Uint8Array[]> {
  return new Promise((resolve, reject) => {
    request.readBody(limitBytes, (failure, chunks) => {
      if (failure === undefined) resolve(chunks)
      else if (failure === 'too_large') {
        const message = `The request body is larger than ${limitBytes} bytes.`
        reject(new GatewayError('body_too_large', { message }))
      } else reject(new GatewayError(failure === 'consumed' ? 'body_consumed' : 'client_closed_request'))
    })
  })
}
