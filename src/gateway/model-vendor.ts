import type { Snapshot } from '../catalog/vendor-models/snapshot.ts'
import type { ModelVendor } from '../catalog/vendor-models/vendor-models.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Vendor } from '../vendors/vendor.ts'

/** Models that a vendor serves without rows, as the endpoints determine them. */
export function modelVendor(vendor: Vendor, endpoints: readonly Endpoint[], snapshot?: Snapshot): ModelVendor {
  const kinds = new Map<string, string | undefined>()
  for (const { kind, servesUnlisted } of endpoints) {
    const served = servesUnlisted?.(vendor) ?? false
    if (served !== false) kinds.set(kind, served === true ? undefined : served)
  }
  const { id, catalogId, apiKeys, claims = [], passUnknownModels = false } = vendor
  const catalogIds = vendor.catalogIds?.bind(vendor)
  return { id, catalogId, catalogIds, isConfigured: apiKeys.length > 0, kinds, claims, passUnknownModels, snapshot }
}
