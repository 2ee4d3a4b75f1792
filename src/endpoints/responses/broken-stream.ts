import type { GatewayError } from '../../core/errors.ts'
import { sseEvent } from '../../wire/sse.ts'
import { retryAfterOf } from '../error-dialect.ts'

/** Type of the event that keeps a stream open. */
export const KEEP_ALIVE_TYPE = 'keepalive'

/**
 * Returns an event that clients of the dialect accept as activity. Comments do not keep all of them waiting.
 * @param lastNumber Number of the previous event, which it repeats: a client that resumes the stream after it misses nothing.
 */
export function keepAliveEvent(lastNumber: number): string {
  return sseEvent(KEEP_ALIVE_TYPE, JSON.stringify({ type: KEEP_ALIVE_TYPE, sequence_number: lastNumber }))
}

/** Codes that make coding clients stop retrying. They are passed on unchanged. */
const FINAL_CODES: ReadonlySet<string> = new Set(['context_length_exceeded', 'insufficient_quota', 'invalid_prompt'])

/** The code of a failed answer (OpenAI API reference, "The response object", error). */
function failureCode(error: GatewayError): string {
  if (FINAL_CODES.has(error.publicCode)) return error.publicCode
  if (error.status === 429) return RATE_LIMIT
  // Not `server_is_overloaded`, at which Codex ends the turn: it reconnects after `server_error`.
  return error.status < 500 ? 'invalid_prompt' : 'server_error'
}

const RATE_LIMIT = 'rate_limit_exceeded'

/** A stream has no `retry-after`: Codex reads "try again in Ns" in the message, with this code only. */
function withWait(error: GatewayError): string {
  if (error.retryAfterSeconds === undefined) return error.message
  return `${error.message.replace(/ Try again later\.$/, '')} Please try again in ${retryAfterOf(error)}s.`
}

/**
 * Returns the end of a stream that broke. Some clients read only the first of the two events, and some only the second.
 * @param response The response received so far.
 * @param write Numbers an event and writes it.
 */
export function brokenStreamEnd(
  error: GatewayError,
  response: Readonly<Record<string, unknown>>,
  write: (type: string, members: Record<string, unknown>) => string,
): string {
  const code = failureCode(error)
  const { type, param = null } = error
  const message = code === RATE_LIMIT ? withWait(error) : error.message
  const first = write('error', { code, message, param, error: { type, code, message, param } })
  const failed = { ...response, status: 'failed', error: { code, message } }
  return first + write('response.failed', { response: failed })
}
