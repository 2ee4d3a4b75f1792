import { expect, test } from 'vitest'
import { definePrices } from '../../../src/catalog/prices/prices.ts'

const pricesWhen = (when: Record<string, string> | undefined) =>
  definePrices({
    currency: 'USD',
    prices: [
      { model: 'm', meter: 'input_token', amount: '0.000001' },
      { model: 'm', meter: 'web_search', amount: '0.01', ...(when === undefined ? {} : { when }) },
    ],
  })

test('a price of searches cannot be given for calls that do not search', () => {
  expect(() => pricesWhen({ web_search: 'false' })).toThrow(
    'prices[1]: a price of searches can hold only when web_search',
  )
})

test.each([[undefined], [{ web_search: 'true' }]])(
  'a price of searches when %j holds for calls that may search',
  (when) => {
    const prices = pricesWhen(when)

    const metersOf = (fields: Record<string, string>) => prices.quote('m', fields)?.prices.map(({ meter }) => meter)
    expect(metersOf({ web_search: 'true' })).toEqual(['input_token', 'web_search'])
    expect(metersOf({})).toEqual(['input_token'])
  },
)
