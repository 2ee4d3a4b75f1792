import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields } from '../endpoints/endpoint.ts'
import type { Parsed } from './records.ts'
import type { StageContext } from './stage-context.ts'

const NO_FIELDS: BillingFields = {}

/**
 * What a model's price depends on: a surcharge that the translation for its vendor leaves out is not asked for, and not charged.
 * A Messages request that is translated into a chat loses all of them.
 */
export function chargedFields(
  context: StageContext,
  { endpoint, billingFields }: Pick<Parsed, 'endpoint' | 'billingFields'>,
  model: CatalogModel,
): BillingFields {
  const vendor = context.vendors.get(model.vendor)
  if (endpoint.id === 'messages' && vendor !== undefined && vendor.messages === undefined) return NO_FIELDS
  const leftOut = endpoint.id === 'chat' ? vendor?.chat?.leavesOut : undefined
  if (leftOut === undefined) return billingFields
  const names = Object.keys(billingFields)
  if (!names.some((name) => leftOut.has(name))) return billingFields
  return Object.fromEntries(Object.entries(billingFields).filter(([name]) => !leftOut.has(name)))
}
