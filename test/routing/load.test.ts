import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RetryBudget } from '../../src/pipeline/retry-budget.ts'
import { AdaptiveLimit, LatencyAverage } from '../../src/routing/candidate.ts'

describe('the limit of a vendor', () => {
  test('is cut by a quarter at a sign of overload, once for all signs of a second, down to 5', () => {
    const load = new AdaptiveLimit()
    for (let sign = 0; sign < 50; sign++) load.shrink(1000 + sign)
    const afterOne = load.limit
    for (let second = 2; second < 40; second++) load.shrink(second * 1000)

    expect([afterOne, load.limit]).toEqual([75, 5])
  })

  test('is cut at once by the first sign after the clock was set back', () => {
    const load = new AdaptiveLimit()
    load.shrink(86_400_000)
    load.shrink(1_000)

    expect(load.limit).toBe(56)
  })

  test('grows by about one for every round of answers in which it is used, and not by answers that do not need it', () => {
    const idle = new AdaptiveLimit()
    const used = new AdaptiveLimit()
    for (let call = 0; call < 80; call++) used.enter()
    for (let answer = 0; answer < 100; answer++) {
      idle.grow()
      used.grow()
    }

    expect(idle.limit).toBe(100)
    expect(used.limit).toBe(100)
    for (let answer = 0; answer < 5; answer++) used.grow()
    expect(used.limit).toBe(101)
  })

  test('finds the capacity of a vendor: load above it is cut, load below it grows again', () => {
    const load = new AdaptiveLimit()
    let nowMs = 0
    const borne = 40
    const limits: number[] = []
    for (let round = 0; round < 200; round++) {
      nowMs += 1000
      const calls = load.limit
      for (let call = 0; call < calls; call++) load.enter()
      for (let call = 0; call < calls; call++) {
        if (call < borne) load.grow()
        else load.shrink(nowMs)
      }
      for (let call = 0; call < calls; call++) load.release()
      if (round > 50) limits.push(load.limit)
    }

    expect(Math.max(...limits)).toBeLessThanOrEqual(borne + 2)
    expect(Math.min(...limits)).toBeGreaterThanOrEqual(borne * 0.7)
  })

  test('counts the calls under way', () => {
    const load = new AdaptiveLimit()
    for (let call = 0; call < 100; call++) load.enter()
    const isFull = !load.hasRoom
    load.release()

    expect([isFull, load.hasRoom, load.inFlight]).toEqual([true, true, 99])
  })
})

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
