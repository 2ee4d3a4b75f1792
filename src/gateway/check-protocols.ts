import { type CatalogModel, type ModelDefinition, servingVendors } from '../catalog/model.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Vendor } from '../vendors/vendor.ts'

/**
 * Checks the `protocol` of rows. Rows are not checked if none of their vendors is listed.
 * @throws TypeError with the known values if no endpoint of the row's kinds has such a protocol at a vendor of the row.
 */
export function checkProtocols(
  rows: readonly (ModelDefinition | CatalogModel)[],
  vendors: readonly Vendor[],
  endpoints: readonly Endpoint[],
): void {
  for (const row of rows) {
    const { id, protocol } = row
    if (protocol === undefined) continue
    const names = servingVendors(row)
    const listed = vendors.filter((candidate) => names.includes(candidate.id))
    const kinds: readonly string[] = ['kinds' in row ? row.kinds : row.kind].flat()
    const serving = endpoints.filter(({ kind }) => kinds.includes(kind))
    const known = new Set(
      listed.flatMap((candidate) => serving.flatMap((endpoint) => protocolsOf(endpoint, candidate))),
    )
    if (listed.length === 0 || known.has(protocol)) continue
    const place = `${kinds.join(' and ')} models of ${listed.map((candidate) => candidate.id).join(' and ')}`
    const remedy = known.size === 0 ? `Remove it: ${place} have none` : `${place} have ${[...known].join(', ')}`
    throw new TypeError(`model ${JSON.stringify(id)}: the protocol ${JSON.stringify(protocol)} is unknown. ${remedy}.`)
  }
}

function protocolsOf(endpoint: Endpoint, vendor: Vendor): readonly string[] {
  return endpoint.protocols?.(vendor) ?? [...(endpoint.shapes?.keys() ?? [])]
}
