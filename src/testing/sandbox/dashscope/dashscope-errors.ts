import { type FieldRule, ofType, rule, wholeNumber } from '../request-fields.ts'
import {
  bearerAccess,
  eventText,
  jsonReply,
  RefusedCall,
  type SandboxReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

/** `request_id` of every native answer, equal to the one in its headers. */
export const DASHSCOPE_REQUEST_ID = '5a1f7c10-sand-9b0e-box0-1d2c3b4a5f60'

/** Headers of every answer. DashScope sends no `retry-after` and no rate-limit headers. */
export const DASHSCOPE_HEADERS: readonly string[] = [
  'x-request-id',
  DASHSCOPE_REQUEST_ID,
  'x-dashscope-call-gateway',
  'true',
  'req-cost-time',
  '21',
  'server',
  'istio-envoy',
]

const BAD_STANDING = 'Access denied, please make sure your account is in good standing.'
const SERVER_FAULT = '<500> InternalError.Algo: An internal error has occured.'

/** DashScope's errors in its OpenAI-compatible mode. */
export const DASHSCOPE_ERRORS = vendorErrors(
  {
    400: ['<400> InternalError.Algo.InvalidParameter: The request is invalid.', 'invalid_parameter_error'],
    401: ['Incorrect API key provided.', 'invalid_api_key'],
    403: ['Access denied.', 'access_denied'],
    404: ['The model does not exist or you do not have access to it.', 'model_not_found'],
    429: ['Requests rate limit exceeded, please try again later.', 'limit_requests'],
    500: [SERVER_FAULT, 'internal_error'],
    503: ['<503> InternalError.Algo: Model is unavailable, please try again later.', 'ModelUnavailable'],
  },
  (status, message, [code = '']) => compatibleError(status, message, null, code ?? ''),
  {
    quota: () => compatibleError(400, BAD_STANDING, null, 'Arrearage'),
    streamEvent() {
      const error = { message: SERVER_FAULT, type: 'internal_error', param: null, code: 'internal_error' }
      return eventText({ error, request_id: DASHSCOPE_REQUEST_ID })
    },
  },
)

function compatibleError(status: number, message: string, param: string | null, code: string): SandboxReply {
  const type = status === 400 && code === 'invalid_parameter_error' ? 'invalid_request_error' : code
  const error = { message, type, param, code }
  return jsonReply(status, DASHSCOPE_HEADERS, { error, request_id: DASHSCOPE_REQUEST_ID })
}

/** Rejects a request because of a field of it. */
export function refuseDashscope(message: string, param: string | null, code = 'invalid_parameter_error'): never {
  throw new RefusedCall(compatibleError(400, message, param, code))
}

/** Makes operations of the OpenAI-compatible mode. */
export const compatibleOperation = vendorOperations({
  vendor: 'dashscope',
  errors: DASHSCOPE_ERRORS,
  headers: DASHSCOPE_HEADERS,
  access: bearerAccess(DASHSCOPE_ERRORS),
})

const NATIVE_FAULT = 'An internal error has occurred, please try again later.'

/** DashScope's errors in its native API: `{ code, message, request_id }`. */
export const DASHSCOPE_NATIVE_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.', 'InvalidParameter'],
    401: ['Invalid API-key provided.', 'InvalidApiKey'],
    403: ['Access denied.', 'AccessDenied'],
    404: ['Model not exist.', 'ModelNotFound'],
    429: ['Requests rate limit exceeded, please try again later.', 'Throttling.RateQuota'],
    500: [NATIVE_FAULT, 'InternalError'],
    503: ['Model is unavailable, please try again later.', 'ModelUnavailable'],
  },
  (status, message, [code = '']) => nativeError(status, message, code ?? ''),
  {
    quota: () => nativeError(400, BAD_STANDING, 'Arrearage'),
    streamEvent() {
      const error = { code: 'InternalError', message: NATIVE_FAULT, request_id: DASHSCOPE_REQUEST_ID }
      return `event:error\ndata:${JSON.stringify(error)}\n\n`
    },
  },
)

function nativeError(status: number, message: string, code: string): SandboxReply {
  return jsonReply(status, DASHSCOPE_HEADERS, { code, message, request_id: DASHSCOPE_REQUEST_ID })
}

/** Rejects a call with 400. */
export function refuseNative(message: string, code = 'InvalidParameter'): never {
  throw new RefusedCall(nativeError(400, message, code))
}

/** Makes operations of the native API. */
export const nativeOperation = vendorOperations({
  vendor: 'dashscope',
  errors: DASHSCOPE_NATIVE_ERRORS,
  headers: DASHSCOPE_HEADERS,
  access: bearerAccess(DASHSCOPE_NATIVE_ERRORS),
})

const MAX_SEED = 2 ** 31 - 1

/** Creates the row of a boolean setting. */
export function booleanRule(field: string): FieldRule {
  return rule(field, ofType('boolean'), `Input should be a valid boolean: parameters.${field}`)
}

/** Settings that images and videos share. */
export const SETTING_RULES: readonly FieldRule[] = [
  booleanRule('watermark'),
  booleanRule('prompt_extend'),
  rule('seed', wholeNumber(0, MAX_SEED), `seed must be in [0, ${MAX_SEED}]: parameters.seed`),
]
