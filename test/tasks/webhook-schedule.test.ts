import { describe, expect, test } from 'vitest'
import { stepAfter, type WebhookResponse } from '../../src/tasks/webhook-deliverer.ts'

const NOW_MS = 1_000_000
const HOUR_MS = 3_600_000
const WAITS_MS = [5_000, 300_000, 1_800_000, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS)]

function step(answer: WebhookResponse, failuresBefore = 0, random = 0.5) {
  return stepAfter({ answer, failuresBefore, nowMs: NOW_MS, random })
}

const failed = (status: number, retryAfterSeconds?: number): WebhookResponse => ({
  status,
  error: `answered with status ${status}`,
  retryAfterSeconds,
})

describe('stepAfter', () => {
  test('ends with a message that was delivered, at any attempt', () => {
    expect(step({ status: 200 }, 9)).toEqual({ state: 'delivered', nextAttemptAtMs: NOW_MS })
  })

  test('waits longer after each failure, three days in all, and then gives the message up', () => {
    const steps = Array.from({ length: 11 }, (_, failuresBefore) => step({ error: 'no connection' }, failuresBefore))

    expect(steps.slice(0, 9)).toEqual(
      WAITS_MS.map((waitMs) => ({ state: 'pending', nextAttemptAtMs: NOW_MS + waitMs })),
    )
    expect(steps.slice(9)).toEqual(Array(2).fill({ state: 'failed', nextAttemptAtMs: NOW_MS }))
    expect(WAITS_MS.reduce((sum, waitMs) => sum + waitMs) / HOUR_MS).toBeGreaterThan(72)
  })

  test.each(WAITS_MS.map((waitMs, index) => [waitMs, index] as const))(
    'spreads the wait of %i ms by 15 % to either side',
    (waitMs, index) => {
      const [earliest, latest] = [0, 0.999_999_999].map((random) => step(failed(500), index, random).nextAttemptAtMs)

      expect(earliest).toBe(NOW_MS + Math.round(waitMs * 0.85))
      expect(latest).toBe(NOW_MS + Math.round(waitMs * 1.15))
    },
  )

  test.each([0, 9])('disables a message whose receiver is gone (410) after %i failures', (failuresBefore) => {
    expect(step(failed(410), failuresBefore).state).toBe('disabled')
  })

  test.each([
    [429, 60, 60_000],
    [503, 60.5, 60_500],
    [429, 1, 5_000],
    [503, 0, 5_000],
    [429, undefined, 5_000],
    [429, 1e9, 24 * HOUR_MS],
    [500, 60, 5_000],
    [404, 60, 5_000],
  ])('after status %i with retry-after %s waits %i ms', (status, retryAfterSeconds, waitMs) => {
    expect(step(failed(status, retryAfterSeconds))).toEqual({ state: 'pending', nextAttemptAtMs: NOW_MS + waitMs })
  })

  test('does not let retry-after prolong the schedule beyond its last attempt', () => {
    expect(step(failed(429, 60), 9).state).toBe('failed')
  })
})
