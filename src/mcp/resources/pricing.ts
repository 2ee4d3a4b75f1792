import type { Gateway } from '../../gateway/gateway.ts'

/** All prices in force. */
export function pricingOf(gateway: Gateway) {
  const prices = gateway.prices()
  return { billing: prices === undefined ? 'off' : 'on', currency: 'USD', prices: prices ?? [] }
}

/** The prices of one model, by id or alias; undefined when there is no such model. */
export function modelPrices(gateway: Gateway, idOrAlias: string) {
  const model = gateway.catalog.find(idOrAlias)
  if (model === undefined) return undefined
  const pricing = pricingOf(gateway)
  return { ...pricing, model: model.id, prices: pricing.prices.filter((price) => price.model === model.id) }
}
