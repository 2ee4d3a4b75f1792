import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields } from '../endpoints/endpoint.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { Parsed } from './records.ts'
import type { StageContext } from './stage-context.ts'

type Billed = Pick<Parsed, 'endpoint' | 'billingFields'>

/**
 * What a model's price depends on: a surcharge that no vendor of its routes is asked for is not charged. One that some of them is
 * asked for is, because nobody knows yet which of them will answer.
 */
export function chargedFields(context: StageContext, billed: Billed, model: CatalogModel): BillingFields {
  const { billingFields } = billed
  let charged: BillingFields | undefined
  for (const { vendor: id } of model.routes ?? [model]) {
    const vendor = context.vendors.get(id)
    if (vendor === undefined) continue
    const asked = fieldsAskedOf(vendor, billed)
    if (asked === billingFields) return billingFields
    charged = { ...charged, ...asked }
  }
  return charged ?? billingFields
}

const NO_FIELDS: BillingFields = {}

/**
 * The same for one vendor: what the translation for it leaves out is not asked for. A Messages request that is translated into
 * a chat loses all of them.
 */
export function fieldsAskedOf(vendor: Vendor, { endpoint, billingFields }: Billed): BillingFields {
  if (endpoint.id === 'messages' && vendor.messages === undefined) return NO_FIELDS
  const leftOut = endpoint.id === 'chat' ? vendor.chat?.leavesOut : undefined
  if (leftOut === undefined) return billingFields
  const names = Object.keys(billingFields)
  if (!names.some((name) => leftOut.has(name))) return billingFields
  return Object.fromEntries(Object.entries(billingFields).filter(([name]) => !leftOut.has(name)))
}
