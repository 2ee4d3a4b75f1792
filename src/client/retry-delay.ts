import type { GatewayError } from '../core/errors.ts'

const FIRST_DELAY_MS = 500
const LONGEST_DELAY_MS = 8_000

/** A gateway that wants to be left alone for longer than this is not waited for. */
const LONGEST_RETRY_AFTER_SECONDS = 60

/**
 * How long to wait before a call is tried again: what the gateway asked for, else twice as long each time, shortened at
 * random by up to a quarter. Undefined: not at all. Tried again is whatever `retryable` allows: 408, 429, 5xx, failed
 * connections, and calls whose first attempt is still being answered. Only a video takes longer to end than a retry waits.
 */
export function retryDelayMs(error: GatewayError, attempt: number): number | undefined {
  if (!error.retryable || error.code === 'task_not_finished') return undefined
  const { retryAfterSeconds } = error
  if (retryAfterSeconds !== undefined) {
    return retryAfterSeconds > LONGEST_RETRY_AFTER_SECONDS ? undefined : retryAfterSeconds * 1000
  }
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt) * (1 - Math.random() / 4)
}
