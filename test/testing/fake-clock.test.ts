import { expect, test } from 'vitest'
import { fakeClock } from '../../src/testing/index.ts'

test('runs due callbacks in the order of their times, and shows each its own time', () => {
  const clock = fakeClock({ startMs: 1000 })
  const seen: [string, number][] = []
  clock.schedule(30, () => seen.push(['late', clock.now()]))
  clock.schedule(10, () => seen.push(['early', clock.now()]))
  clock.schedule(10, () => seen.push(['early too', clock.now()]))

  clock.advance(30)

  expect(seen).toEqual([
    ['early', 1010],
    ['early too', 1010],
    ['late', 1030],
  ])
  expect(clock.now()).toBe(1030)
})

test('runs what callbacks schedule when it falls due within the same move, and leaves the rest', () => {
  const clock = fakeClock({ startMs: 0 })
  const seen: number[] = []
  const tick = (): void => {
    seen.push(clock.now())
    clock.schedule(10, tick)
  }
  clock.schedule(10, tick)

  clock.advance(35)

  expect(seen).toEqual([10, 20, 30])
  expect(clock.pending).toBe(1)
  expect(clock.now()).toBe(35)
})

test('does not run a cancelled callback and cannot be moved backwards', () => {
  const clock = fakeClock()
  let runs = 0
  clock.schedule(5, () => runs++).cancel()

  clock.advance(10)

  expect(runs).toBe(0)
  expect(() => clock.advance(-1)).toThrow(RangeError)
  expect(() => clock.advance(Number.NaN)).toThrow(RangeError)
})
