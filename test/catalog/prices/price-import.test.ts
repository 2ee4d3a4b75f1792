import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decimalAmount } from '../../../src/catalog/prices/price-import.ts'
import { parseDecimal } from '../../../src/core/money.ts'

/** Price in JSON: any number of dollars that is not absurdly small or large. */
const price = fc.double({ min: 1e-12, max: 1e6, noNaN: true })

describe('a price that JSON holds as a number', () => {
  test.each([
    [3e-6, 0, 6, '3', 1_000_000],
    [3e-7, 0, 6, '0.3', 1_000_000],
    [0.1 + 0.2, 0, 0, '0.30000000000000004', 1],
    [1.9e-8, 0, 6, '0.019', 1_000_000],
    [0.0002833333333333333, 0, 0, '0.002833333333333333', 10],
    [1.25, 6, 6, '1.25', 1_000_000],
    [0, 0, 6, '0', 1_000_000],
    [-0, 0, 0, '0', 1],
    [1e21, 0, 0, undefined, undefined],
    [5e-324, 0, 6, undefined, undefined],
    [-1, 0, 0, undefined, undefined],
    [Number.NaN, 0, 0, undefined, undefined],
    [Number.POSITIVE_INFINITY, 0, 0, undefined, undefined],
  ])('%s for 10^%i units is, for 10^%i, %s for %s', (dollars, from, wanted, amount, per) => {
    if (amount === undefined) expect(() => decimalAmount(dollars, from, wanted)).toThrow(RangeError)
    else expect(decimalAmount(dollars, from, wanted)).toEqual({ amount, per })
  })

  test('becomes decimal text without any drift: read back, it is the same number', () => {
    fc.assert(
      fc.property(price, fc.constantFrom(0, 6), (dollars, wanted) => {
        const { amount, per } = decimalAmount(dollars, 0, wanted)

        expect(Number(`${amount}e-${String(per).length - 1}`)).toBe(dollars)
      }),
      { numRuns: 2000 },
    )
  })

  test('keeps what people write with a few digits, digit by digit', () => {
    const written = fc.record({
      digits: fc.integer({ min: 1, max: 999_999_999 }),
      exponent: fc.integer({ min: 0, max: 12 }),
    })
    fc.assert(
      fc.property(written, ({ digits, exponent }) => {
        const { amount, per } = decimalAmount(Number(`${digits}e-${exponent}`), 0, 6)
        const { numerator, denominator } = parseDecimal(amount)

        expect(numerator * 10n ** BigInt(exponent)).toBe(BigInt(digits) * denominator * BigInt(per))
      }),
      { numRuns: 2000 },
    )
  })
})
