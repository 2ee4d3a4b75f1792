import type { Catalog } from '../catalog/catalog.ts'
import { isPattern, starOf } from '../catalog/id-pattern.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { MeterPrice, PriceConditions, PriceRow, Prices } from '../catalog/prices/prices.ts'

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
