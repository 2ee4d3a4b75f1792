import { ERROR_TABLE } from '../../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { retryAfterSeconds } from '../../wire/headers.ts'
import { type GoogleError, googleErrorFrom, googleFailure, googleKindByStatus } from '../shared/google-error.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'

/**
 * Matches the vendor's error for continuing a missing interaction. It is undocumented: the text mentions an interaction, and no
 * model.
 */
const MENTIONS_INTERACTION = /interaction/i
const MENTIONS_MODEL = /\bmodels?\b/i
const SAYS_MISSING =
  /\b(?:not (?:be )?found|not find|no such|not exist|unknown|expired|deleted)\b|\binvalid previous_interaction_id\b/i
const LOST_INTERACTION = 'interaction_not_found'

/** Finish reasons that make the model's output unusable. A retry may succeed. */
const BROKEN_REASONS: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
])

/**
 * Reads a non-2xx answer, or a 2xx answer with an error or an unusable answer.
 * @param apiKeys Removed from texts anywhere, like anything that looks like a Google key.
 */
export function errorFrom(answer: WireAnswer, nowMs: number, apiKeys: readonly string[]): VendorFailure {
  const value = parseVendorJson(new TextDecoder().decode(answer.body))
  const error = googleErrorFrom(value)
  const isSuccess = answer.status >= 200 && answer.status < 300
  if (error !== undefined) {
    const failure = failureOf(error, isSuccess ? (error.httpStatus ?? 0) : answer.status, apiKeys)
    if (failure.kind === 'caller' || failure.retryAfterSeconds !== undefined) return failure
    return { ...failure, retryAfterSeconds: retryAfterSeconds(answer.headers, nowMs) }
  }
  if (isSuccess) return brokenAnswer(value) ?? invalidResponse('the vendor sent an answer that cannot be read')
  return {
    kind: googleKindByStatus(answer.status),
    status: answer.status,
    message: `the vendor answered HTTP ${answer.status} without an error object`,
    retryAfterSeconds: retryAfterSeconds(answer.headers, nowMs),
  }
}

/** Converts an error object to a failure. `status` is that of the answer, or 0 inside a stream. */
export function failureOf(error: GoogleError, status: number, apiKeys: readonly string[] = []): VendorFailure {
  if (isLostInteraction(error, error.httpStatus ?? status)) {
    // Uses the gateway's own error for an unknown id, because the vendor's text would name an id that the caller does not know.
    const own = ERROR_TABLE[LOST_INTERACTION]
    return {
      kind: 'caller',
      status: own.status,
      message: own.message,
      code: LOST_INTERACTION,
      param: 'previous_interaction_id',
    }
  }
  return googleFailure(error, status, apiKeys)
}

/** Returns the failure in a response object of `generateContent`: an error, or a value that is not an object. */
export function responseFailure(response: unknown, apiKey: string): VendorFailure | undefined {
  const error = googleErrorFrom(response)
  if (error !== undefined) return failureOf(error, 0, [apiKey])
  return isJsonObject(response) ? undefined : invalidResponse('the vendor sent a value that is not a response object')
}

/** Returns the failure of a candidate whose stop reason makes its content unusable, if any. */
export function brokenCandidate(candidate: unknown): VendorFailure | undefined {
  if (!isJsonObject(candidate)) return undefined
  const { finishReason: reason, finishMessage } = candidate
  if (typeof reason !== 'string' || !BROKEN_REASONS.has(reason)) return undefined
  const explanation = typeof finishMessage === 'string' ? `: ${finishMessage}` : ''
  return { ...invalidResponse(`the model stopped with ${reason}${explanation}`), code: reason }
}

function brokenAnswer(value: unknown): VendorFailure | undefined {
  const candidates = isJsonObject(value) ? value['candidates'] : undefined
  return (Array.isArray(candidates) ? candidates : []).map(brokenCandidate).find((failure) => failure !== undefined)
}

function isLostInteraction({ message }: GoogleError, status: number): boolean {
  if (status !== 404 && status !== 400 && status !== 0) return false
  return MENTIONS_INTERACTION.test(message) && SAYS_MISSING.test(message) && !MENTIONS_MODEL.test(message)
}
