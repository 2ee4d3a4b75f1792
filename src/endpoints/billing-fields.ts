import type { BillingFields } from '../catalog/prices/prices.ts'

/** The price fields without those that never reach a vendor. The same object if nothing is left out. */
export function withoutFields(fields: BillingFields, leftOut: ReadonlySet<string> | undefined): BillingFields {
  if (leftOut === undefined) return fields
  const names = Object.keys(fields)
  if (!names.some((name) => leftOut.has(name))) return fields
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !leftOut.has(name)))
}
