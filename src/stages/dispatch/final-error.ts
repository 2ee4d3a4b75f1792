import { GatewayError } from '../../core/errors.ts'

/** The same error, telling the caller not to send the request again: a vendor may be at work on a paid job. */
export function finalError(cause: unknown): GatewayError {
  const error = GatewayError.from(cause)
  return new GatewayError(error.code, { ...error, message: error.message, cause: error.cause, retryable: false })
}
