import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeySpending, Spending } from '../../../src/stores/memory/memory-key-spending.ts'
import { NOTHING_SPENT, spendingAt, spendingChanged } from '../../../src/stores/spending.ts'

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

test('what is counted in place is what other stores count', () => {
  const period = fc.constantFrom(SEPTEMBER, OCTOBER, OCTOBER + 1, OCTOBER + 30, NOVEMBER, NOVEMBER + 1)
  const step = fc.record({
    kind: fc.constantFrom('reach' as const, 'charge' as const, 'hold' as const, 'release' as const),
    period,
    amount: fc.bigInt({ min: 0n, max: 1_000n }),
  })
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const spending = new Spending()
      let counts = NOTHING_SPENT
      for (const { kind, period: day, amount } of steps) {
        if (kind === 'reach') counts = spendingAt(counts, day)
        if (kind === 'charge') counts = spendingChanged(counts, day, { charged: amount, held: 0n })
        if (kind === 'hold') counts = spendingChanged(counts, day, { charged: 0n, held: amount })
        if (kind === 'release') counts = spendingChanged(counts, day, { charged: 0n, held: -amount })
        if (kind === 'reach') spending.reach(day)
        else spending[kind](day, amount)
        expect(spending.counts()).toEqual(counts)
      }
    }),
  )
})
