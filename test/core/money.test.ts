import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  divideRoundingUp,
  formatDollars,
  NANO_DOLLARS_PER_DOLLAR,
  parseDecimal,
  parseDollars,
  parseSignedDollars,
} from '../../src/core/money.ts'

describe('decimal strings', () => {
  test.each([
    ['0', 0n],
    ['3', 3_000_000_000n],
    ['0.10', 100_000_000n],
    ['0.000000001', 1n],
    ['999999999999999.999999999', 999_999_999_999_999_999_999_999n],
  ])('%s dollars are exactly %s nano-dollars', (text, nanoDollars) => {
    expect(parseDollars(text)).toBe(nanoDollars)
  })

  test.each(['', '-1', '+1', '1e3', '1.', '.5', ' 1', '1,5', 'NaN', 'Infinity', '0x10', '١', '1'.repeat(16), '1.1e1'])(
    'rejects %j as an amount',
    (text) => {
      expect(() => parseDollars(text)).toThrow(RangeError)
    },
  )

  test('finer than a nano-dollar is refused as a balance, but is exact as a price', () => {
    expect(() => parseDollars('0.0000000001')).toThrow(RangeError)
    expect(parseDecimal('0.0000000375')).toEqual({ numerator: 375n, denominator: 10n ** 10n })
  })
})

describe('money never drifts', () => {
  test('ten dimes are a dollar', () => {
    const sum = Array.from({ length: 10 }, () => parseDollars('0.1')).reduce((total, dime) => total + dime, 0n)

    expect(formatDollars(sum)).toBe('1')
    expect(sum).toBe(NANO_DOLLARS_PER_DOLLAR)
  })

  test('what is written can be read again, for every amount', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 23n }), (amount) => {
        expect(parseDollars(formatDollars(amount))).toBe(amount)
      }),
    )
  })

  test('an amount is written alike within and beyond what a number holds', () => {
    const byDigits = (amount: bigint): string => {
      const digits = amount.toString().padStart(10, '0')
      return `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, '')
    }
    const edge = BigInt(Number.MAX_SAFE_INTEGER)
    for (let offset = -5n; offset <= 5n; offset++) expect(formatDollars(edge + offset)).toBe(byDigits(edge + offset))
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n * edge }), (amount) => {
        expect(formatDollars(amount)).toBe(byDigits(amount))
      }),
    )
  })

  test.each([
    [1_500_000_000n, '1.5'],
    [-1_500_000_000n, '-1.5'],
    [-1n, '-0.000000001'],
    [0n, '0'],
    [100_000_000_000n, '100'],
  ])('%s is written as %s', (amount, text) => {
    expect(formatDollars(amount)).toBe(text)
  })
})

test('a division rounds up, and only when there is a rest', () => {
  expect([divideRoundingUp(0n, 3n), divideRoundingUp(3n, 3n), divideRoundingUp(4n, 3n)]).toEqual([0n, 1n, 2n])
})

test('a number is divided as the bigint of the same value', () => {
  const dividends = fc.maxSafeNat()
  const divisors = fc.oneof(fc.bigInt({ min: 1n, max: 10n }), fc.bigInt({ min: 1n, max: 2n ** 80n }))
  fc.assert(
    fc.property(dividends, divisors, (dividend, divisor) => {
      expect(divideRoundingUp(dividend, divisor)).toBe(divideRoundingUp(BigInt(dividend), divisor))
    }),
  )
})

test('an amount that was written is read again as what it was, below zero too', () => {
  const amounts = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  fc.assert(
    fc.property(amounts, (nanoDollars) => {
      expect(parseSignedDollars(formatDollars(nanoDollars))).toBe(nanoDollars)
      if (nanoDollars >= 0n) expect(parseDollars(formatDollars(nanoDollars))).toBe(nanoDollars)
    }),
  )
})

test.each(['--1', '-', '- 1', '-+1', '+1'])('rejects %j as an amount below zero', (text) => {
  expect(() => parseSignedDollars(text)).toThrow(RangeError)
})
