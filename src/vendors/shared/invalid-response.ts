import { GatewayError } from '../../core/errors.ts'
import type { VendorFailure } from '../vendor.ts'

/** The failure of a stream with malformed vendor data. */
export function invalidResponse(message: string): VendorFailure {
  return { kind: 'invalid_response', status: 0, message }
}

/** The request needs something that the model does not support; `param` names the member. */
export function unsupportedParameter(param: string, message: string): GatewayError {
  return new GatewayError('unsupported_parameter', { message, param })
}

/** The request cannot be read; `param` names the member. */
export function invalidParameter(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', { message, param })
}
