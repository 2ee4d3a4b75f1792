import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bucketOf, LATENCY_BOUNDS_MS, LATENCY_BUCKETS, percentilesOf } from '../../src/usage/usage-record.ts'

function countsOf(durations: readonly number[]): number[] {
  const counts = new Array<number>(LATENCY_BUCKETS).fill(0)
  for (const durationMs of durations) counts[bucketOf(durationMs)]! += 1
  return counts
}

describe('percentiles of counted durations', () => {
  test('lie in the bucket of the duration that has the rank', () => {
    const durations = fc.array(fc.integer({ min: 1, max: 120_000 }), { minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(durations, (given) => {
        const sorted = given.toSorted((one, other) => one - other)
        const found = percentilesOf(countsOf(sorted))!
        for (const [share, foundMs] of [
          [0.5, found.p50Ms],
          [0.95, found.p95Ms],
          [0.99, found.p99Ms],
        ] as const) {
          const bucket = bucketOf(sorted[Math.ceil(share * sorted.length) - 1]!)
          expect(foundMs).toBeGreaterThanOrEqual(LATENCY_BOUNDS_MS[bucket - 1] ?? 0)
          expect(foundMs).toBeLessThanOrEqual(LATENCY_BOUNDS_MS[bucket]!)
        }
      }),
    )
  })

  test('are interpolated, and end with the last bound', () => {
    expect(percentilesOf(countsOf([1_500, 1_500, 1_500, 1_500]))).toEqual({ p50Ms: 1_500, p95Ms: 1_950, p99Ms: 1_990 })
    expect(percentilesOf(countsOf([9e9]))).toEqual({ p50Ms: 120_000, p95Ms: 120_000, p99Ms: 120_000 })
    expect(percentilesOf(countsOf([]))).toBeUndefined()
  })
})
