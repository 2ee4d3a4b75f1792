import { GatewayError } from '../../core/errors.ts'

/** Longest reason, in characters; some repeat what the caller wrote, which may be megabytes. */
const MAX_REASON_LENGTH = 500

/** A 400 about one field of a video request; the message begins with the field. */
export function videoFault(param: string, reason: string): GatewayError {
  const text = reason.length <= MAX_REASON_LENGTH ? reason : `${reason.slice(0, MAX_REASON_LENGTH)}…`
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param })
}

/** A 400 for a field that is not there, in the words of the vendor: `Field required: input.media`. */
export function fieldRequired(param: string): GatewayError {
  return new GatewayError('invalid_request', { message: `Field required: ${param}`, param })
}

/** True for a member that says something; null says as little as an absent one. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
