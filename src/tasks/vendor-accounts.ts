import { vendorAccount } from '../routing/vendor-account.ts'
import type { Vendor } from '../vendors/vendor.ts'

const accountsByVendor = new WeakMap<Vendor, ReadonlyMap<string, string>>()

/**
 * The accounts at a vendor, by the operator's key: what {@link vendorAccount} says of each, computed once. Every submission
 * and every question about a task needs one.
 */
export function vendorAccounts(vendor: Vendor): ReadonlyMap<string, string> {
  const known = accountsByVendor.get(vendor)
  if (known !== undefined) return known
  const accounts = new Map(vendor.apiKeys.map((apiKey) => [apiKey, vendorAccount(vendor.id, apiKey)]))
  accountsByVendor.set(vendor, accounts)
  return accounts
}
