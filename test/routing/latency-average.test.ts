import { describe, expect, test } from 'vitest'
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
