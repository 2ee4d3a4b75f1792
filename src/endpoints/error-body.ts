import type { ErrorCode, GatewayError } from '../core/errors.ts'

/**
 * The shape in which an endpoint's callers read errors (API specification, "Errors").
 * `openai`: `{error:{message,type,param,code}}`. `multimodal`: `{code,message,request_id}` with the same text again under
 * `error`, because OpenAI's SDK shows no other. `either`: the same two shapes, for a route whose model is not known yet.
 * `anthropic`: `{type:"error",error:{type,message},request_id}`.
 */
export type ErrorDialect = 'openai' | 'multimodal' | 'either' | 'anthropic'

/** The code that callers read for every refusal by rate or concurrency (API specification, "Errors", 429). */
const RATE_QUOTA_CODE = 'Throttling.RateQuota'

/** Writes an error as the JSON text that callers of a dialect read. The only place where an error becomes a body. */
export function errorBody(error: GatewayError, dialect: ErrorDialect, requestId: string): string {
  if (dialect === 'anthropic') return JSON.stringify(anthropicError(error, requestId))
  if (error.status === 402) return JSON.stringify({ error: { message: error.message } })
  const { message } = error
  const openai = openaiErrorObject(error)
  if (error.code === 'rate_limited')
    return JSON.stringify({ code: RATE_QUOTA_CODE, message, request_id: requestId, ...openai })
  if (dialect === 'openai') return JSON.stringify(openai)
  const code = upstreamCode(error)
  const { error: fields } = openai
  return JSON.stringify({
    code,
    message,
    request_id: error.upstreamRequestId ?? requestId,
    error: dialect === 'multimodal' ? { ...fields, code } : fields,
  })
}

/** Codes of the upstream style for errors that are not a vendor's own (API specification, "Errors": `InvalidParameter`). */
const UPSTREAM_CODES: ReadonlyMap<string, string> = new Map<ErrorCode, string>([
  ['invalid_request', 'InvalidParameter'],
  ['invalid_json', 'InvalidParameter'],
  ['json_too_deep', 'InvalidParameter'],
  ['unsupported_parameter', 'InvalidParameter'],
  ['endpoint_model_mismatch', 'InvalidParameter'],
  ['unsupported_media_type', 'InvalidParameter'],
  ['body_too_large', 'InvalidParameter'],
  ['model_not_found', 'InvalidParameter'],
  ['invalid_api_key', 'InvalidApiKey'],
  ['permission_denied', 'AccessDenied'],
  ['upstream_timeout', 'RequestTimeOut'],
  ['upstream_unavailable', 'ModelUnavailable'],
  ['internal_error', 'InternalError'],
])

/** A vendor's own code as it is; else what the upstream style calls it, where it has a name for it. */
function upstreamCode(error: GatewayError): string {
  return error.publicCode === error.code ? (UPSTREAM_CODES.get(error.code) ?? error.code) : error.publicCode
}

/** Writes an error as OpenAI's error object, for an event inside a stream. */
export function openaiErrorObject(error: GatewayError): { error: Record<string, string | null> } {
  const code = error.code === 'rate_limited' ? RATE_QUOTA_CODE : error.publicCode
  return { error: { message: error.message, type: error.type, param: error.param ?? null, code } }
}

/** Anthropic's `error.type` by HTTP status (Anthropic API, "Errors"). */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** The status for a vendor with too much to do (Anthropic API, "Errors"); other dialects have none but 503. */
const ANTHROPIC_OVERLOAD_STATUS = 529

/** Types that say more than the status; a vendor's own is kept. */
const PRECISE_ANTHROPIC_TYPES: ReadonlySet<string> = new Set(
  Object.values(ANTHROPIC_TYPES).filter((type) => type !== 'invalid_request_error'),
)

/** The HTTP status of an error as callers of a dialect know it. */
export function errorStatus(error: GatewayError, dialect: ErrorDialect): number {
  return dialect === 'anthropic' ? anthropicStatus(error) : error.status
}

function anthropicStatus(error: GatewayError): number {
  return error.isOverload ? ANTHROPIC_OVERLOAD_STATUS : error.status
}

/** Writes an error as Anthropic's error envelope; without an id inside a stream, whose headers have told it. */
export function anthropicError(error: GatewayError, requestId?: string): Record<string, unknown> {
  const status = anthropicStatus(error)
  const byStatus = ANTHROPIC_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  const isPrecise = error.code === 'upstream_rejected' && PRECISE_ANTHROPIC_TYPES.has(error.type)
  return {
    type: 'error',
    error: { type: isPrecise ? error.type : byStatus, message: anthropicMessage(error) },
    ...(requestId === undefined ? {} : { request_id: requestId }),
  }
}

/** How vendors of other dialects say that a prompt does not fit the model. */
const PROMPT_TOO_LONG = /context_length_exceeded|\bcontext (?:length|window)\b|\binput token count\b/i

/**
 * Coding clients shorten a conversation when they read these words, and no others (Claude Code, gateway protocol reference).
 * Texts that come from the dialect's own vendor stay as they are: it has no codes, and these words.
 */
function anthropicMessage({ code, publicCode, message }: GatewayError): string {
  const isForeign = code === 'upstream_rejected' && publicCode !== code
  if (!isForeign || !PROMPT_TOO_LONG.test(`${publicCode} ${message}`)) return message
  return `capability_rejected: prompt_too_long: prompt is too long: ${message}`
}

/** Seconds for `retry-after`: on every 429 and 503, and where the error says so. Undefined: no header. */
export function retryAfterOf(error: GatewayError): number | undefined {
  if (error.retryAfterSeconds !== undefined) return Math.max(1, Math.ceil(error.retryAfterSeconds))
  if (error.status === 429) return 1
  if (error.status === 503) return 5
  return undefined
}
