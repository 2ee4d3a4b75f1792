import type { Catalog } from '../catalog/catalog.ts'
import { isPattern, starOf } from '../catalog/id-pattern.ts'
import type { CatalogModel } from '../catalog/model.ts'
import { BATCH_FIELD, CACHE_FIELD, isOfCalls, type PriceRow, THINKING_FIELD } from '../catalog/prices/prices.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { EndpointTable } from '../pipeline/endpoint-table.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { unpricedFallback } from '../pipeline/pricing.ts'
import { pricedKinds } from '../pipeline/unpriced-models.ts'

/**
 * Warns the operator of price rows that can never apply to a call, and of fallbacks without any price. Prices that do not list their
 * rows are not checked.
 */
export function warnOfPrices({ catalog, endpoints, prices, warnings, vendors }: PipelineContext): void {
  const rows = prices?.rows?.()
  if (rows === undefined) return
  const members = [...vendors.values()].flatMap(({ priceMembers = {} }) => Object.values(priceMembers).flat())
  const ofVendors = new Set(members.map(({ field }) => field))
  const named = new Set(rows.filter(isOfCalls).map(({ model }) => model))
  for (const [index, row] of rows.entries()) {
    const reason = isPattern(row.model)
      ? ignoredRowReason(row, catalog, named)
      : whyUnused(row, catalog, endpoints, ofVendors)
    if (reason !== undefined)
      warnings.warn({ code: 'price-unused', message: `prices[${index}] (${row.meter} of ${row.model}): ${reason}` })
  }
  const priced = new Set(rows.map(({ model }) => model))
  const needsPrice = pricedKinds(endpoints)
  for (const { id, fallbacks } of catalog.rows) {
    if (!priced.has(id)) continue
    for (const fallback of fallbacks) {
      const model = catalog.find(fallback)
      if (model !== undefined && needsPrice(model) && !priced.has(fallback))
        warnings.warn(unpricedFallback(fallback, id))
    }
  }
}

/**
 * A pattern may apply to models that nobody has named yet. But if each model that it matches has its own price, the operator may
 * expect the pattern to apply. Returns `undefined` if the pattern applies to a known model, or matches none.
 */
function ignoredRowReason(row: PriceRow, catalog: Catalog, named: ReadonlySet<string>): string | undefined {
  const matched = isOfCalls(row) ? catalog.list().filter(({ id }) => starOf(row.model, id) !== undefined) : []
  if (matched.length === 0 || matched.some(({ id }) => !named.has(id))) return undefined
  return `every model that it matches has prices of its own, such as ${matched[0]!.id}, and is charged by those`
}

/** Returns `undefined` if calls may be charged by the row. */
function whyUnused(
  row: PriceRow,
  catalog: Catalog,
  endpoints: EndpointTable,
  ofVendors: ReadonlySet<string>,
): string | undefined {
  const model = catalog.find(row.model)
  // Rows of the operator's cost at a vendor are used to compare routes.
  if (model?.id !== row.model && isRoute(row.model, catalog)) return undefined
  if (model === undefined) return 'there is no such model'
  if (model.id !== row.model)
    return `calls are charged by the id ${JSON.stringify(model.id)}, of which this is an alias`
  const unlisted = unlistedValue(row, model)
  if (unlisted !== undefined) return unlisted
  const names = Object.keys(row.when ?? {}).filter((name) => !BY_REPORT.has(name))
  if (names.length === 0) return undefined
  const serving = endpointsOf(model, endpoints)
  // An endpoint of the host may have fields that it does not list.
  if (serving.some((endpoint) => namesOf(endpoint) === undefined)) return undefined
  if (serving.some((endpoint) => names.every((name) => ofVendors.has(name) || namesOf(endpoint)?.includes(name))))
    return undefined
  return `no call of the model has all of its conditions: ${names.join(', ')}`
}

/** Conditions that depend on the vendor's report of a call. */
const BY_REPORT: ReadonlySet<string> = new Set(['inputTokensAbove', THINKING_FIELD])

/** Returns a value that requests to the model cannot have, or `undefined` if there is none. */
function unlistedValue({ when = {} }: PriceRow, { image, video }: CatalogModel): string | undefined {
  const sizes = image?.freeSize === undefined ? image?.sizes : undefined
  const lists: Readonly<Record<string, readonly string[] | undefined>> = {
    resolution: video?.resolutions,
    size: sizes,
    image_size: sizes,
    aspect_ratio: image?.aspectRatios,
  }
  for (const [field, values] of Object.entries(lists)) {
    const value = when[field]
    if (value !== undefined && values?.includes(String(value)) === false) return `the model has no ${field} ${value}`
  }
  return undefined
}

function isRoute(id: string, catalog: Catalog): boolean {
  return catalog.rows.some(({ vendor, upstream, routes }) => {
    if (`${vendor}/${upstream}` === id) return true
    return routes?.some((route) => `${route.vendor}/${route.upstream ?? upstream}` === id) === true
  })
}

function endpointsOf({ kinds, protocol }: CatalogModel, { all }: EndpointTable): readonly Endpoint[] {
  const serving: Endpoint[] = []
  for (const endpoint of all) {
    if (!kinds.includes(endpoint.kind)) continue
    const shape = endpoint.shapes === undefined ? endpoint : endpoint.shapes.get(protocol ?? '')
    if (shape !== undefined) serving.push(shape)
  }
  return serving
}

/** Returns `undefined` if the names are not known. */
function namesOf(endpoint: Endpoint): readonly string[] | undefined {
  const { priceFields, priceFieldNames, surcharges, extraFields = NO_NAMES, cached, isBatchable } = endpoint
  const names = priceFieldNames ?? surcharges ?? (priceFields === undefined ? NO_NAMES : undefined)
  if (names === undefined) return undefined
  const known = [...names, ...extraFields]
  if (cached !== undefined) known.push(CACHE_FIELD)
  if (isBatchable === true) known.push(BATCH_FIELD)
  return known
}

const NO_NAMES: readonly string[] = []
