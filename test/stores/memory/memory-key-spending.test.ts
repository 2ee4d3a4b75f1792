import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeySpending } from '../../../src/stores/memory/memory-ledger.ts'
import { monthOf, Spending } from '../../../src/stores/spending.ts'

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

test('counts a day and its month like a list of all changes', () => {
  const period = fc.constantFrom(SEPTEMBER, OCTOBER, OCTOBER + 1, OCTOBER + 30, NOVEMBER, NOVEMBER + 1)
  const step = fc.record({
    kind: fc.constantFrom('reach' as const, 'charge' as const, 'hold' as const),
    period,
    amount: fc.bigInt({ min: -1_000n, max: 1_000n }),
  })
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const spending = new Spending()
      let today = 0
      const counted: { kind: string; period: number; amount: bigint; today: number }[] = []
      for (const change of steps) {
        if (change.kind === 'reach') {
          spending.reach(change.period)
          today = Math.max(today, change.period)
        } else {
          spending[change.kind](change.period, change.amount)
          // A change of another month is lost, and one of a later day counts in the month only.
          if (monthOf(change.period) === monthOf(today)) counted.push({ ...change, today })
        }
        const sumOf = (kind: string, isCounted: (one: (typeof counted)[number]) => boolean) =>
          counted.filter((one) => one.kind === kind && isCounted(one)).reduce((sum, { amount }) => sum + amount, 0n)
        const isOfDay = (one: (typeof counted)[number]) => one.period === today && one.today === today
        const isOfMonth = (one: (typeof counted)[number]) => monthOf(one.period) === monthOf(today)
        expect(spending.counts()).toEqual({
          period: today,
          chargedDay: sumOf('charge', isOfDay),
          chargedMonth: sumOf('charge', isOfMonth),
          heldDay: sumOf('hold', isOfDay),
          heldMonth: sumOf('hold', isOfMonth),
        })
      }
    }),
  )
})
