import type { GatewayError } from '../core/errors.ts'
import { sseData } from '../wire/sse.ts'

/** How callers of an endpoint read errors. Together with `respondError` the only place where an error becomes an answer. */
export interface ErrorDialect {
  /** The JSON text of an error answer. */
  body(error: GatewayError, requestId: string): string
  /** The HTTP status of an error in this dialect; absent: the error's own. */
  status?(error: GatewayError): number
  /** An error event for a stream of events that has begun; the connection is ended after it. */
  streamEvent(error: GatewayError): string
  /** A header that repeats the request id on every answer, beside `x-request-id`. Absent: none. */
  readonly requestIdHeader?: string
  /** A header that every client of this dialect sends, and no other: it tells the dialect where the path does not. Absent: none. */
  readonly clientHeader?: string
}

/** The code that callers read for every refusal by rate or concurrency (API specification, "Errors", 429). */
const RATE_QUOTA_CODE = 'Throttling.RateQuota'

/** OpenAI's error object, as a body or as an event inside a stream. */
export function openaiError(error: GatewayError): { error: Record<string, string | null> } {
  const code = error.code === 'rate_limited' ? RATE_QUOTA_CODE : error.publicCode
  return { error: { message: error.message, type: error.type, param: error.param ?? null, code } }
}

/**
 * Errors that read alike in all dialects of OpenAI's family: 402 is `{error:{message}}`, and 429 carries both shapes that
 * callers know (API specification, "Errors"). Undefined: every other one.
 */
export function commonErrorBody(error: GatewayError, requestId: string): string | undefined {
  const { message } = error
  if (error.status === 402) return JSON.stringify({ error: { message } })
  if (error.code !== 'rate_limited') return undefined
  return JSON.stringify({ code: RATE_QUOTA_CODE, message, request_id: requestId, ...openaiError(error) })
}

/** `{error:{message,type,param,code}}`. */
export const openaiErrors: ErrorDialect = {
  body: (error, requestId) => commonErrorBody(error, requestId) ?? JSON.stringify(openaiError(error)),
  streamEvent: (error) => sseData(JSON.stringify(openaiError(error))),
}

/** Seconds for `retry-after`: on every 429 and 503, and where the error says so. Undefined: no header. */
export function retryAfterOf(error: GatewayError): number | undefined {
  if (error.retryAfterSeconds !== undefined) return Math.max(1, Math.ceil(error.retryAfterSeconds))
  if (error.status === 429) return 1
  if (error.status === 503) return 5
  return undefined
}
