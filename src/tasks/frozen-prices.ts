import type { CatalogModel } from '../catalog/model.ts'
import { charge, type MeterPrice, type Prices } from '../catalog/prices/prices.ts'
import { createRate } from '../catalog/prices/rate.ts'
import type { Usage } from '../core/usage.ts'
import type { BillingFields } from '../endpoints/endpoint.ts'
import type { TaskDetails } from '../stores/task-store.ts'

/** Prices of a task by resolution; `''` stands for a resolution that the model is not known to render. */
export type FrozenPrices = NonNullable<TaskDetails['prices']>

/**
 * Takes the prices that hold now, for every resolution that the model may render: a later price list does not change what a
 * task costs, whatever tier the vendor reports in the end.
 */
export function freezePrices(prices: Prices, model: CatalogModel, fields: BillingFields): FrozenPrices {
  const frozen: Record<string, readonly MeterPrice[]> = {}
  const asked = prices.quote(model.id, fields)
  if (asked !== undefined) frozen[''] = asked.prices
  for (const resolution of model.video?.resolutions ?? []) {
    const rate = prices.quote(model.id, { ...fields, resolution })
    if (rate !== undefined) frozen[resolution] = rate.prices
  }
  return frozen
}

/**
 * What usage of a task costs, in nano-dollars, by the prices of its submission. A tier without a price of its own costs what
 * the tier asked for does.
 */
export function frozenCharge(details: TaskDetails, resolution: string | undefined, usage: Usage): bigint | undefined {
  const { prices } = details
  if (prices === undefined) return undefined
  const tier = resolution ?? details.resolution
  const rows = Object.hasOwn(prices, tier) ? prices[tier] : prices['']
  return rows === undefined ? undefined : charge(createRate(details.model, rows), usage)
}
