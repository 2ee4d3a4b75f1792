import type { GatewayError } from '../../core/errors.ts'
import { sseEvent } from '../../wire/sse.ts'
import { retryAfterOf } from '../error-dialect.ts'

/** The type of the event by which a stream is kept open. */
export const KEEP_ALIVE_TYPE = 'keepalive'

/**
 * An event that clients of the dialect count as life; a comment does not keep all of them waiting.
 * @param lastNumber Number of the event before it, which it repeats: a client that takes the stream up after it misses nothing.
 */
export function keepAliveEvent(lastNumber: number): string {
  return sseEvent(KEEP_ALIVE_TYPE, JSON.stringify({ type: KEEP_ALIVE_TYPE, sequence_number: lastNumber }))
}

/** Codes by which coding clients decide that a retry is useless; they pass as they are. */
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
 * The end of a stream that broke: some clients read only the first of the two events, and some only the second.
 * @param response The response as far as it came.
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
