import { expect, test } from 'vitest'
import { Deadlines } from '../../src/pipeline/call-timers.ts'
import { fakeClock } from '../../src/testing/index.ts'

test('deadlines that were set after the clock was set back fall due, also behind an older one', () => {
  const clock = fakeClock()
  let aheadMs = 86_400_000
  const deadlines = new Deadlines({ ...clock, now: () => clock.now() + aheadMs }, 60_000)
  const due: string[] = []
  deadlines.add(() => due.push('before'))
  clock.advance(30_000)
  aheadMs = 0
  deadlines.add(() => due.push('after'))
  clock.advance(90_000)

  expect(due.sort()).toEqual(['after', 'before'])
})

test('runs one timer if a callback sets the next deadline', () => {
  const clock = fakeClock()
  let timers = 0
  const schedule: typeof clock.schedule = (delayMs, callback) => {
    timers += 1
    return clock.schedule(delayMs, callback)
  }
  const deadlines = new Deadlines({ ...clock, now: () => clock.now(), schedule }, 1_000)
  let calls = 0
  const repeat = (): void => {
    calls += 1
    deadlines.add(repeat)
  }
  deadlines.add(repeat)
  for (let second = 0; second < 8; second++) clock.advance(1_000)

  expect([calls, timers]).toEqual([8, 9])
})
