import { type FieldRule, ofType, rule, wholeNumber } from '../request-fields.ts'
import { jsonReply, RefusedCall, type SandboxReply, type VendorErrors } from '../sandbox-operation.ts'

const REQUEST_ID = '5a1f7c10-sand-9b0e-box0-1d2c3b4a5f60'

/** Headers of every answer. DashScope sends no `retry-after` and no rate-limit headers. */
export const DASHSCOPE_HEADERS: readonly string[] = [
  'x-request-id',
  REQUEST_ID,
  'x-dashscope-call-gateway',
  'true',
  'req-cost-time',
  '21',
  'server',
  'istio-envoy',
]

const USUAL: Readonly<Record<number, readonly [code: string, message: string]>> = {
  400: ['invalid_parameter_error', '<400> InternalError.Algo.InvalidParameter: The request is invalid.'],
  401: ['invalid_api_key', 'Incorrect API key provided.'],
  403: ['access_denied', 'Access denied.'],
  404: ['model_not_found', 'The model does not exist or you do not have access to it.'],
  429: ['limit_requests', 'Requests rate limit exceeded, please try again later.'],
  503: ['ModelUnavailable', '<503> InternalError.Algo: Model is unavailable, please try again later.'],
}

/** DashScope's errors in its OpenAI-compatible mode. */
export const DASHSCOPE_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const other =
      status >= 500 ? ['internal_error', '<500> InternalError.Algo: An internal error has occured.'] : USUAL[400]
    const [code, text] = USUAL[status] ?? (other as readonly [string, string])
    return dashscopeError(status, message ?? text, code, retryAfterSeconds)
  },
  quota: () => dashscopeError(400, 'Access denied, please make sure your account is in good standing.', 'Arrearage'),
  badKey: () => DASHSCOPE_ERRORS.status(401),
  streamEvent() {
    const message = '<500> InternalError.Algo: An internal error has occured.'
    const error = { message, type: 'internal_error', param: null, code: 'internal_error' }
    return `data: ${JSON.stringify({ error, request_id: REQUEST_ID })}\n\n`
  },
}

/** Creates a 400 about a field of the request. */
export function dashscopeInvalid(
  message: string,
  param: string | null = null,
  code = 'invalid_parameter_error',
): SandboxReply {
  return dashscopeError(400, message, code, undefined, param)
}

function dashscopeError(
  status: number,
  message: string,
  code: string,
  retryAfterSeconds?: number,
  param: string | null = null,
): SandboxReply {
  const type = status === 400 && code === 'invalid_parameter_error' ? 'invalid_request_error' : code
  const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
  return jsonReply(status, [...DASHSCOPE_HEADERS, ...wait], {
    error: { message, type, param, code },
    request_id: REQUEST_ID,
  })
}

/** `request_id` of every native answer, equal to the one in its headers. */
export const DASHSCOPE_REQUEST_ID = DASHSCOPE_HEADERS[DASHSCOPE_HEADERS.indexOf('x-request-id') + 1]

const USUAL_NATIVE: ReadonlyMap<number, readonly [code: string, message: string]> = new Map([
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
    const [code, text] = USUAL_NATIVE.get(status) ?? (status >= 500 ? BROKEN : INVALID)
    return nativeError(status, code, message ?? text, retryAfterSeconds)
  },
  quota: () => nativeError(400, 'Arrearage', 'Access denied, please make sure your account is in good standing.'),
  badKey: () => DASHSCOPE_NATIVE_ERRORS.status(401),
  streamEvent() {
    const [code, message] = BROKEN
    return `event:error\ndata:${JSON.stringify({ code, message, request_id: DASHSCOPE_REQUEST_ID })}\n\n`
  },
}

const LARGEST_SEED = 2 ** 31 - 1

/** Creates the row of a boolean setting. */
export function booleanRule(field: string): FieldRule {
  return rule(field, ofType('boolean'), `Input should be a valid boolean: parameters.${field}`)
}

/** Settings that images and videos share. */
export const SETTING_RULES: readonly FieldRule[] = [
  booleanRule('watermark'),
  booleanRule('prompt_extend'),
  rule('seed', wholeNumber(0, LARGEST_SEED), `seed must be in [0, ${LARGEST_SEED}]: parameters.seed`),
]

/** Rejects a call with 400. */
export function refuseNative(message: string, code = 'InvalidParameter'): never {
  throw new RefusedCall(nativeError(400, code, message))
}

function nativeError(status: number, code: string, message: string, retryAfterSeconds?: number): SandboxReply {
  const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
  return jsonReply(status, [...DASHSCOPE_HEADERS, ...wait], { code, message, request_id: DASHSCOPE_REQUEST_ID })
}
