import { credentialOf, type SandboxCall } from '../sandbox-call.ts'
import { jsonReply, RefusedCall, type SandboxReply, type VendorErrors } from '../sandbox-operation.ts'
import { GEMINI_ERRORS, GEMINI_HEADERS } from './gemini-errors.ts'

const USUAL: ReadonlyMap<number, readonly [code: string, message: string]> = new Map([
  [400, ['invalid_request', 'Request contains an invalid argument.']],
  [404, ['not_found', 'Requested entity was not found.']],
  [429, ['resource_exhausted', 'Resource has been exhausted (e.g. check quota).']],
  [500, ['internal', 'An internal error has occurred. Please retry.']],
  [503, ['unavailable', 'The model is overloaded. Please try again later.']],
  [504, ['deadline_exceeded', 'Deadline expired before operation could complete.']],
])

/**
 * Errors of the Interactions API: a code in words, without status and details. What the front end refuses before it, such as
 * a key, comes in Google's usual envelope, in a list.
 */
export const GEMINI_INTERACTIONS_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    if (status === 401 || status === 403) return listed(GEMINI_ERRORS.status(status, message, retryAfterSeconds))
    const [code, text] = USUAL.get(status) ?? ['unknown', 'Unknown error.']
    return interactionError(status, code, message ?? text, retryAfterSeconds)
  },
  quota: () => listed(GEMINI_ERRORS.quota()),
  badKey: () => listed(GEMINI_ERRORS.badKey()),
  streamEvent() {
    const error = { message: 'The model is overloaded. Please try again later.', code: 'unavailable' }
    return `event: error\ndata: ${JSON.stringify({ error, event_type: 'error' })}\n\n`
  },
}

/** Refuses with 400 `invalid_request`, unless told another status. */
export function refuseInteraction(message: string, status = 400): never {
  throw new RefusedCall(GEMINI_INTERACTIONS_ERRORS.status(status, message))
}

/** Refuses a call without a key; any key will do. */
export function checkInteractionKey(call: SandboxCall): void {
  if (credentialOf(call) === '') throw new RefusedCall(GEMINI_INTERACTIONS_ERRORS.status(403))
}

function interactionError(status: number, code: string, message: string, retryAfterSeconds?: number): SandboxReply {
  // The error has no details to say it in, as those of the older API have.
  const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
  return jsonReply(status, [...GEMINI_HEADERS, ...wait], { error: { message, code } })
}

function listed(reply: SandboxReply): SandboxReply {
  return { ...reply, pieces: [`[${reply.pieces.join('')}\n]\n`] }
}
