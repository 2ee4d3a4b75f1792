import type { GatewayError } from '../core/errors.ts'

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
  const code = error.code === 'rate_limited' ? RATE_QUOTA_CODE : error.publicCode
  const openai = { message: error.message, type: error.type, param: error.param ?? null, code }
  if (dialect === 'openai' && error.code !== 'rate_limited') return JSON.stringify({ error: openai })
  return JSON.stringify({ code, message: error.message, request_id: requestId, error: openai })
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

/** Writes an error as Anthropic's error envelope. */
export function anthropicError(error: GatewayError, requestId: string): Record<string, unknown> {
  const type = ANTHROPIC_TYPES[error.status] ?? (error.status < 500 ? 'invalid_request_error' : 'api_error')
  return { type: 'error', error: { type, message: error.message }, request_id: requestId }
}

/** Seconds for `retry-after`: on every 429 and 503, and where the error says so. Undefined: no header. */
export function retryAfterOf(error: GatewayError): number | undefined {
  if (error.retryAfterSeconds !== undefined) return Math.max(1, Math.ceil(error.retryAfterSeconds))
  if (error.status === 429) return 1
  if (error.status === 503) return 5
  return undefined
}
