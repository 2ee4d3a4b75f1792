import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RetryBudget } from '../../src/pipeline/retry-budget.ts'
import { LatencyAverage } from '../../src/routing/candidate.ts'

describe('the average latency', () => {
  test('follows what is measured', () => {
    const latency = new LatencyAverage()
    for (let count = 0; count < 40; count++) latency.add(100, count)
    for (let count = 0; count < 40; count++) latency.add(500, count)

    expect(latency.averageMs).toBeCloseTo(500, -1)
  })

  test('counts half after half a minute without a measurement, so that what was slow is tried again', () => {
    const latency = new LatencyAverage()
    latency.add(800, 1000)

    expect([latency.expectedMs(1000), latency.expectedMs(31_000), latency.expectedMs(61_000)]).toEqual([800, 400, 200])
    expect(new LatencyAverage().expectedMs(0)).toBe(0)
  })

  test('counts half after half a minute by a clock that was set back too', () => {
    const latency = new LatencyAverage()
    latency.add(800, 86_400_000)

    expect([latency.expectedMs(1000), latency.expectedMs(31_000), latency.expectedMs(61_000)]).toEqual([800, 400, 200])
  })
})

describe('the retry budget', () => {
  test('bounds retries to 20 % of requests under total outage, whatever was saved before', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 1, max: 4 }), (healthy, wishes) => {
        const budget = new RetryBudget()
        for (let request = 0; request < healthy; request++) budget.deposit()
        let retries = 0
        for (let request = 0; request < 1000; request++) {
          budget.deposit()
          for (let wish = 0; wish < wishes; wish++) if (budget.withdraw()) retries += 1
        }
        expect(retries).toBeLessThanOrEqual(healthy === 0 ? 100 : 200)
      }),
    )
  })

  test('lets a quiet gateway retry, and says how much is left', () => {
    const budget = new RetryBudget()
    const taken = Array.from({ length: 11 }, () => budget.withdraw())

    expect(taken.filter(Boolean)).toHaveLength(10)
    expect(budget.left).toBe(0)
  })
})
