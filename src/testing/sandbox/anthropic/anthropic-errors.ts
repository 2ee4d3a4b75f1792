import { jsonReply, RefusedCall, type VendorErrors } from '../sandbox-operation.ts'

const REQUEST_ID = 'req_011sandbox'

/** Headers on every answer; none of them is meant for the gateway's caller. */
export const ANTHROPIC_HEADERS: readonly string[] = [
  'request-id',
  REQUEST_ID,
  'anthropic-organization-id',
  '00000000-0000-4000-8000-00000000a17c',
  'anthropic-ratelimit-requests-limit',
  '4000',
  'anthropic-ratelimit-requests-remaining',
  '3999',
  'anthropic-ratelimit-requests-reset',
  '2026-01-01T00:00:01Z',
  'set-cookie',
  '_cfuvid=sandbox; path=/; HttpOnly; Secure',
]

const USUAL: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ['invalid_request_error', 'The request is invalid.'],
  401: ['authentication_error', 'invalid x-api-key'],
  402: ['billing_error', 'Your credit balance is too low to access the Anthropic API.'],
  403: ['permission_error', 'Your API key does not have permission to use the specified resource.'],
  404: ['not_found_error', 'model: not found'],
  409: ['conflict_error', 'The request conflicts with another one.'],
  413: ['request_too_large', 'Request exceeds the maximum size'],
  429: ['rate_limit_error', 'This request would exceed the rate limit for your organization.'],
  500: ['api_error', 'Internal server error'],
  504: ['timeout_error', 'The request timed out.'],
  529: ['overloaded_error', 'Overloaded'],
}

/** Anthropic's errors. */
export const ANTHROPIC_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const [type, text] =
      USUAL[status] ??
      (status >= 500 ? ['api_error', 'Internal server error'] : ['invalid_request_error', 'The request is invalid.'])
    const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
    const error = { type, message: message ?? text }
    return jsonReply(status, [...ANTHROPIC_HEADERS, ...wait], { type: 'error', error, request_id: REQUEST_ID })
  },
  quota: () => ANTHROPIC_ERRORS.status(402),
  badKey: () => ANTHROPIC_ERRORS.status(401),
  streamEvent: () =>
    `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })}\n\n`,
}

/** Refuses with 400. */
export function refuseAnthropic(message: string): never {
  throw new RefusedCall(ANTHROPIC_ERRORS.status(400, message))
}
