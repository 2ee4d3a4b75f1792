import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pickByKey } from '../../src/routing/candidate.ts'
import { pickSmoothly } from '../../src/routing/selection.ts'

type Several<Entry> = [Entry, ...Entry[]]

const weights = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 8 })

function entriesOf(given: readonly number[]): Several<{ weight: number; credit: number; seed: number; picks: number }> {
  return given.map((weight, index) => ({
    weight,
    credit: 0,
    seed: Math.imul(index + 1, 0x9e3779b1),
    picks: 0,
  })) as Several<{ weight: number; credit: number; seed: number; picks: number }>
}

test('weights are honoured within 2 % of 1,000 picks, whatever they are', () => {
  fc.assert(
    fc.property(weights, (given) => {
      const entries = entriesOf(given)
      for (let count = 0; count < 1000; count++) pickSmoothly(entries).picks += 1

      const total = given.reduce((sum, weight) => sum + weight, 0)
      for (const { weight, picks } of entries) expect(Math.abs(picks / 1000 - weight / total)).toBeLessThan(0.02)
    }),
  )
})

test('weights are honoured among those who are left, while one comes and goes', () => {
  const entries = entriesOf([5, 3, 2])
  const [first, second, third] = entries
  for (let count = 0; count < 3000; count++) {
    const isAway = Math.floor(count / 500) % 2 === 1
    pickSmoothly(isAway ? ([second, third] as Several<NonNullable<typeof third>>) : entries).picks += 1
  }

  // Half of the time of all three, half of the time of the two others alone.
  expect(first.picks / 3000).toBeCloseTo(0.25, 2)
  expect(second!.picks / 3000).toBeCloseTo((0.3 + 0.6) / 2, 2)
})

test('equal weights take turns', () => {
  const entries = entriesOf([1, 1])
  const [first] = entries

  expect(Array.from({ length: 6 }, () => pickSmoothly(entries) === first)).toEqual([
    true,
    false,
    true,
    false,
    true,
    false,
  ])
})

test('a key is always given to the same entry, and only its own keys move when one goes', () => {
  fc.assert(
    fc.property(weights, fc.string(), fc.nat(), (given, key, gone) => {
      const entries = entriesOf(given)
      const picked = pickByKey(entries, key)
      const [first, ...rest] = entries.filter((_entry, index) => index !== gone % entries.length)

      expect(pickByKey(entries, key)).toBe(picked)
      if (first !== undefined && [first, ...rest].includes(picked))
        expect(pickByKey([first, ...rest], key)).toBe(picked)
    }),
  )
})

test('many keys spread over the entries by weight', () => {
  const entries = entriesOf([6, 3, 1])
  for (let count = 0; count < 20_000; count++) pickByKey(entries, `acct_1 user-${count}`).picks += 1

  for (const { weight, picks } of entries) expect(Math.abs(picks / 20_000 - weight / 10)).toBeLessThan(0.02)
})
