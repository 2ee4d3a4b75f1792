import type { DeliveryState } from '../stores/webhook-store.ts'
import type { WebhookResponse } from './webhook-call.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/**
 * Waits after the first failure, the second, and so on: three days in total (Standard Webhooks 1.0, "Retries and failures", suggests
 * this schedule). A failure after the last wait ends the delivery.
 */
const WAITS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
] as const

/** Jitter as a share of a wait, so that messages that failed together do not return together. */
const JITTER = 0.15

const LONGEST_RETRY_AFTER_MS = 24 * HOUR_MS

/** Too many requests, or temporarily unavailable: the receiver may set the wait. */
const THROTTLED = [429, 503]

/** The receiver is permanently gone. */
const GONE = 410

/** Decision after an attempt. */
export interface NextStep {
  readonly state: DeliveryState
  /** Time of the next attempt, in Unix milliseconds; the time of this attempt if there is no next one. */
  readonly nextAttemptAtMs: number
}

/**
 * Decides whether and when to retry after an attempt.
 * @param attempt `failuresBefore` is the number of failed attempts before this one. `random` is at least 0 and below 1.
 */
export function stepAfter(attempt: {
  readonly answer: WebhookResponse
  readonly failuresBefore: number
  readonly nowMs: number
  readonly random: number
}): NextStep {
  const { answer, failuresBefore, nowMs, random } = attempt
  if (answer.error === undefined) return { state: 'delivered', nextAttemptAtMs: nowMs }
  if (answer.status === GONE) return { state: 'disabled', nextAttemptAtMs: nowMs }
  const waitMs = WAITS_MS[failuresBefore]
  if (waitMs === undefined) return { state: 'failed', nextAttemptAtMs: nowMs }
  const spreadMs = Math.round(waitMs * (1 + JITTER * (2 * random - 1)))
  return { state: 'pending', nextAttemptAtMs: nowMs + Math.max(spreadMs, askedWaitMs(answer)) }
}

function askedWaitMs({ status, retryAfterSeconds }: WebhookResponse): number {
  if (status === undefined || retryAfterSeconds === undefined || !THROTTLED.includes(status)) return 0
  return Math.min(Math.ceil(retryAfterSeconds * SECOND_MS), LONGEST_RETRY_AFTER_MS)
}
