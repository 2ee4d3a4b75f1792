import type { CatalogModel } from '../catalog/model.ts'
import { type BillingFields, charge, type MeterPrice, type Prices, type Rate } from '../catalog/prices/prices.ts'
import { createRate } from '../catalog/prices/rate.ts'
import type { Usage } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { TaskDetails } from '../stores/task-store.ts'

/** Prices of a task by variant. The variant `''` applies to all variants without their own row. */
export type FrozenPrices = NonNullable<TaskDetails['prices']>

/** Prices that were frozen last for each model, and the rates they came from. */
const lastFrozen = new WeakMap<CatalogModel, { readonly rates: readonly (Rate | undefined)[]; frozen: FrozenPrices }>()

/**
 * Freezes the current prices of every variant that the model may produce: a later price list does not change the cost of a task,
 * whatever variant the vendor reports. Tasks submitted at the same prices share one object.
 */
export function freezePrices(
  prices: Prices,
  { surcharges, task }: Endpoint,
  model: CatalogModel,
  fields: BillingFields,
): FrozenPrices {
  const variants = task?.variants(model, fields) ?? []
  const asked = prices.quote(model.id, fields, surcharges)
  const rates = [asked]
  for (const [, own] of variants) rates.push(own === fields ? asked : prices.quote(model.id, own, surcharges))
  const last = lastFrozen.get(model)
  // Rates are immutable, and a new price list creates new ones.
  if (last?.rates.every((rate, index) => rate === rates[index]) === true) return last.frozen
  const frozen: Record<string, readonly MeterPrice[]> = {}
  for (const [index, rate] of rates.entries())
    if (rate !== undefined) frozen[variants[index - 1]?.[0] ?? ''] = rate.prices
  lastFrozen.set(model, { rates, frozen })
  return frozen
}

/**
 * Returns the cost of a task's usage in nano-dollars, by the prices of its submission. A variant without its own price costs the same
 * as the requested one.
 */
export function frozenCharge(details: TaskDetails, variant: string | undefined, usage: Usage): bigint | undefined {
  const { prices } = details
  if (prices === undefined) return undefined
  const made = variant ?? details.variant
  const rows = Object.hasOwn(prices, made) ? prices[made] : prices['']
  return rows === undefined ? undefined : charge(createRate(details.model, rows), usage)
}
