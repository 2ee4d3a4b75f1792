import type { CatalogModel } from '../catalog/model.ts'
import { charge, type MeterPrice, type Prices, type Rate } from '../catalog/prices/prices.ts'
import { createRate } from '../catalog/prices/rate.ts'
import type { Usage } from '../core/usage.ts'
import type { BillingFields } from '../endpoints/endpoint.ts'
import type { TaskDetails } from '../stores/task-store.ts'

/** Prices of a task by resolution; `''` stands for a resolution that the model is not known to render. */
export type FrozenPrices = NonNullable<TaskDetails['prices']>

/** The last prices that were frozen of each model, and by which rates. */
const lastFrozen = new WeakMap<CatalogModel, { readonly rates: readonly (Rate | undefined)[]; frozen: FrozenPrices }>()

/**
 * Takes the prices that hold now, for every resolution that the model may render: a later price list does not change what a
 * task costs, whatever tier the vendor reports in the end. Tasks that begin at the same prices share one object.
 */
export function freezePrices(prices: Prices, model: CatalogModel, fields: BillingFields): FrozenPrices {
  const resolutions = model.video?.resolutions ?? []
  const asked = prices.quote(model.id, fields)
  const rates = [asked]
  for (const resolution of resolutions)
    rates.push(resolution === fields['resolution'] ? asked : prices.quote(model.id, { ...fields, resolution }))
  const last = lastFrozen.get(model)
  // A rate never changes, and a new price list makes new ones.
  if (last?.rates.every((rate, index) => rate === rates[index]) === true) return last.frozen
  const frozen: Record<string, readonly MeterPrice[]> = {}
  for (const [index, rate] of rates.entries())
    if (rate !== undefined) frozen[resolutions[index - 1] ?? ''] = rate.prices
  lastFrozen.set(model, { rates, frozen })
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
