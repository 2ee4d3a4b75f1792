import { isPattern, starOf } from '../catalog/id-pattern.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { PriceRow } from '../catalog/prices/prices.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'

/** How many models of the configured vendors have no price, and are refused while billing is on. */
export interface UnpricedModels {
  readonly unpriced: number
  /** All models of these vendors, patterns not counted. */
  readonly models: number
}

/** What models and their prices are judged by. */
type JudgedContext = Pick<PipelineContext, 'catalog' | 'vendors' | 'prices'> & { readonly endpoints: ListedEndpoints }

/**
 * Counts them; of the vendors' models nothing is kept. Undefined when billing is off, and for prices that do not list their rows.
 */
export function unpricedModels(context: JudgedContext): UnpricedModels | undefined {
  const found = unpricedModelIds(context)
  return found === undefined ? undefined : { unpriced: found.unpriced.length, models: found.models }
}

/** The ids that {@link unpricedModels} counts. */
export function unpricedModelIds({
  catalog,
  vendors,
  prices,
  endpoints,
}: JudgedContext): { readonly unpriced: readonly string[]; readonly models: number } | undefined {
  const rows = prices?.rows?.()
  if (rows === undefined) return undefined
  const hasPrice = pricedBy(rows)
  const needsPrice = pricedKinds(endpoints)

  const rowsOfModels = catalog.rows.filter(({ id }) => !isPattern(id))
  const callable = rowsOfModels.filter((model) => isCallable(model, vendors))
  const taken = new Set([...rowsOfModels.map(({ id }) => id), ...callable.flatMap(({ aliases }) => aliases)])
  const places = new Set(rowsOfModels.map(({ vendor, upstream }) => `${vendor}/${upstream}`))
  const ids = callable.map(({ id }) => id)
  const free = new Set(callable.filter((model) => !needsPrice(model)).map(({ id }) => id))
  for (const { id, kinds, vendor, upstream } of catalog.source.names?.() ?? []) {
    const place = `${vendor}/${upstream}`
    // Where a row has its bare id, it is named with its vendor, unless that row stands for it and is counted already.
    const name = !taken.has(id) ? id : !places.has(place) ? place : undefined
    if (name === undefined) continue
    ids.push(name)
    if (!needsPrice({ kinds })) free.add(name)
  }
  return { unpriced: ids.filter((id) => !free.has(id) && !hasPrice(id)), models: ids.length }
}

/** A table of endpoints, as far as prices are concerned. */
export interface ListedEndpoints {
  readonly all: readonly Pick<Endpoint, 'kind' | 'isFree'>[]
}

/** Tells whether a model must have a price: some endpoint that serves it is not free without one. */
export function pricedKinds({ all }: ListedEndpoints): (model: Pick<CatalogModel, 'kinds'>) => boolean {
  const kinds = new Set(all.filter(({ isFree = false }) => isFree === false).map(({ kind }) => kind))
  return (model) => model.kinds.some((kind) => kinds.has(kind))
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
