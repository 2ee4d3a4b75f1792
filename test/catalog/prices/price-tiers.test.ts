import { describe, expect, test } from 'vitest'
import { charge, definePrices, highestCharge, type PriceFile } from '../../../src/catalog/prices/prices.ts'
import { createRate } from '../../../src/catalog/prices/rate.ts'

const per = 1_000_000

/** A model of $1.25 and $10 a million, and of $2.50 and $15 for prompts of more than 200,000 tokens. */
const rows: PriceFile['prices'] = [
  { model: 'm', meter: 'input_token', amount: '1.25', per },
  { model: 'm', meter: 'output_token', amount: '10', per },
  { model: 'm', meter: 'input_token', amount: '2.50', per, when: { inputTokensAbove: 200_000 } },
  { model: 'm', meter: 'output_token', amount: '15', per, when: { inputTokensAbove: 200_000 } },
]

function rateOf(prices: PriceFile['prices'], fields = {}) {
  const rate = definePrices({ currency: 'USD', prices }).quote('m', fields)
  if (rate === undefined) throw new Error('no rate')
  return rate
}

describe('prices by the size of the prompt', () => {
  test('900,000 and 8,000 tokens cost $2.37, and not $1.205', () => {
    const usage = { inputTokens: 900_000, outputTokens: 8_000 }

    expect(charge(rateOf(rows.slice(0, 2)), usage)).toBe(1_205_000_000n)
    expect(charge(rateOf(rows), usage)).toBe(2_370_000_000n)
  })

  test.each([
    [200_000, 250_000_000n],
    [200_001, 500_002_500n],
  ])('apply at %i input tokens to all of them, and only above the bound', (inputTokens, amount) => {
    expect(charge(rateOf(rows), { inputTokens })).toBe(amount)
  })

  test('are chosen by all input, cached tokens included', () => {
    const cached = { model: 'm', meter: 'cached_input_token', amount: '0.125', per } as const
    const usage = { inputTokens: 250_000, cachedInputTokens: 240_000, outputTokens: 0 }

    // 10,000 fresh at $2.50, and cached ones, which have one price, at $0.125.
    expect(charge(rateOf([...rows, cached]), usage)).toBe(25_000_000n + 30_000_000n)
  })

  test('are held for at the highest price that the estimate can reach', () => {
    const rate = rateOf(rows)
    const cheaperAbove = rateOf([
      ...rows.slice(0, 2),
      { model: 'm', meter: 'input_token', amount: '0.10', per, when: { inputTokensAbove: 200_000 } },
    ])

    expect(highestCharge(rate, { inputTokens: 150_000, outputTokens: 0 })).toBe(187_500_000n)
    expect(highestCharge(rate, { inputTokens: 300_000, outputTokens: 0 })).toBe(750_000_000n)
    expect(highestCharge(cheaperAbove, { inputTokens: 300_000, outputTokens: 0 })).toBe(375_000_000n)
  })

  test('may have several bounds, which each meter has of its own', () => {
    const rate = rateOf([
      ...rows,
      { model: 'm', meter: 'input_token', amount: '4', per, when: { inputTokensAbove: 500_000 } },
    ])

    expect(charge(rate, { inputTokens: 600_000, outputTokens: 1_000 })).toBe(2_400_000_000n + 15_000_000n)
    expect(charge(rate, { inputTokens: 300_000, outputTokens: 1_000 })).toBe(750_000_000n + 15_000_000n)
  })

  test('give way to a row that also names a field of the request', () => {
    const fast = { model: 'm', meter: 'input_token', amount: '9', per } as const
    const all = [
      ...rows,
      { ...fast, when: { service_tier: 'priority', inputTokensAbove: 200_000 } },
      { ...fast, amount: '6', when: { service_tier: 'priority' } },
    ]
    const rate = rateOf(all, { service_tier: 'priority' })

    expect(charge(rate, { inputTokens: 100_000 })).toBe(600_000_000n)
    expect(charge(rate, { inputTokens: 300_000 })).toBe(2_700_000_000n)
    expect(() =>
      rateOf(all.filter((row) => row.when?.['service_tier'] === undefined || !row.when.inputTokensAbove)),
    ).toThrow('can apply at the same time as, and is not more specific than,')
  })

  test('survive being stored, as a long job stores them', () => {
    const rate = rateOf(rows)
    const again = createRate('m', JSON.parse(JSON.stringify(rate.prices)))

    expect(charge(again, { inputTokens: 900_000, outputTokens: 8_000 })).toBe(2_370_000_000n)
  })

  test.each([
    [{ inputTokensAbove: '200000' }, 'must be a whole number of tokens'],
    [{ inputTokensAbove: 0 }, 'prices[0].when.inputTokensAbove'],
    [{ resolution: 720 }, 'must be a string'],
  ])('are refused when they say %j', (when, message) => {
    expect(() => rateOf([{ model: 'm', meter: 'input_token', amount: '1', when } as never])).toThrow(message)
  })

  test('reject the same bound twice', () => {
    expect(() => rateOf([...rows, rows[2]!])).toThrow('repeats prices[2]')
  })
})

describe('sound in the prompt', () => {
  const audio = { model: 'm', meter: 'input_audio_token', amount: '40', per } as const

  test('costs its own price: $0.0412 where it was $0.00245', () => {
    const usage = { inputTokens: 1_800, inputAudioTokens: 1_000, outputTokens: 20 }

    expect(charge(rateOf(rows), usage)).toBe(2_450_000n)
    expect(charge(rateOf([...rows, audio]), usage)).toBe(41_200_000n)
  })

  test('is held for at the higher of both prices', () => {
    const estimate = { inputTokens: 1_000, inputAudioTokens: 1_000, outputTokens: 0 }

    expect(highestCharge(rateOf([...rows, audio]), estimate)).toBe(40_000_000n)
    expect(highestCharge(rateOf([...rows, { ...audio, amount: '0' }]), estimate)).toBe(1_250_000n)
  })
})

describe('prices by thinking mode', () => {
  const on = { thinking: 'on' }
  const modes: PriceFile['prices'] = [
    { model: 'm', meter: 'input_token', amount: '0.4', per },
    { model: 'm', meter: 'output_token', amount: '1.2', per },
    { model: 'm', meter: 'output_token', amount: '4', per, when: on },
    { model: 'm', meter: 'input_token', amount: '1.2', per, when: { inputTokensAbove: 256_000 } },
    { model: 'm', meter: 'output_token', amount: '3.6', per, when: { inputTokensAbove: 256_000 } },
    { model: 'm', meter: 'output_token', amount: '12', per, when: { ...on, inputTokensAbove: 256_000 } },
  ]

  test.each([
    ['without a report of reasoning', {}, { inputTokens: 2_000, outputTokens: 8_000 }, 10_400_000n],
    ['with one', {}, { inputTokens: 2_000, outputTokens: 8_000, reasoningTokens: 1 }, 32_800_000n],
    ['with one after it was turned off', { thinking: 'off' }, { outputTokens: 1_000, reasoningTokens: 1 }, 4_000_000n],
    ['as the request says', on, { inputTokens: 2_000, outputTokens: 8_000 }, 32_800_000n],
    ['in a higher tier', {}, { inputTokens: 300_000, outputTokens: 1_000, reasoningTokens: 1 }, 372_000_000n],
  ])('charges all output %s', (_how, fields, usage, amount) => {
    const rate = rateOf(modes, fields)

    expect(charge(rate, usage)).toBe(amount)
    // A long job keeps the prices, and makes the rate from them again.
    expect(charge(createRate('m', rate.prices), usage)).toBe(amount)
  })

  test.each([
    [{}, 1_000, 4_000_000n],
    [on, 1_000, 4_000_000n],
    [{ thinking: 'off' }, 1_000, 1_200_000n],
  ])('holds for the most expensive mode that the request allows: %j', (fields, outputTokens, amount) => {
    expect(highestCharge(rateOf(modes, fields), { inputTokens: 0, outputTokens })).toBe(amount)
  })

  test('holds for the most expensive mode of the tiers that the prompt may be in', () => {
    expect(highestCharge(rateOf(modes), { inputTokens: 300_000, outputTokens: 1_000 })).toBe(372_000_000n)
  })

  test('rejects a row for another mode than thinking', () => {
    const faulty: PriceFile = { currency: 'USD', prices: [{ ...modes[1]!, when: { thinking: 'off' } }] }

    expect(() => definePrices(faulty)).toThrow('prices[0]: thinking can only be "on"')
  })
})
