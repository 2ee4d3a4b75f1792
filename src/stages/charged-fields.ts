import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields } from '../endpoints/endpoint.ts'
import type { Parsed } from './records.ts'
import type { StageContext } from './stage-context.ts'

/** What a model's price depends on: a surcharge that the vendor's translation leaves out is not asked for, and not charged. */
export function chargedFields(
  context: StageContext,
  { endpoint, billingFields }: Pick<Parsed, 'endpoint' | 'billingFields'>,
  model: CatalogModel,
): BillingFields {
  if (endpoint.id !== 'chat') return billingFields
  const leftOut = context.vendors.get(model.vendor)?.chat?.leavesOut
  if (leftOut === undefined) return billingFields
  const names = Object.keys(billingFields)
  if (!names.some((name) => leftOut.has(name))) return billingFields
  return Object.fromEntries(Object.entries(billingFields).filter(([name]) => !leftOut.has(name)))
}
