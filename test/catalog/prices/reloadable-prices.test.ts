import { describe, expect, test } from 'vitest'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import { reloadablePrices } from '../../../src/catalog/prices/reloadable-prices.ts'

const listAt = (amount: string, model = 'our-chat'): PriceFile => ({
  currency: 'USD',
  prices: [{ model, meter: 'request', amount }],
})

describe('prices that can be reloaded', () => {
  test('are those of the last list', () => {
    const prices = reloadablePrices(listAt('1'))

    prices.reload(listAt('2'))

    expect(prices.quote('our-chat', {})?.prices).toEqual([{ meter: 'request', amount: '2', per: 1 }])
  })

  test('are replaced as a whole: a model that the new list does not name has no price', () => {
    const prices = reloadablePrices(listAt('1'))

    prices.reload(listAt('2', 'another-chat'))

    expect(prices.quote('our-chat', {})).toBeUndefined()
  })

  test('stay as they were when the new list is not sound, and the bad row is named', () => {
    const prices = reloadablePrices(listAt('1'))
    const bad = { currency: 'USD', prices: [listAt('2').prices[0], { model: 'x', meter: 'token', amount: '1' }] }

    expect(() => prices.reload(bad as PriceFile)).toThrow('prices[1].meter: unknown meter "token"')

    expect(prices.quote('our-chat', {})?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
  })

  test('leave a quote that was given before as it was', () => {
    const prices = reloadablePrices(listAt('1'))
    const quote = prices.quote('our-chat', {})

    prices.reload(listAt('2'))

    expect(quote?.prices).toEqual([{ meter: 'request', amount: '1', per: 1 }])
  })
})
