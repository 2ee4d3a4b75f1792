import { GatewayError } from '../../core/errors.ts'

/** A 400 about one field of a video request; the message begins with the field. */
export function videoFault(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}

/** A 400 for a field that is not there, in the words of the vendor: `Field required: input.media`. */
export function fieldRequired(param: string): GatewayError {
  return new GatewayError('invalid_request', { message: `Field required: ${param}`, param })
}

/** True for a member that says something; null says as little as an absent one. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
