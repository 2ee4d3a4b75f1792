import { GatewayError } from '../core/errors.ts'

/** A 400 about one field. The message begins with the field; `problem` follows it: `must be a string`. */
export function invalidField(param: string, problem: string, publicCode?: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${problem}`, param, publicCode })
}

/** A 400 about a field that the model cannot follow. */
export function unsupportedField(param: string, problem: string): GatewayError {
  return new GatewayError('unsupported_parameter', { message: `${param}: ${problem}`, param })
}

/** Returns the error with the name of its field in another dialect. */
export function renamedError(error: GatewayError, param: string): GatewayError {
  if (error.param === undefined || error.param === param) return error
  const message = error.message.replaceAll(error.param, param)
  return new GatewayError(error.code, { ...error, message, param, cause: error.cause })
}
