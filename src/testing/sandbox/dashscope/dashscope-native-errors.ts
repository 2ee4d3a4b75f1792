import { jsonReply, RefusedCall, type SandboxReply, type VendorErrors } from '../sandbox-operation.ts'
import { DASHSCOPE_HEADERS } from './dashscope-errors.ts'

/** `request_id` of every native answer; the same that stands in its headers. */
export const DASHSCOPE_REQUEST_ID = DASHSCOPE_HEADERS[DASHSCOPE_HEADERS.indexOf('x-request-id') + 1]

const USUAL: ReadonlyMap<number, readonly [code: string, message: string]> = new Map([
  [401, ['InvalidApiKey', 'Invalid API-key provided.']],
  [403, ['AccessDenied', 'Access denied.']],
  [404, ['ModelNotFound', 'Model not exist.']],
  [429, ['Throttling.RateQuota', 'Requests rate limit exceeded, please try again later.']],
  [503, ['ModelUnavailable', 'Model is unavailable, please try again later.']],
])
const INVALID = ['InvalidParameter', 'The request is invalid.'] as const
const BROKEN = ['InternalError', 'An internal error has occurred, please try again later.'] as const

/** DashScope's errors in its native API: `{ code, message, request_id }`. */
export const DASHSCOPE_NATIVE_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const [code, text] = USUAL.get(status) ?? (status >= 500 ? BROKEN : INVALID)
    return nativeError(status, code, message ?? text, retryAfterSeconds)
  },
  quota: () => nativeError(400, 'Arrearage', 'Access denied, please make sure your account is in good standing.'),
  badKey: () => DASHSCOPE_NATIVE_ERRORS.status(401),
  streamEvent() {
    const [code, message] = BROKEN
    return `event:error\ndata:${JSON.stringify({ code, message, request_id: DASHSCOPE_REQUEST_ID })}\n\n`
  },
}

/** Refuses a call with 400. */
export function refuseNative(message: string, code = 'InvalidParameter'): never {
  throw new RefusedCall(nativeError(400, code, message))
}

function nativeError(status: number, code: string, message: string, retryAfterSeconds?: number): SandboxReply {
  const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
  return jsonReply(status, [...DASHSCOPE_HEADERS, ...wait], { code, message, request_id: DASHSCOPE_REQUEST_ID })
}
