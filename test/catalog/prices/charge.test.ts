import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { definePrices } from '../../../src/catalog/prices/prices.ts'
import {
  charge,
  createRate,
  highestCharge,
  type Meter,
  type MeterPrice,
  type Rate,
} from '../../../src/catalog/prices/rate.ts'
import { divideRoundingUp } from '../../../src/core/money.ts'

/** Prices for a million units. */
function rateOf(amounts: Partial<Record<Meter, string>>, per = 1_000_000): Rate {
  const prices = Object.entries(amounts).map(([meter, amount]): MeterPrice => ({ meter: meter as Meter, amount, per }))
  return createRate('example', prices)
}

const CHAT = rateOf({
  input_token: '3.00',
  cached_input_token: '0.30',
  cache_write_token: '3.75',
  output_token: '15.00',
})

describe('charge', () => {
  it('charges fractions of seconds of sound and of video exactly, and search units by the piece', () => {
    const rate = rateOf({ audio_second: '0.000075', video_second: '0.1', search_unit: '0.002' }, 1)

    expect(charge(rate, { audioSeconds: 0.3 })).toBe(22_500n)
    expect(charge(rate, { audioSeconds: 1.7, videoSeconds: 5.04 })).toBe(127_500n + 504_000_000n)
    expect(charge(rate, { searchUnits: 3 })).toBe(6_000_000n)
    // By the text of what was heard nothing is sold.
    expect(charge(rate, { audioSeconds: 0.3, outputTokens: 90 })).toBe(22_500n)
  })

  it('charges a call that has some units for at least the minimum of their price', () => {
    const rate = createRate('example', [{ meter: 'audio_second', amount: '0.001', per: 1, minimum: 10 }])

    expect([0, 4, 10, 12.5].map((audioSeconds) => charge(rate, { audioSeconds }))).toEqual([
      0n,
      10_000_000n,
      10_000_000n,
      12_500_000n,
    ])
    expect(highestCharge(rate, { audioSeconds: 4 })).toBe(10_000_000n)
    expect(charge(rate, {})).toBe(0n)
  })

  it('has no amount for text where only seconds or units are priced and the call has none of them', () => {
    for (const meter of ['video_second', 'audio_second', 'image', 'search_unit', 'character'] as const)
      expect(charge(rateOf({ [meter]: '1' }, 1), { inputTokens: 5 }), meter).toBe(undefined)
  })

  it('needs no price of plain input or output where all of it has prices of its own', () => {
    const rate = rateOf({ input_image_token: '10', output_image_token: '30' })
    const usage = { inputTokens: 40, inputImageTokens: 40, outputTokens: 60, outputImageTokens: 60 }

    expect(charge(rate, usage)).toBe(400_000n + 1_800_000n)
    expect(charge(rate, { ...usage, inputTokens: 41 })).toBe(undefined)
    expect(charge(rate, { ...usage, outputTokens: 61 })).toBe(undefined)
  })

  it('has no amount for sound, search units and work of hooks without a price', () => {
    expect(charge(CHAT, { audioSeconds: 1 })).toBe(undefined)
    expect(charge(CHAT, { searchUnits: 1 })).toBe(undefined)
    expect(charge(CHAT, { inputTokens: 10, outputTokens: 1, hookUnits: 1 })).toBe(undefined)
    expect(charge(rateOf({ request: '2', hook_unit: '5' }), { hookUnits: 2 })).toBe(12_000n)
  })

  it('charges tokens at their prices', () => {
    expect(charge(CHAT, { inputTokens: 1_000, outputTokens: 200 })).toBe(3_000_000n + 3_000_000n)
  })

  it('takes cached and cache-written tokens out of the input total and counts none twice', () => {
    const usage = { inputTokens: 1_000, cachedInputTokens: 600, cacheWriteTokens: 300, outputTokens: 0 }

    expect(charge(CHAT, usage)).toBe(100n * 3_000n + 600n * 300n + 300n * 3_750n)
  })

  it('charges what was written to the cache for an hour at its own price, and the rest of what was written at the other', () => {
    const usage = { inputTokens: 1_000, cachedInputTokens: 100, cacheWriteTokens: 600, cacheWrite1hTokens: 400 }
    const tokens = { input_token: '3.00', cached_input_token: '0.30', output_token: '15.00' }
    const withoutHour = 300n * 3_000n + 100n * 300n + 200n * 3_750n

    expect(charge(rateOf({ ...tokens, cache_write_token: '3.75', cache_write_1h_token: '5' }), usage)).toBe(
      withoutHour + 400n * 5_000n,
    )
    expect(charge(rateOf({ ...tokens, cache_write_token: '3.75' }), usage)).toBe(withoutHour + 400n * 6_000n)
    expect(charge(rateOf({ ...tokens, cache_write_token: '0' }), usage)).toBe(300n * 3_000n + 100n * 300n)
    expect(charge(rateOf({ ...tokens, cache_write_1h_token: '5' }), usage)).toBe(
      500n * 3_000n + 100n * 300n + 400n * 5_000n,
    )
    expect(charge(rateOf(tokens), usage)).toBe(900n * 3_000n + 100n * 300n)
  })

  it('rounds the price that follows from another up once, too', () => {
    expect(
      charge(rateOf({ cache_write_token: '0.001', input_token: '0', output_token: '0' }), {
        inputTokens: 3,
        cacheWriteTokens: 3,
        cacheWrite1hTokens: 3,
      }),
    ).toBe(5n)
  })

  it('never charges for more written for an hour than was written, nor for more than the total', () => {
    const usage = { inputTokens: 100, cacheWriteTokens: 60, cacheWrite1hTokens: 90 }

    expect(charge(CHAT, usage)).toBe(40n * 3_000n + 60n * 6_000n)
    expect(charge(CHAT, { ...usage, inputTokens: 30 })).toBe(30n * 6_000n)
  })

  it('counts searches by number, and as one where the number is not known', () => {
    const rate = rateOf({ input_token: '1', output_token: '1', web_search: '10000' })

    expect([{ webSearches: 3 }, { webSearches: 0 }, {}].map((usage) => charge(rate, usage))).toEqual([
      30_000_000n,
      0n,
      10_000_000n,
    ])
  })

  it('is never above the highest charge of an estimate, whatever part of the input was written to the cache', () => {
    const price = fc.integer({ min: 0, max: 50 }).map(String)
    const part = fc.integer({ min: 0, max: 1_000 })
    const prices = fc.record(
      { cached_input_token: fc.constant('0'), cache_write_token: price, cache_write_1h_token: price },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(price, prices, part, part, part, (input, rest, fresh, minutes, hour) => {
        const rate = rateOf({ input_token: input, output_token: '1', ...rest })
        const inputTokens = fresh + minutes + hour
        const estimate = { inputTokens, cacheWriteTokens: inputTokens, cacheWrite1hTokens: inputTokens }
        const usage = { inputTokens, cacheWriteTokens: minutes + hour, cacheWrite1hTokens: hour }

        expect(highestCharge(rate, estimate)).toBeGreaterThanOrEqual(charge(rate, usage)!)
      }),
    )
  })

  it.each([
    ['4', 1_000n * 4_000n],
    ['0.5', 1_000n * 1_000n],
  ])('is never above the highest charge where reasoning has a price of its own (%s)', (reasoning_token, highest) => {
    const rate = rateOf({ input_token: '1', output_token: '1', reasoning_token })

    expect(highestCharge(rate, { inputTokens: 0, outputTokens: 1_000 })).toBe(highest)
    expect(charge(rate, { inputTokens: 0, outputTokens: 1_000, reasoningTokens: 990 })).toBeLessThanOrEqual(highest)
  })

  it('charges cached, written, reasoning and image tokens as part of their total where they have no price', () => {
    const rate = rateOf({ input_token: '2.00', output_token: '8.00' })
    const whole = { inputTokens: 1_000, outputTokens: 500 }
    const parts = {
      cachedInputTokens: 900,
      cacheWriteTokens: 50,
      inputImageTokens: 20,
      reasoningTokens: 400,
      outputImageTokens: 9,
    }

    expect(charge(rate, { ...whole, ...parts })).toBe(charge(rate, whole))
  })

  it('charges reasoning and image tokens apart where they have a price', () => {
    const rate = rateOf({
      input_token: '1',
      input_image_token: '2',
      output_token: '4',
      reasoning_token: '8',
      output_image_token: '16',
    })
    const usage = {
      inputTokens: 100,
      inputImageTokens: 40,
      outputTokens: 100,
      reasoningTokens: 30,
      outputImageTokens: 20,
    }

    expect(charge(rate, usage)).toBe(60n * 1_000n + 40n * 2_000n + 50n * 4_000n + 30n * 8_000n + 20n * 16_000n)
  })

  it('never charges for more parts than the total holds', () => {
    const usage = { inputTokens: 100, cachedInputTokens: 80, cacheWriteTokens: 80, outputTokens: 0 }

    expect(charge(CHAT, usage)).toBe(80n * 300n + 20n * 3_750n)
  })

  it('charges parts that came without their total', () => {
    expect(charge(CHAT, { cachedInputTokens: 10 })).toBe(3_000n)
  })

  it('tells zero from nothing said, and charges neither', () => {
    expect(charge(CHAT, { inputTokens: 0, cachedInputTokens: 10, outputTokens: 0 })).toBe(0n)
    expect(charge(CHAT, {})).toBe(0n)
  })

  it('makes the smallest call of the cheapest model cost something', () => {
    expect(charge(rateOf({ input_token: '0.0001' }), { inputTokens: 1 })).toBe(1n)
    expect(charge(rateOf({ input_token: '0.02' }), { inputTokens: 1 })).toBe(20n)
  })

  it('rounds up once, not once for each meter', () => {
    const rate = rateOf({ input_token: '0.0004', output_token: '0.0004', request: '0.0002' })

    expect(charge(rate, { inputTokens: 1, outputTokens: 1 })).toBe(1n)
  })

  it('is exact where floats drift', () => {
    const rate = rateOf({ input_token: '0.10', output_token: '0.20' }, 1)

    expect(charge(rate, { inputTokens: 1, outputTokens: 1 })).toBe(300_000_000n)
    expect(charge(rateOf({ input_token: '1' }, 3), { inputTokens: 3_000_000 })).toBe(1_000_000_000_000_000n)
  })

  it('charges fractions of a second as they are written', () => {
    const rate = rateOf({ video_second: '0.10' }, 1)

    expect(charge(rate, { videoSeconds: 5.04 })).toBe(504_000_000n)
    expect(charge(rate, { videoSeconds: 0.1 + 0.2 })).toBe(30_000_001n)
    expect(charge(rate, { videoSeconds: 1e-7 })).toBe(10n)
    expect(charge(rate, { videoSeconds: 5e-324 })).toBe(1n)
    expect(charge(rate, { videoSeconds: 0 })).toBe(0n)
  })

  it('counts one request per call, and images and characters by number', () => {
    expect(charge(rateOf({ request: '0.01', image: '0.04' }, 1), { images: 3 })).toBe(130_000_000n)
    expect(charge(rateOf({ character: '0.10' }, 10_000), { characters: 7 })).toBe(70_000n)
  })

  it('costs what the model that answered costs', () => {
    const prices = definePrices({
      currency: 'USD',
      prices: [
        { model: 'dear', meter: 'request', amount: '1' },
        { model: 'cheap', meter: 'request', amount: '0.1' },
      ],
    })

    expect(charge(prices.quote('cheap', {})!, { inputTokens: 9 })).toBe(100_000_000n)
    expect(charge(prices.quote('dear', {})!, { inputTokens: 9 })).toBe(1_000_000_000n)
  })

  it.each([
    ['output without a price', { input_token: '1' }, { inputTokens: 5, outputTokens: 5 }],
    ['input without a price', { output_token: '1' }, { inputTokens: 5, outputTokens: 5 }],
    [
      'text output where only pictures are priced',
      { input_token: '1', output_image_token: '9' },
      { inputTokens: 1, outputTokens: 9 },
    ],
    [
      'tokens beside a price by the request and one for other tokens',
      { request: '1', input_token: '1' },
      { outputTokens: 1 },
    ],
    ['tokens of a model sold by the picture that made none', { image: '1' }, { inputTokens: 5, outputTokens: 5 }],
    ['pictures of a model that is priced by tokens but reported none', { output_token: '1' }, { images: 1 }],
    ['video without a price', { image: '1' }, { videoSeconds: 5 }],
    ['characters without a price', { video_second: '1' }, { characters: 5 }],
  ] as const)('finds no amount for %s', (_case, amounts, usage) => {
    expect(charge(rateOf(amounts), usage)).toBeUndefined()
  })

  it.each([
    ['tokens of a model sold by the request', { request: '1' }, { inputTokens: 5, outputTokens: 5 }, 1_000n],
    ['tokens reported with a picture sold by the piece', { image: '1' }, { images: 1, inputTokens: 5 }, 1_000n],
    [
      'pictures sold by their tokens',
      { input_token: '1', output_token: '1' },
      { images: 1, inputTokens: 2, outputTokens: 5 },
      7_000n,
    ],
    [
      'a modality that is priced at zero',
      { input_token: '1', output_token: '0' },
      { inputTokens: 5, outputTokens: 5 },
      5_000n,
    ],
    ['an embedding, which has no output', { input_token: '1' }, { inputTokens: 5, outputTokens: 0 }, 5_000n],
  ] as const)('asks for no further price for %s', (_case, amounts, usage, amount) => {
    expect(charge(rateOf(amounts), usage)).toBe(amount)
  })

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'throws for a count of %s rather than crediting',
    (count) => {
      expect(() => charge(CHAT, { inputTokens: count })).toThrow(RangeError)
      expect(() => charge(rateOf({ image: '1' }), { images: count })).toThrow(RangeError)
    },
  )

  it('equals the sum of exact fractions, whatever the prices', () => {
    const price = fc.record({
      micros: fc.bigInt({ min: 0n, max: 10n ** 10n }),
      per: fc.integer({ min: 1, max: 3_000_000 }),
    })
    const count = fc.integer({ min: 0, max: 10_000_000 })
    fc.assert(
      fc.property(price, price, count, count, (input, output, inputTokens, outputTokens) => {
        const amountOf = (micros: bigint) =>
          `${micros / 1_000_000n}.${(micros % 1_000_000n).toString().padStart(6, '0')}`
        const rate = createRate('example', [
          { meter: 'input_token', amount: amountOf(input.micros), per: input.per },
          { meter: 'output_token', amount: amountOf(output.micros), per: output.per },
        ])
        const common = BigInt(input.per) * BigInt(output.per)
        const exact =
          input.micros * 1_000n * BigInt(inputTokens) * BigInt(output.per) +
          output.micros * 1_000n * BigInt(outputTokens) * BigInt(input.per)

        expect(charge(rate, { inputTokens, outputTokens })).toBe(divideRoundingUp(exact, common))
      }),
    )
  })

  it('a rate made again from its prices charges the same', () => {
    const again = createRate(CHAT.model, JSON.parse(JSON.stringify(CHAT.prices)) as MeterPrice[])

    expect(again).toEqual(CHAT)
  })
})
