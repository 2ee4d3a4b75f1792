import { expect, test } from 'vitest'
import { RecentMap } from '../../src/core/maps.ts'

test.each([
  ['within its time', 99, 'one'],
  ['at the end of its time', 100, undefined],
  ['after the clock was set back', -1, undefined],
])('a value is there %s', (_when, passedMs, found) => {
  const recent = new RecentMap<string>(10)
  recent.set('a', 'one', 1_000, 100)

  expect(recent.get('a', 1_000 + passedMs)).toBe(found)
})

test('the oldest value makes room, and one that is set again is the youngest', () => {
  const recent = new RecentMap<string>(2)
  for (const key of ['a', 'b', 'a', 'c']) recent.set(key, key, 0, 100)

  expect(['a', 'b', 'c'].map((key) => recent.get(key, 0))).toEqual(['a', undefined, 'c'])
})
