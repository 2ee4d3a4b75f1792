import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../../src/catalog/models/built-in-models.ts'
import { definePrices, type PriceRow, type Prices, reloadablePrices } from '../../../src/catalog/prices/prices.ts'
import { type ListedPrice, priceList } from '../../../src/gateway/model-warnings.ts'

const catalog = createCatalog(BUILT_IN_MODELS)

const ROWS: readonly PriceRow[] = [
  { model: 'mirror/wan-eu', meter: 'video_second', amount: '0.02' },
  { model: 'wv2.6-i2v-flash', meter: 'video_second', amount: '0.10', when: { resolution: '720p' } },
  { model: 'wv2.6-i2v-flash', meter: 'video_second', amount: '0.15', when: { resolution: '1080p' } },
  { model: 'qw-image-max', meter: 'image', amount: '0.05' },
  { model: 'qw-image-max', meter: 'image', amount: '0.07', when: { size: '3000*3000' } },
  { model: 'qw-image-max', meter: 'request', amount: '1', per: 1000 },
]

function of(model: string, prices: Prices): readonly ListedPrice[] {
  return priceList(catalog, prices).filter((row) => row.model === model)
}

describe('the prices of a list that lists its rows', () => {
  const prices = definePrices({ currency: 'USD', prices: ROWS })

  test('are these rows, those under the same conditions together', () => {
    expect(of('qw-image-max', prices)).toEqual([
      {
        model: 'qw-image-max',
        when: {},
        prices: [
          { meter: 'image', amount: '0.05', per: 1 },
          { meter: 'request', amount: '1', per: 1000 },
        ],
      },
      {
        model: 'qw-image-max',
        when: { size: '3000*3000' },
        prices: [{ meter: 'image', amount: '0.07', per: 1 }],
      },
    ])
  })

  test('are not those that the operator pays vendors, nor of models that the catalog lacks', () => {
    const models = new Set(priceList(catalog, prices).map(({ model }) => model))

    expect([...models].sort()).toEqual(['qw-image-max', 'wv2.6-i2v-flash'])
  })

  test('are those of the longest pattern that fits, for a model without rows of its own', () => {
    const rows: readonly PriceRow[] = [
      { model: 'qw-*', meter: 'image', amount: '0.01' },
      { model: 'qw-image-*', meter: 'image', amount: '0.02' },
    ]
    const own = definePrices({ currency: 'USD', prices: [...ROWS, ...rows] })
    const amountOf = (model: string) => of(model, own).map(({ prices: [price] }) => price?.amount)

    expect(amountOf('qw-image-2.0')).toEqual(['0.02'])
    expect(amountOf('qw-image-max')).toEqual(['0.05', '0.07'])
    expect(of('qw-image-*', own)).toEqual([])
  })

  test('are the same under conditions in another order', () => {
    const row = (amount: string, meter: 'image' | 'request', when: PriceRow['when']): PriceRow => {
      return { model: 'qw-image-max', meter, amount, ...(when === undefined ? {} : { when }) }
    }
    const both = [
      row('1', 'image', { size: '1*1', quality: 'high' }),
      row('2', 'request', { quality: 'high', size: '1*1' }),
    ]

    expect(of('qw-image-max', definePrices({ currency: 'USD', prices: both }))).toHaveLength(1)
  })

  test('are those of the last list after it was replaced', () => {
    const reloaded = reloadablePrices({ currency: 'USD', prices: ROWS })
    reloaded.reload({ currency: 'USD', prices: [{ model: 'qw-image-max', meter: 'image', amount: '0.09' }] })

    expect(priceList(catalog, reloaded)).toEqual([
      { model: 'qw-image-max', when: {}, prices: [{ meter: 'image', amount: '0.09', per: 1 }] },
    ])
  })
})

describe('prices of a host that lists no rows', () => {
  const { quote } = definePrices({ currency: 'USD', prices: ROWS })
  const prices: Prices = { quote }

  test('are quoted for the values in the catalog; a field that affects no price appears in no condition', () => {
    expect(of('qw-image-max', prices)).toEqual([
      {
        model: 'qw-image-max',
        when: {},
        prices: [
          { meter: 'image', amount: '0.05', per: 1 },
          { meter: 'request', amount: '1', per: 1000 },
        ],
      },
    ])
    expect(of('wv2.6-i2v-flash', prices).map((row) => row.when)).toEqual([
      { resolution: '720p' },
      { resolution: '1080p' },
    ])
  })
})
