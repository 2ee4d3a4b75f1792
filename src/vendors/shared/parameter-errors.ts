import { GatewayError } from '../../core/errors.ts'

/** The request needs something that the model does not support; `param` names the member. */
export function unsupportedParameter(param: string, message: string): GatewayError {
  return new GatewayError('unsupported_parameter', { message, param })
}

/** The request cannot be read; `param` names the member. */
export function invalidParameter(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', { message, param })
}
