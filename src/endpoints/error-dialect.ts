import type { GatewayError } from '../core/errors.ts'
import { sseData } from '../wire/sse.ts'

/** How callers of an endpoint read errors. Apart from `respondError`, no other code converts an error to an answer. */
export interface ErrorDialect {
  /** Returns the JSON text of an error answer. */
  body(error: GatewayError, requestId: string): string
  /** Returns the HTTP status of an error in this dialect. Defaults to the error's own status. */
  status?(error: GatewayError): number
  /** Returns an error event for a stream that has begun. The connection is closed after it. */
  streamEvent(error: GatewayError): string
  /** Header that repeats the request id on every answer, in addition to `x-request-id`, if any. */
  readonly requestIdHeader?: string
  /** Header that only clients of this dialect send, always. It identifies the dialect if the path does not. */
  readonly clientHeader?: string
}

/** Code that callers read for every rejection by rate or concurrency (API specification, "Errors", 429). */
const RATE_QUOTA_CODE = 'Throttling.RateQuota'

/** OpenAI's error object, as a body or as an event inside a stream. */
export function openaiError(error: GatewayError): { error: Record<string, string | null> } {
  const code = error.code === 'rate_limited' ? RATE_QUOTA_CODE : error.publicCode
  return { error: { message: error.message, type: error.type, param: error.param ?? null, code } }
}

/**
 * Returns errors that are equal in all dialects of OpenAI's family, or `undefined`: 402 is `{error:{message}}`, and 429
 * has both shapes that callers know (API specification, "Errors").
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

/** Seconds for `retry-after`, on every 429 and 503 and if the error names them; else `undefined`. */
export function retryAfterOf(error: GatewayError): number | undefined {
  if (error.retryAfterSeconds !== undefined) return Math.max(1, Math.ceil(error.retryAfterSeconds))
  if (error.status === 429) return 1
  if (error.status === 503) return 5
  return undefined
}
