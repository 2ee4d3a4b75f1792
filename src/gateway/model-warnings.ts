import type { Catalog } from '../catalog/catalog.ts'
import { type CatalogModel, isPattern, servingVendors, starOf } from '../catalog/model.ts'
import {
  BATCH_FIELD,
  CACHE_FIELD,
  isOfCalls,
  type MeterPrice,
  type PriceConditions,
  type PriceRow,
  type Prices,
  THINKING_FIELD,
} from '../catalog/prices/prices.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import {
  isCallable,
  nameOfUnpriced,
  pricedKinds,
  type UnpricedModel,
  unpricedBy,
  unpricedModels,
} from '../pipeline/model-notices.ts'
import { vendorWithoutKey } from '../pipeline/notices.ts'
import type { EndpointTable, PipelineContext } from '../pipeline/pipeline-context.ts'
import { unpricedFallback } from '../pipeline/pricing.ts'
import type { GatewayOptions } from './options.ts'

/** Maximum number of ids in one message. */
const MAX_NAMED = 20

/**
 * Warns the operator of models that cannot be called because they have no price, although the operator's rows of models or prices
 * name them, and of fallbacks that can never answer. Prices that do not list their rows are not checked.
 */
export function warnOfModels(
  context: PipelineContext,
  options: Pick<GatewayOptions, 'models' | 'vendors' | 'prices'>,
): void {
  warnOfUnpriced(context, options)
  warnOfFallbacks(context)
  warnOfVendors(context, options)
}

/** Warns of vendors without a key that rows of the operator name, also in fallbacks, or that prices name and the operator lists. */
function warnOfVendors(
  { catalog, vendors, prices, warnings }: PipelineContext,
  { models = [], vendors: given, prices: option }: Pick<GatewayOptions, 'models' | 'vendors' | 'prices'>,
): void {
  const rows = [...models, ...given.flatMap((vendor) => (vendor.hasBuiltInModels === true ? [] : vendor.models))]
  const fallbacks = rows.flatMap(({ fallbacks: ids = [] }) => ids.flatMap((id) => catalog.find(id) ?? []))
  const ids = new Set([...rows, ...fallbacks].flatMap(servingVendors))
  // List prices are built for the catalog, and name models that nobody has chosen.
  const isChosen = !(typeof option === 'object' && 'forCatalog' in option)
  for (const { model } of isChosen ? (prices?.rows?.() ?? []) : [])
    for (const id of servingVendors(catalog.find(model) ?? {})) if (vendors.has(id)) ids.add(id)
  for (const id of ids) if (!vendors.get(id)?.apiKeys.length) warnings.warn(vendorWithoutKey(vendors, id))
}

function warnOfUnpriced(
  { catalog, vendors, prices, endpoints, warnings }: PipelineContext,
  { models = [], vendors: given }: Pick<GatewayOptions, 'models' | 'vendors'>,
): void {
  const rows = prices?.rows?.()
  if (rows === undefined) return
  const judge = unpricedBy(rows)
  const needsPrice = pricedKinds(endpoints)
  const listed = [...models, ...given.flatMap((vendor) => (vendor.hasBuiltInModels === true ? [] : vendor.models))]
  const ids = new Set([...listed.map(({ id }) => id), ...rows.map(({ model }) => model)])
  const unpriced: UnpricedModel[] = []
  for (const id of ids) {
    const model = isPattern(id) ? undefined : catalog.find(id)
    // A price row may name an alias, which another warning reports, or a route.
    if (model?.id !== id || !isCallable(model, vendors) || !needsPrice(model)) continue
    const fault = judge(model)
    if (fault !== undefined) unpriced.push(fault)
  }
  if (unpriced.length === 0) return
  const named = unpriced.slice(0, MAX_NAMED).map((model) => nameOfUnpriced(model, JSON.stringify))
  const more = unpriced.length > named.length ? ` and ${unpriced.length - named.length} more` : ''
  const message = `Models have no price and are refused while billing is on: ${named.join(', ')}${more}.`
  warnings.warn({ code: 'model-unpriced', message })
}

function warnOfFallbacks({ catalog, vendors, warnings }: PipelineContext): void {
  for (const { id, fallbacks } of catalog.rows) {
    for (const name of fallbacks) {
      const fallback = catalog.find(name)
      if (fallback === undefined || isCallable(fallback, vendors)) continue
      const message = `The model ${JSON.stringify(name)} can never answer as a fallback of ${JSON.stringify(id)}: ${unreachableReason(fallback, vendors)}.`
      warnings.warn({ code: 'fallback-unreachable', message })
    }
  }
}

function unreachableReason({ vendor, routes = [] }: CatalogModel, vendors: PipelineContext['vendors']): string {
  const reasons = [...new Set([vendor, ...routes.map((route) => route.vendor)])].map((id) =>
    vendors.has(id) ? `the vendor ${JSON.stringify(id)} has no key` : `there is no vendor ${JSON.stringify(id)}`,
  )
  return reasons.join(', and ')
}

/** Logs how many models have no price: one line and no event, because models that no caller uses need none. */
export function logUnpricedModels(context: PipelineContext): void {
  const counted = unpricedModels(context)
  if (counted === undefined || counted.unpriced === 0) return
  const { unpriced, models } = counted
  const told = `${unpriced} of ${models} models of the configured vendors have no price, and are refused while billing is on`
  context.logger.info(told, { ...counted })
}

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
  const names = Object.keys(row.when ?? {}).filter((name) => !REPORTED_CONDITIONS.has(name))
  if (names.length === 0) return undefined
  const serving = endpointsOf(model, endpoints)
  // An endpoint of the host may have fields that it does not list.
  if (serving.some((endpoint) => namesOf(endpoint) === undefined)) return undefined
  if (serving.some((endpoint) => names.every((name) => ofVendors.has(name) || namesOf(endpoint)?.includes(name))))
    return undefined
  return `no call of the model has all of its conditions: ${names.join(', ')}`
}

/** Conditions that depend on the vendor's report of a call. */
const REPORTED_CONDITIONS: ReadonlySet<string> = new Set(['inputTokensAbove', THINKING_FIELD])

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

/** Prices of a model that apply under the same conditions. */
export interface ListedPrice {
  /** Public id of the model. */
  readonly model: string
  /** Request values under which these prices apply; empty if they apply to every request. */
  readonly when: PriceConditions
  /** Prices in the operator's form: dollars per number of units. */
  readonly prices: readonly MeterPrice[]
}

/** Request field that prices may depend on, and its values in the catalog. */
interface Axis {
  readonly field: string
  /** Values; `undefined` stands for a request without the field. */
  readonly values: readonly (string | undefined)[]
}

type Fields = Readonly<Record<string, string>>

/**
 * Returns the prices of every model of the catalog. A model without its own prices has those of the longest matching pattern, as
 * calls are charged. For each meter, the matching price with the most conditions applies. Other rows, such as the operator's own
 * costs at a vendor, are omitted. If a list cannot enumerate its rows, it is queried for each combination of size, quality and tier
 * that the catalog has for a model. Combinations without a price, and fields without effect, are omitted.
 */
export function priceList(catalog: Catalog, prices: Prices): readonly ListedPrice[] {
  const rows = prices.rows?.()
  if (rows === undefined) return catalog.list().flatMap((model) => pricesOfModel(model, prices))
  const byModel = new Map<string, Map<string, Listing>>()
  for (const row of rows) addRow(byModel, row)
  const patterns = [...byModel.keys()].filter(isPattern).sort((one, other) => other.length - one.length)
  return catalog.list().flatMap(({ id }) => {
    const name = byModel.has(id) ? id : patterns.find((pattern) => starOf(pattern, id) !== undefined)
    return Array.from(byModel.get(name ?? id)?.values() ?? [], (listing) => ({ ...listing, model: id }))
  })
}

interface Listing extends ListedPrice {
  readonly prices: MeterPrice[]
}

/** Groups the rows of one model by their conditions. */
function addRow(
  byModel: Map<string, Map<string, Listing>>,
  { model, meter, amount, per = 1, when = {} }: PriceRow,
): void {
  const listings = byModel.get(model) ?? new Map<string, Listing>()
  byModel.set(model, listings)
  const conditions = JSON.stringify(Object.entries(when).sort(([left], [right]) => (left < right ? -1 : 1)))
  const listing = listings.get(conditions) ?? { model, when, prices: [] }
  listings.set(conditions, listing)
  listing.prices.push({ meter, amount, per })
}

function pricesOfModel(model: CatalogModel, prices: Prices): ListedPrice[] {
  const quote = (fields: Fields): readonly MeterPrice[] | undefined =>
    prices
      .quote(model.id, fields)
      ?.prices.filter(({ serviceTier, thinking }) => serviceTier === undefined && thinking === undefined)
  let axes = axesOf(model)
  for (const axis of axes) {
    const others = axes.filter((other) => other !== axis)
    if (combinations(others).every((fields) => isIndifferent(axis, fields, quote))) axes = others
  }
  return combinations(axes).flatMap((when) => {
    const found = quote(when)
    return found === undefined ? [] : [{ model: model.id, when, prices: found }]
  })
}

function isIndifferent({ field, values }: Axis, rest: Fields, quote: (fields: Fields) => unknown): boolean {
  const without = JSON.stringify(quote(rest))
  return values.every((value) => JSON.stringify(quote(withField(rest, field, value))) === without)
}

/** Returns the fields that endpoints bill by, with their values in the catalog. */
function axesOf({ protocol, image, video }: CatalogModel): readonly Axis[] {
  const axes: Axis[] = []
  if (image?.sizes !== undefined) {
    axes.push({ field: protocol === 'interactions' ? 'image_size' : 'size', values: image.sizes })
  }
  if (image?.qualities !== undefined) axes.push({ field: 'quality', values: image.qualities })
  if (video !== undefined) axes.push({ field: 'resolution', values: video.resolutions })
  if (video?.canMute === true) axes.push({ field: 'audio', values: [undefined, 'false'] })
  return axes.filter(({ values }) => values.length > 0)
}

function combinations(axes: readonly Axis[]): readonly Fields[] {
  return axes.reduce<readonly Fields[]>(
    (found, { field, values }) => found.flatMap((fields) => values.map((value) => withField(fields, field, value))),
    [{}],
  )
}

function withField(fields: Fields, field: string, value: string | undefined): Fields {
  return value === undefined ? fields : { ...fields, [field]: value }
}
