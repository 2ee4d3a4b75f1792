import { expect, test } from 'vitest'
import { KeySpending } from '../../../src/stores/memory/memory-key-spending.ts'

const SEPTEMBER = 20260915
const OCTOBER = 20261001
const NOVEMBER = 20261122

test('keys that were used neither in this month nor in the last are forgotten while others are used', () => {
  const spending = new KeySpending()
  const ids = Array.from({ length: 50 }, (_, index) => `key_${index}`)
  const old = ids.map((id) => spending.of(id, SEPTEMBER))
  // The search for November begins in the middle.
  for (let index = 0; index < 10; index++) spending.of('key_0', OCTOBER)

  // Two are looked at in each, and new ones come in between.
  for (let index = 0; index < 100; index++) spending.of(`new_${index % 40}`, NOVEMBER)

  const kept = ids.filter((id, index) => spending.of(id, NOVEMBER) === old[index])
  expect(kept).toEqual(['key_0'])
})

test('keys of this month and the last are kept, however often others are used', () => {
  const spending = new KeySpending()
  const last = spending.of('key_last', OCTOBER)
  const current = spending.of('key_current', NOVEMBER)

  for (let index = 0; index < 100; index++) spending.of('key_other', NOVEMBER)

  expect(spending.of('key_last', NOVEMBER)).toBe(last)
  expect(spending.of('key_current', NOVEMBER)).toBe(current)
})
