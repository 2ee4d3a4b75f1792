import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BUILT_IN_MODELS } from '../../../src/catalog/models/built-in-models.ts'
import {
  charge,
  definePrices,
  type PriceFile,
  type PriceRow,
  reloadablePrices,
} from '../../../src/catalog/prices/prices.ts'
import type { Usage } from '../../../src/core/usage.ts'

const GOOD: PriceRow = { model: 'gp-5', meter: 'input_token', amount: '1.25', per: 1_000_000 }

function listOf(...prices: PriceRow[]): PriceFile {
  return { currency: 'USD', prices }
}

/** For rows that the type would not allow. */
function defineUnchecked(file: unknown): unknown {
  return definePrices(file as PriceFile)
}

describe('definePrices', () => {
  it('says what a list of rows goes into', () => {
    expect(() => defineUnchecked([GOOD])).toThrow(
      new TypeError("prices: expected { currency: 'USD', prices: [...] }, not a list of rows"),
    )
    expect(() => defineUnchecked(function listPrices() {})).toThrow('not a function; call it: listPrices()')
    expect(() => defineUnchecked('free')).toThrow("prices: expected { currency: 'USD', prices: [...] }, not free")
  })

  it.each([
    [null, "expected { currency: 'USD', prices: [...] }"],
    [{ prices: [] }, 'currency: '],
    [{ currency: 'EUR', prices: [] }, 'currency: '],
    [{ currency: 'USD' }, 'prices: '],
    [{ currency: 'USD', prices: [], price: [] }, 'prices: price is unknown; did you mean prices?'],
    [{ currency: 'USD', prices: [GOOD, { ...GOOD, model: '' }] }, 'prices[1].model: '],
    [
      { currency: 'USD', prices: [{ ...GOOD, meter: 'token' }] },
      'prices[0].meter: unknown meter "token"; the meters are input_token, ',
    ],
    [{ currency: 'USD', prices: [{ ...GOOD, amount: 1.25 }] }, 'prices[0].amount: must be a decimal string'],
    [{ currency: 'USD', prices: [{ ...GOOD, amount: '-1' }] }, 'prices[0].amount: must be a decimal string'],
    [{ currency: 'USD', prices: [{ ...GOOD, amount: '1e-6' }] }, 'prices[0].amount: must be a decimal string'],
    [{ currency: 'USD', prices: [{ ...GOOD, amount: '1,25' }] }, 'prices[0].amount: must be a decimal string'],
    [{ currency: 'USD', prices: [{ ...GOOD, per: 0 }] }, 'prices[0].per: '],
    [{ currency: 'USD', prices: [{ ...GOOD, per: '1000' }] }, 'prices[0].per: '],
    [{ currency: 'USD', prices: [{ ...GOOD, minimum: 10 }] }, 'prices[0].minimum: only prices of image, '],
    [{ currency: 'USD', prices: [{ ...GOOD, when: { resolution: 720 } }] }, 'prices[0].when.resolution: '],
    [{ currency: 'USD', prices: [{ ...GOOD, unit: 'token' }] }, 'prices[0].unit is unknown; known: model, meter'],
    [{ currency: 'USD', prices: [GOOD, GOOD] }, 'prices[1]: the input_token price of "gp-5" repeats prices[0]'],
  ])('refuses %j, naming index and field', (file, message) => {
    expect(() => defineUnchecked(file)).toThrow(TypeError)
    expect(() => defineUnchecked(file)).toThrow(message)
  })

  it('rejects a repetition whose conditions are in another order', () => {
    const row = { model: 'v', meter: 'video_second', amount: '1' } as const
    const rows = [
      { ...row, when: { a: '1', b: '2' } },
      { ...row, amount: '2', when: { b: '2', a: '1' } },
    ]

    expect(() => definePrices(listOf(...rows))).toThrow('prices[1]: the video_second price of "v" repeats prices[0]')
  })

  it('refuses two rows that could hold for the same call, unless a third decides', () => {
    const row = { model: 'v', meter: 'video_second', amount: '1' } as const
    const tier = { ...row, when: { resolution: '1080p' } }
    const shape = { ...row, when: { aspect_ratio: '1:1' } }
    const both = { ...row, amount: '7', when: { resolution: '1080p', aspect_ratio: '1:1' } }

    expect(() => definePrices(listOf(tier, shape))).toThrow(
      'prices[1]: the video_second price of "v" can apply at the same',
    )
    const prices = definePrices(listOf(tier, shape, both))
    expect(charge(prices.quote('v', { resolution: '1080p', aspect_ratio: '1:1' })!, { videoSeconds: 1 })).toBe(
      7_000_000_000n,
    )
  })

  it('takes the parsed example file, which prices every model of the catalog', () => {
    const prices = definePrices(JSON.parse(readFileSync('examples/prices.json', 'utf8')) as PriceFile)
    const usageOfKind: Record<string, Usage> = {
      chat: { inputTokens: 9, cachedInputTokens: 2, cacheWriteTokens: 3, outputTokens: 5, reasoningTokens: 1 },
      embedding: { inputTokens: 9, outputTokens: 0 },
      image: { images: 1, inputTokens: 9, outputTokens: 1290, outputImageTokens: 1290 },
      image_edit: { images: 1, inputTokens: 900, inputImageTokens: 890, outputTokens: 1056 },
      video: { videoSeconds: 5 },
      speech: { characters: 40 },
      transcription: { inputTokens: 320, inputAudioTokens: 310, outputTokens: 20, audioSeconds: 9.7 },
      rerank: { inputTokens: 90, outputTokens: 0, searchUnits: 1 },
    }
    for (const { id, kind } of BUILT_IN_MODELS) {
      const rate = prices.quote(id, { resolution: '720p', size: '1024x1024' })
      for (const each of [kind].flat()) expect(charge(rate!, usageOfKind[each]!), id).toBeGreaterThan(0n)
    }
  })
})

describe('quote', () => {
  const prices = definePrices(
    listOf(
      GOOD,
      { model: 'v', meter: 'request', amount: '0.001' },
      { model: 'v', meter: 'video_second', amount: '0.10', when: { resolution: '720p' } },
      { model: 'v', meter: 'video_second', amount: '0.15', when: { resolution: '1080p' } },
      { model: 'v', meter: 'video_second', amount: '0.20', when: { resolution: '1080p', audio: 'true' } },
      { model: 'i', meter: 'image', amount: '0.02' },
      { model: 'i', meter: 'image', amount: '0.05', when: { size: '4K' } },
    ),
  )
  const secondPrice = (fields: Record<string, string>) =>
    prices.quote('v', fields)?.prices.find((price) => price.meter === 'video_second')?.amount

  it('knows no rate for a model without a price', () => {
    expect(prices.quote('gp-6', {})).toBeUndefined()
    expect(prices.quote('constructor', {})).toBeUndefined()
  })

  it('takes the row with the most conditions that hold', () => {
    expect(secondPrice({ resolution: '720p', audio: 'true' })).toBe('0.10')
    expect(secondPrice({ resolution: '1080p', audio: 'false' })).toBe('0.15')
    expect(secondPrice({ resolution: '1080p', audio: 'true' })).toBe('0.20')
  })

  it('takes the row without conditions when no other holds', () => {
    expect(prices.quote('i', {})?.prices).toEqual([{ meter: 'image', amount: '0.02', per: 1 }])
    expect(prices.quote('i', { size: '1K' })?.prices[0]?.amount).toBe('0.02')
    expect(prices.quote('i', { size: '4K' })?.prices[0]?.amount).toBe('0.05')
  })

  it.each([{}, { resolution: '480p' }, { resolution: '1080P' }, { Resolution: '720p' }, { audio: 'true' }])(
    'refuses %j when some meter has rows and none of them holds',
    (fields) => {
      expect(prices.quote('v', fields)).toBeUndefined()
      expect(prices.quote('v', fields)).toBeUndefined()
    },
  )

  it('reads no condition from the prototype of the fields', () => {
    const inherited: Record<string, string> = Object.create({ resolution: '720p' })

    expect(prices.quote('v', inherited)).toBeUndefined()
  })

  it('gives the same rate object for fields that come to the same', () => {
    expect(prices.quote('v', { resolution: '720p', other: 'x' })).toBe(prices.quote('v', { resolution: '720p' }))
    expect(prices.quote('gp-5', { anything: 'x' })).toBe(prices.quote('gp-5', {}))
  })
})

describe('a price of searches', () => {
  const pricesWhen = (when: Record<string, string> | undefined) =>
    definePrices({
      currency: 'USD',
      prices: [
        { model: 'm', meter: 'input_token', amount: '0.000001' },
        { model: 'm', meter: 'web_search', amount: '0.01', ...(when === undefined ? {} : { when }) },
      ],
    })

  it('cannot be given for calls that do not search', () => {
    expect(() => pricesWhen({ web_search: 'false' })).toThrow(
      'prices[1]: a search price can apply only when web_search',
    )
  })

  it.each([[undefined], [{ web_search: 'true' }]])('applies with the condition %j to calls that may search', (when) => {
    const prices = pricesWhen(when)

    const metersOf = (fields: Record<string, string>) => prices.quote('m', fields)?.prices.map(({ meter }) => meter)
    expect(metersOf({ web_search: 'true' })).toEqual(['input_token', 'web_search'])
    expect(metersOf({})).toEqual(['input_token'])
  })
})

const priceAt = (amount: string, model = 'our-chat'): PriceFile => ({
  currency: 'USD',
  prices: [{ model, meter: 'request', amount }],
})

describe('prices that can be reloaded', () => {
  it('are those of the last list', () => {
    const prices = reloadablePrices(priceAt('1'))

    prices.reload(priceAt('2'))

    expect(prices.quote('our-chat', {})?.prices).toEqual([{ meter: 'request', amount: '2', per: 1 }])
  })

  it('are replaced as a whole: a model that the new list does not name has no price', () => {
    const prices = reloadablePrices(priceAt('1'))

    prices.reload(priceAt('2', 'another-chat'))

    expect(prices.quote('our-chat', {})).toBeUndefined()
  })

  it('stay as they were when the new list is not sound, and the bad row is named', () => {
    const prices = reloadablePrices(priceAt('1'))
    const bad = { currency: 'USD', prices: [priceAt('2').prices[0], { model: 'x', meter: 'token', amount: '1' }] }

    expect(() => prices.reload(bad as PriceFile)).toThrow('prices[1].meter: unknown meter "token"')

    expect(prices.quote('our-chat', {})?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
  })

  it('leave a quote that was given before as it was', () => {
    const prices = reloadablePrices(priceAt('1'))
    const quote = prices.quote('our-chat', {})

    prices.reload(priceAt('2'))

    expect(quote?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
  })
})
