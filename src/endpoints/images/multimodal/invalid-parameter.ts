import { GatewayError } from '../../../core/errors.ts'

/** The code of every fault of a request in this shape (API specification, "Errors": multimodal image). */
const INVALID_PARAMETER = 'InvalidParameter'

/** A 400 `InvalidParameter` about one field. `problem` follows the field's name: `is not supported`. */
export function invalidParameter(param: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', {
    message: `${param}: ${problem}`,
    param,
    publicCode: INVALID_PARAMETER,
  })
}

/** Runs a check, and gives what it throws as `invalid_request` the code `InvalidParameter`. */
export function asInvalidParameter<Result>(check: () => Result): Result {
  try {
    return check()
  } catch (error) {
    if (!GatewayError.isInstance(error) || error.code !== 'invalid_request') throw error
    const { message, param } = error
    throw new GatewayError('invalid_request', { message, param, publicCode: INVALID_PARAMETER, cause: error.cause })
  }
}
