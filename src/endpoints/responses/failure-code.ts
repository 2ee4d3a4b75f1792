import type { GatewayError } from '../../core/errors.ts'

/** Codes by which coding clients decide that a retry is useless; they pass as they are. */
const FINAL_CODES: ReadonlySet<string> = new Set(['context_length_exceeded', 'insufficient_quota', 'invalid_prompt'])

/** The code of a failed answer (OpenAI API reference, "The response object", error). */
export function failureCode(error: GatewayError): string {
  if (FINAL_CODES.has(error.publicCode)) return error.publicCode
  if (error.status === 429) return 'rate_limit_exceeded'
  if (error.isOverload) return 'server_is_overloaded'
  return error.status < 500 ? 'invalid_prompt' : 'server_error'
}
