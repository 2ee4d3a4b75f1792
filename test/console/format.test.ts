import { expect, test } from 'vitest'
import { exactMoney, money } from '../../src/console/page/format.ts'
import { Amount } from '../../src/console/page/parts.tsx'

test.each([
  ['0', '$0.00'],
  ['0.000000001', '$0.000000001'],
  ['0.009999999', '$0.009999999'],
  ['0.01', '$0.01'],
  ['0.010049999', '$0.01'],
  ['0.01005', '$0.0101'],
  ['0.019999', '$0.02'],
  ['0.99995', '$1.00'],
  ['1.00009', '$1.0001'],
  ['1.00004', '$1.00'],
  ['-0.019999', '-$0.02'],
  ['-1.00009', '-$1.0001'],
  ['1234.5', '$1,234.50'],
])('rounds %s dollars to %s', (dollars, shown) => {
  expect(money(dollars)).toBe(shown)
})

test('differs from the charged amount by half of the last digit at most', () => {
  for (let nano = 10_000_000n; nano < 3_000_000_000n; nano += 7_777_777n) {
    const [whole, fraction = ''] = money(nano).slice(1).split('.')
    const shown = BigInt(whole!) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'))
    const difference = shown > nano ? shown - nano : nano - shown
    expect(difference).toBeLessThanOrEqual(50_000n)
  }
})

test('shows all digits in the journal, and on hover elsewhere', () => {
  expect(exactMoney('1.00009')).toBe('$1.00009')
  expect(exactMoney('-0.019999')).toBe('-$0.019999')
  expect(Amount({ of: '0.019999' }).props).toMatchObject({ title: '$0.019999', children: '$0.02' })
})
