import { nearestName } from '../../core/known-members.ts'
import type { Catalog } from '../catalog.ts'
import { isPattern } from '../id-pattern.ts'
import type { Prices } from './prices.ts'

/**
 * Returns the prices after checking that vendors in names such as `openai/gpt-4o` exist: configured, or known to the public
 * catalog. Prices that do not list their rows are not checked.
 * @throws TypeError with the row and the unknown vendor.
 */
export function withKnownVendors<Given extends Prices>(prices: Given, catalog: Catalog): Given {
  for (const [index, { model }] of (prices.rows?.() ?? []).entries()) {
    const vendor = model.slice(0, Math.max(0, model.indexOf('/')))
    if (vendor === '' || isPattern(vendor) || catalog.find(model) !== undefined) continue
    const ofRows = catalog.rows.flatMap((row) => [row.vendor, ...(row.routes ?? []).map((route) => route.vendor)])
    const known = [...new Set([...ofRows, ...(catalog.source.vendorNames?.() ?? [vendor])])]
    if (known.includes(vendor) || catalog.rows.some(({ id }) => id.startsWith(`${vendor}/`))) continue
    const nearest = nearestName(vendor, known)
    const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
    throw new TypeError(`prices[${index}]: ${JSON.stringify(model)} names an unknown vendor${hint}`)
  }
  return prices
}
