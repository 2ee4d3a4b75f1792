import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { FallbackPolicy } from './routing-options.ts'

/**
 * Returns the catalog under the routing policy and the configured vendors. A model whose routes lead to vendors other than its own is
 * served by the first of them with a key. Under the policy `never` no model has fallbacks, so no money is reserved for them.
 */
export function catalogForRoutes(
  catalog: Catalog,
  vendors: ReadonlyMap<string, Vendor>,
  fallback: FallbackPolicy,
): Catalog {
  const { rows } = catalog
  const fitted = rows.map((model) => {
    const served = servedBy(model, vendors)
    return fallback === 'never' && served.fallbacks.length > 0 ? { ...served, fallbacks: [] } : served
  })
  return fitted.every((model, index) => model === rows[index]) ? catalog : createCatalog(fitted, catalog.source)
}

function servedBy(model: CatalogModel, vendors: ReadonlyMap<string, Vendor>): CatalogModel {
  const { routes } = model
  if (routes === undefined) return model
  const isConfigured = (vendorId: string): boolean => (vendors.get(vendorId)?.apiKeys.length ?? 0) > 0
  const usable = routes.filter(({ vendor }) => isConfigured(vendor))
  const first = usable[0] ?? routes[0]
  const isRight = first === undefined || usable.some(({ vendor }) => vendor === model.vendor)
  return isRight ? model : { ...model, vendor: first.vendor }
}
