import { describe, expect, it, vi } from 'vitest'
import { memoryConcurrencyLimiter, memoryRateLimiter } from '../../../src/stores/memory/memory-limiters.ts'
import type { BucketState, RateDecision, RateLimiter } from '../../../src/stores/rate-limiter.ts'
import { describeConcurrencyLimiter, describeRateLimiter } from '../../../src/testing/contracts/limiter-contracts.ts'

const runner = { describe, it, expect }
const NOW_MS = 1_750_000_000_000

describeRateLimiter(runner, { create: () => memoryRateLimiter() })
describeConcurrencyLimiter(runner, { create: () => memoryConcurrencyLimiter() })

function takeOne(limiter: RateLimiter, bucket: string, perMinute: number, nowMs: number): RateDecision {
  return limiter.take([{ bucket, amount: 1, perMinute }], nowMs) as RateDecision
}

function stateOf(limiter: RateLimiter, bucket: string, perMinute: number, nowMs: number): BucketState {
  const decision = limiter.take([{ bucket, amount: 0, perMinute }], nowMs) as RateDecision
  return decision.buckets[0]!
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

describe('memory rate limiter', () => {
  it.each([7, 700, 999_983])('grants exactly the limit of %i a minute, free of rounding drift', (perMinute) => {
    const limiter = memoryRateLimiter()
    let granted = 0
    while (takeOne(limiter, 'requests', perMinute, NOW_MS).allowed) granted += 1

    expect(granted).toBe(perMinute)
  })

  it('grants a refused take after exactly the time it named, for limits that do not divide a minute', () => {
    const limiter = memoryRateLimiter()
    let nowMs = NOW_MS
    for (let count = 0; count < 7; count++) takeOne(limiter, 'requests', 7, nowMs)
    for (let round = 0; round < 50; round++) {
      const refused = takeOne(limiter, 'requests', 7, nowMs)
      expect(refused.allowed).toBe(false)
      expect(takeOne(limiter, 'requests', 7, nowMs + refused.retryAfterMs - 1).allowed).toBe(false)
      nowMs += refused.retryAfterMs
      expect(takeOne(limiter, 'requests', 7, nowMs).allowed).toBe(true)
    }
  })

  it('never lets more than 200 through in any second at 100 a second with a burst of 100', () => {
    const limiter = memoryRateLimiter()
    const take = { bucket: 'requests', amount: 1, perMinute: 6_000, burst: 100 }
    const grantedIn: number[] = []
    for (let elapsedMs = 0; elapsedMs < 5_000; elapsedMs++) {
      let granted = 0
      // Silence in the third second saves up a burst for the fourth.
      const isSilent = elapsedMs >= 2_000 && elapsedMs < 3_000
      while (!isSilent && limiter.take([take], NOW_MS + elapsedMs).allowed) granted += 1
      grantedIn.push(granted)
    }
    const seconds = grantedIn.slice(0, -999).map((_, start) => sum(grantedIn.slice(start, start + 1_000)))

    expect(Math.max(...seconds)).toBeLessThanOrEqual(200)
    expect(Math.min(...seconds)).toBe(0)
    expect(sum(grantedIn)).toBeGreaterThanOrEqual(100 + 100 * 4)
  })

  it('goes on from what another limiter knew of a bucket', () => {
    const limiter = memoryRateLimiter()
    limiter.assume({ bucket: 'requests', amount: 45, perMinute: 60 }, NOW_MS)

    expect(stateOf(limiter, 'requests', 60, NOW_MS)).toEqual({ limit: 60, remaining: 15, resetMs: 45_000 })
    expect(stateOf(limiter, 'requests', 60, NOW_MS + 5_000).remaining).toBe(20)
    limiter.assume({ bucket: 'requests', amount: 0, perMinute: 60 }, NOW_MS + 5_000)
    expect(stateOf(limiter, 'requests', 60, NOW_MS + 5_000).remaining).toBe(60)
  })

  it('lets nothing through at a limit of zero', () => {
    const limiter = memoryRateLimiter()

    expect(takeOne(limiter, 'requests', 0, NOW_MS)).toEqual({
      allowed: false,
      retryAfterMs: 60_000,
      buckets: [{ limit: 0, remaining: 0, resetMs: 0 }],
    })
  })

  it('gives nothing away when the clock steps back by seconds', () => {
    const limiter = memoryRateLimiter()
    for (let count = 0; count < 60; count++) takeOne(limiter, 'requests', 60, NOW_MS)

    expect(takeOne(limiter, 'requests', 60, NOW_MS - 5_000).allowed).toBe(false)
    expect(takeOne(limiter, 'requests', 60, NOW_MS).allowed).toBe(false)
  })

  it('drops buckets that are full again before any that are not', () => {
    const limiter = memoryRateLimiter({ maxBuckets: 50 })
    for (let index = 0; index < 50; index++) takeOne(limiter, `requests:old_${index}`, 60, NOW_MS)
    const later = NOW_MS + 61_000
    for (let index = 0; index < 49; index++) {
      limiter.take([{ bucket: `requests:new_${index}`, amount: 60, perMinute: 60 }], later)
    }
    const remaining = Array.from(
      { length: 49 },
      (_, index) => stateOf(limiter, `requests:new_${index}`, 60, later).remaining,
    )

    expect(remaining).toEqual(Array.from({ length: 49 }, () => 0))
  })
})

describe('memory concurrency limiter', () => {
  it('finds an expired lease although another was renewed meanwhile', () => {
    const limiter = memoryConcurrencyLimiter()
    limiter.acquire({ bucket: 'key_1', leaseId: 'a', limit: 2, expiresAtMs: NOW_MS + 10 }, NOW_MS)
    limiter.acquire({ bucket: 'key_1', leaseId: 'b', limit: 2, expiresAtMs: NOW_MS + 20 }, NOW_MS)
    limiter.renew({ bucket: 'key_1', leaseId: 'a', expiresAtMs: NOW_MS + 500 }, NOW_MS + 5)
    const lease = { bucket: 'key_1', leaseId: 'c', limit: 2, expiresAtMs: NOW_MS + 500 }

    expect(limiter.acquire(lease, NOW_MS + 15)).toBe(false)
    expect(limiter.acquire(lease, NOW_MS + 25)).toBe(true)
  })
})

it('idle buckets are swept while many calls come in one millisecond and new buckets are made', () => {
  const limiter = memoryRateLimiter()
  for (let key = 0; key < 50; key++) takeOne(limiter, `old:${key}`, 60, NOW_MS)
  const laterMs = NOW_MS + 180_000
  const deleted = vi.spyOn(Map.prototype, 'delete')
  for (let count = 0; count < 200; count++) takeOne(limiter, 'busy', 60_000, laterMs + (count >> 2))
  const names = new Set(deleted.mock.calls.map(([name]) => name))
  deleted.mockRestore()

  expect([...names].filter((name) => String(name).startsWith('old:'))).toHaveLength(50)
})
