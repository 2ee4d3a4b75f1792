import { expect, test } from 'vitest'
import { Deadlines } from '../../src/pipeline/deadlines.ts'
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
