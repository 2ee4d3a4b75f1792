import { describe, expect, it } from 'vitest'
import { definePrices } from '../../../src/catalog/prices/prices.ts'
import { charge, createRate, highestCharge, type Rate } from '../../../src/catalog/prices/rate.ts'
import type { Usage } from '../../../src/core/usage.ts'

const row = { model: 'm', meter: 'output_token', per: 1_000_000 } as const
const prices = definePrices({
  currency: 'USD',
  prices: [
    { ...row, amount: '10' },
    { ...row, amount: '17', when: { service_tier: 'priority' } },
    { ...row, amount: '5', when: { service_tier: 'flex' } },
  ],
})
const million: Usage = { outputTokens: 1_000_000 }

function rateFor(fields: Readonly<Record<string, string>>): Rate {
  const rate = prices.quote('m', fields, ['service_tier'])
  if (rate === undefined) throw new Error('no rate')
  return rate
}

/** Whole dollars. */
function cost(rate: Rate, serviceTier?: string): number {
  return Number(charge(rate, serviceTier === undefined ? million : { ...million, serviceTier })) / 1e9
}

describe('charge', () => {
  it('uses the price of the tier that the vendor reports', () => {
    const open = rateFor({})

    expect(cost(open)).toBe(10)
    expect(cost(open, 'priority')).toBe(17)
    expect(cost(open, 'flex')).toBe(5)
  })

  it('uses the ordinary price for a downgraded priority call', () => {
    const priority = rateFor({ service_tier: 'priority' })

    expect(cost(priority)).toBe(17)
    expect(cost(priority, 'default')).toBe(10)
  })

  it('uses the requested price for a tier without a row', () => {
    expect(cost(rateFor({}), 'scale')).toBe(10)
    expect(cost(rateFor({ service_tier: 'default' }), 'priority')).toBe(17)
  })

  it('keeps the tiers of prices that a task has stored', () => {
    const stored = JSON.parse(JSON.stringify(rateFor({ service_tier: 'priority' }).prices))

    expect(cost(createRate('m', stored))).toBe(17)
    expect(cost(createRate('m', stored), 'default')).toBe(10)
    expect(cost(createRate('m', stored), 'flex')).toBe(5)
  })
})

describe('highestCharge', () => {
  it('holds for the most expensive tier if the request names none', () => {
    expect(highestCharge(rateFor({}), million)).toBe(17_000_000_000n)
  })

  it('holds for the requested tier if the request names one', () => {
    expect(highestCharge(rateFor({ service_tier: 'priority' }), million)).toBe(17_000_000_000n)
    expect(highestCharge(rateFor({ service_tier: 'default' }), million)).toBe(10_000_000_000n)
  })
})
