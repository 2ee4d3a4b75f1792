import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  afterBegin,
  afterBusy,
  afterFailure,
  afterIgnored,
  afterModelRefusal,
  afterRefusal,
  afterSuccess,
  atTime,
  type CircuitState,
  CLOSED,
  circuitOf,
  ejected,
  FAILURES_TO_OPEN,
} from '../../src/routing/candidate.ts'

const T = 1_000_000

function failing(times: number, nowMs: number, from: CircuitState = CLOSED): CircuitState {
  let health = from
  for (let count = 0; count < times; count++) health = afterFailure(health, nowMs, undefined)
  return health
}

/** Fails the probe of every ejection so far, and returns the lengths of the ejections, in milliseconds. */
function lengthsOfEjections(count: number): number[] {
  let nowMs = T
  let health = failing(FAILURES_TO_OPEN, nowMs)
  const lengths = [health.openUntilMs - nowMs]
  while (lengths.length < count) {
    nowMs = health.openUntilMs
    health = afterFailure(afterBegin(health, nowMs), nowMs, undefined)
    lengths.push(health.openUntilMs - nowMs)
  }
  return lengths
}

describe('a key that fails', () => {
  test('is ejected after five failures in a row, and not before', () => {
    expect(circuitOf(failing(4, T), T)).toBe('closed')
    expect(circuitOf(failing(5, T), T)).toBe('open')
  })

  test('is not ejected when one success lies between its failures', () => {
    expect(circuitOf(failing(4, T, afterSuccess(failing(4, T), T)), T)).toBe('closed')
  })

  test('is ejected for 30 s, then 30 s longer each time, and never longer than 300 s', () => {
    expect(lengthsOfEjections(12).map((length) => length / 1000)).toEqual([
      30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300,
    ])
  })

  test('is probed by one request at a time when its ejection is over', () => {
    const ejected = failing(5, T)
    const dueMs = ejected.openUntilMs
    const probing = afterBegin(ejected, dueMs)

    expect([circuitOf(ejected, dueMs - 1), circuitOf(ejected, dueMs)]).toEqual(['open', 'half-open'])
    expect(circuitOf(probing, dueMs)).toBe('open')
  })

  test('is back in use when the probe succeeds, and may be probed again when the caller of the probe disconnected', () => {
    const probing = afterBegin(failing(5, T), T + 30_000)

    expect(afterSuccess(probing, T + 30_001)).toBe(CLOSED)
    expect(circuitOf(afterIgnored(probing), T + 30_001)).toBe('half-open')
  })

  test('is not ejected for longer because calls fail that were under way before', () => {
    const ejected = failing(5, T)

    expect(failing(50, T + 10, ejected).openUntilMs).toBe(ejected.openUntilMs)
  })
})

describe('a key that fails and says when to come back', () => {
  test('is ejected from the first failure on, for as long as it says', () => {
    expect(afterFailure(CLOSED, T, 2_000).openUntilMs).toBe(T + 2_000)
  })

  test('is believed until its fifth failure in a row, and then ejected for 30 s at least', () => {
    let health: CircuitState = CLOSED
    const lengths: number[] = []
    for (let count = 0; count < 6; count++) {
      const nowMs = Math.max(T, health.openUntilMs)
      health = afterFailure(afterBegin(health, nowMs), nowMs, 2_000)
      lengths.push((health.openUntilMs - nowMs) / 1000)
    }

    expect(lengths).toEqual([2, 2, 2, 2, 30, 60])
  })
})

describe('a key that is rate limited', () => {
  test('is ejected for as long as the vendor says, from 0 up', () => {
    expect(afterBusy(CLOSED, T, 7_000).openUntilMs).toBe(T + 7_000)
    expect(afterBusy(CLOSED, T, 0).openUntilMs).toBe(T + 1)
  })

  test('is ejected for a second, doubling up to 30 s, when the vendor does not say', () => {
    let health: CircuitState = CLOSED
    const lengths: number[] = []
    for (let count = 0; count < 7; count++) {
      const nowMs = Math.max(T, health.openUntilMs)
      health = afterBusy(health, nowMs, undefined)
      lengths.push((health.openUntilMs - nowMs) / 1000)
    }

    expect(lengths).toEqual([1, 2, 4, 8, 16, 30, 30])
  })

  test('stays ejected when a call succeeds that began before, and is back in use when a later one succeeds', () => {
    const busy = afterBusy(CLOSED, T, 7_000)

    expect(afterSuccess(busy, T + 1)).toBe(busy)
    expect(afterSuccess(busy, T + 7_000)).toBe(CLOSED)
  })

  test('is ejected for longer when a later answer asks for it', () => {
    expect(afterBusy(afterBusy(CLOSED, T, 2_000), T + 1_000, 9_000).openUntilMs).toBe(T + 10_000)
  })
})

test('a key that is refused is ejected for 30 s at least', () => {
  expect(afterRefusal(CLOSED, T, undefined).openUntilMs).toBe(T + 30_000)
  expect(afterRefusal(CLOSED, T, 45_000).openUntilMs).toBe(T + 45_000)
})

describe('a model that is refused', () => {
  const refused = (times: number, from: CircuitState = CLOSED): CircuitState => {
    let health = from
    for (let count = 0; count < times; count++) health = afterModelRefusal(health, T, undefined)
    return health
  }

  test('is ejected after five refusals in a row: a single one may come from a wrong name of one caller', () => {
    expect(circuitOf(refused(4), T)).toBe('closed')
    expect(refused(5)).toMatchObject({ openUntilMs: T + 30_000, reason: 'refused' })
  })

  test('is not ejected while it answers others in between', () => {
    expect(circuitOf(refused(4, afterSuccess(refused(4), T)), T)).toBe('closed')
  })

  test('is ejected again when its probe is refused', () => {
    const dueMs = T + 30_000

    expect(afterModelRefusal(afterBegin(refused(5), dueMs), dueMs, undefined).openUntilMs).toBe(dueMs + 60_000)
  })
})

describe('when the clock is set back', () => {
  const BACK_MS = 24 * 60 * 60_000

  test('an ejection lasts its own time from then on, and not until the old time comes again', () => {
    const back = atTime(failing(5, T + BACK_MS), T)

    expect([circuitOf(back, T + 29_999), circuitOf(back, T + 30_000)]).toEqual(['open', 'half-open'])
    expect(atTime(back, T + 1)).toBe(back)
  })

  test('an ejection by hand lasts as long as the operator said', () => {
    const back = atTime(ejected(CLOSED, T + BACK_MS, 3_600_000), T)

    expect(back).toMatchObject({ openUntilMs: T + 3_600_000, reason: 'operator' })
  })

  test('a probe that was under way ends as any other', () => {
    const probing = afterBegin(afterBusy(CLOSED, T, 5_000), T + 5_000)
    const failed = afterFailure(probing, T - 1_000, undefined)

    expect(afterSuccess(probing, T - 1_000)).toBe(CLOSED)
    expect(failed.isProbing).toBe(false)
    expect(circuitOf(failed, failed.openUntilMs)).toBe('half-open')
  })
})

test('whatever happens, an ejection ends within an hour and a success after it closes the circuit', () => {
  const step = fc.record({
    kind: fc.constantFrom('begin', 'success', 'failure', 'busy', 'refusal', 'nothing'),
    waitMs: fc.integer({ min: -600_000, max: 600_000 }),
    retryAfterMs: fc.option(fc.nat(10_000_000), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let nowMs = T
      let health: CircuitState = CLOSED
      for (const { kind, waitMs, retryAfterMs } of steps) {
        nowMs += waitMs
        health = atTime(health, nowMs)
        if (kind === 'begin') health = afterBegin(health, nowMs)
        if (kind === 'success') health = afterSuccess(health, nowMs)
        if (kind === 'failure') health = afterFailure(health, nowMs, retryAfterMs)
        if (kind === 'busy') health = afterBusy(health, nowMs, retryAfterMs)
        if (kind === 'refusal') health = afterRefusal(health, nowMs, retryAfterMs)
        if (kind === 'nothing') health = afterIgnored(health)
        expect(health.openUntilMs - nowMs).toBeLessThanOrEqual(3_600_000)
      }
      const later = Math.max(nowMs, health.openUntilMs)
      expect(circuitOf(afterIgnored(health), later)).not.toBe('open')
      expect(afterSuccess(health, later)).toBe(CLOSED)
    }),
  )
})
