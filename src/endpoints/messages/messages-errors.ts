import { DetailedError } from '../../core/detailed-error.ts'
import type { GatewayError } from '../../core/errors.ts'
import { sseEvent } from '../../wire/sse.ts'
import type { ErrorDialect } from '../error-dialect.ts'

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

/** Status for an overloaded vendor (Anthropic API, "Errors"). Other dialects use only 503. */
const ANTHROPIC_OVERLOAD_STATUS = 529

/** Types that are more specific than the status. A vendor's own type is kept. */
const PRECISE_ANTHROPIC_TYPES: ReadonlySet<string> = new Set(
  Object.values(ANTHROPIC_TYPES).filter((type) => type !== 'invalid_request_error'),
)

function anthropicStatus(error: GatewayError): number {
  return error.isOverload ? ANTHROPIC_OVERLOAD_STATUS : error.status
}

/** Writes an error as Anthropic's error envelope. Inside a stream it has no id, because the headers already have it. */
function anthropicError(error: GatewayError, requestId?: string): Record<string, unknown> {
  const status = anthropicStatus(error)
  const byStatus = ANTHROPIC_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  const isPrecise = error.code === 'upstream_rejected' && PRECISE_ANTHROPIC_TYPES.has(error.type)
  return {
    type: 'error',
    error: {
      type: isPrecise ? error.type : byStatus,
      message: anthropicMessage(error),
      ...(error instanceof DetailedError ? { details: error.facts } : {}),
    },
    ...(requestId === undefined ? {} : { request_id: requestId }),
  }
}

/** The messages of other vendors for a prompt that exceeds the model's context. */
const PROMPT_TOO_LONG = /context_length_exceeded|\bcontext (?:length|window)\b|\binput token count\b/i

/**
 * Coding clients compact a conversation only on this text (Claude Code, gateway protocol reference). Texts from the
 * dialect's own vendor stay unchanged: it has no codes, and this text.
 */
function anthropicMessage({ code, publicCode, message }: GatewayError): string {
  const isForeign = code === 'upstream_rejected' && publicCode !== code
  if (!isForeign || !PROMPT_TOO_LONG.test(`${publicCode} ${message}`)) return message
  return `capability_rejected: prompt_too_long: prompt is too long: ${message}`
}

/** `{type:"error",error:{type,message},request_id}` (Anthropic API, "Errors"; "Streaming messages", error events). */
export const anthropicErrors: ErrorDialect = {
  body: (error, requestId) => JSON.stringify(anthropicError(error, requestId)),
  status: anthropicStatus,
  streamEvent: (error) => sseEvent('error', JSON.stringify(anthropicError(error))),
  requestIdHeader: 'request-id',
  clientHeader: 'anthropic-version',
}
