import { isPattern, starOf } from '../catalog/id-pattern.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { PriceRow } from '../catalog/prices/prices.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'

/** How many models of the configured vendors have no price, and are refused while billing is on. */
export interface UnpricedModels {
  readonly unpriced: number
  /** All models of these vendors, patterns not counted. */
  readonly models: number
}

/**
 * Counts them; of the vendors' models nothing is kept. Undefined when billing is off, and for prices that do not list their rows.
 */
export function unpricedModels(
  context: Pick<PipelineContext, 'catalog' | 'vendors' | 'prices'>,
): UnpricedModels | undefined {
  const found = unpricedModelIds(context)
  return found === undefined ? undefined : { unpriced: found.unpriced.length, models: found.models }
}

/** The ids that {@link unpricedModels} counts. */
export function unpricedModelIds({
  catalog,
  vendors,
  prices,
}: Pick<PipelineContext, 'catalog' | 'vendors' | 'prices'>):
  | { readonly unpriced: readonly string[]; readonly models: number }
  | undefined {
  const rows = prices?.rows?.()
  if (rows === undefined) return undefined
  const hasPrice = pricedBy(rows)

  const rowsOfModels = catalog.rows.filter(({ id }) => !isPattern(id))
  const callable = rowsOfModels.filter((model) => isCallable(model, vendors))
  const taken = new Set([...rowsOfModels.map(({ id }) => id), ...callable.flatMap(({ aliases }) => aliases)])
  const places = new Set(rowsOfModels.map(({ vendor, upstream }) => `${vendor}/${upstream}`))
  const ids = callable.map(({ id }) => id)
  for (const { id, vendor, upstream } of catalog.source.names?.() ?? []) {
    const place = `${vendor}/${upstream}`
    // Where a row has its bare id, it is named with its vendor, unless that row stands for it and is counted already.
    if (!taken.has(id)) ids.push(id)
    else if (!places.has(place)) ids.push(place)
  }
  return { unpriced: ids.filter((id) => !hasPrice(id)), models: ids.length }
}

/** Tells whether any row of a price list, or pattern in it, is a price of a model. */
export function pricedBy(rows: readonly PriceRow[]): (modelId: string) => boolean {
  const priced = new Set(rows.map(({ model }) => model))
  const patterns = [...priced].filter(isPattern)
  return (id) => priced.has(id) || patterns.some((pattern) => starOf(pattern, id) !== undefined)
}

/** Has any vendor of a model a key? */
export function isCallable({ vendor, routes = [] }: CatalogModel, vendors: PipelineContext['vendors']): boolean {
  return [vendor, ...routes.map((route) => route.vendor)].some((id) => (vendors.get(id)?.apiKeys.length ?? 0) > 0)
}
