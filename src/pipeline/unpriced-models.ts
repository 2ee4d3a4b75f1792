import { isPattern, starOf } from '../catalog/id-pattern.ts'
import type { CatalogModel } from '../catalog/model.ts'
import { isOfCalls, type Meter, type PriceRow } from '../catalog/prices/prices.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** How many models of the configured vendors have no price, and are refused while billing is on. */
export interface UnpricedModels {
  readonly unpriced: number
  /** All models of these vendors, patterns not counted. */
  readonly models: number
}

/** A model that is refused while billing is on. */
export interface UnpricedModel {
  readonly id: string
  /** The price that it lacks beside those it has; undefined: it has none. */
  readonly lacks: Meter | undefined
}

/** What models and their prices are judged by. */
type JudgedContext = Pick<PipelineContext, 'catalog' | 'vendors' | 'prices'> & { readonly endpoints: ListedEndpoints }

/**
 * Counts them; of the vendors' models nothing is kept. Undefined when billing is off, and for prices that do not list their rows.
 */
export function unpricedModels(context: JudgedContext): UnpricedModels | undefined {
  const found = listUnpricedModels(context)
  return found === undefined ? undefined : { unpriced: found.unpriced.length, models: found.models }
}

/** The models that {@link unpricedModels} counts. */
export function listUnpricedModels({
  catalog,
  vendors,
  prices,
  endpoints,
}: JudgedContext): { readonly unpriced: readonly UnpricedModel[]; readonly models: number } | undefined {
  const rows = prices?.rows?.()
  if (rows === undefined) return undefined
  const judge = unpricedBy(rows)
  const needsPrice = pricedKinds(endpoints)

  const rowsOfModels = catalog.rows.filter(({ id }) => !isPattern(id))
  const callable = rowsOfModels.filter((model) => isCallable(model, vendors))
  const taken = new Set([...rowsOfModels.map(({ id }) => id), ...callable.flatMap(({ aliases }) => aliases)])
  const places = new Set(rowsOfModels.map(({ vendor, upstream }) => `${vendor}/${upstream}`))
  const unpriced: UnpricedModel[] = []
  let models = 0
  const count = (model: Pick<CatalogModel, 'id' | 'kinds'>): void => {
    models++
    const fault = needsPrice(model) ? judge(model) : undefined
    if (fault !== undefined) unpriced.push(fault)
  }
  callable.forEach(count)
  for (const { id, kinds, vendor, upstream } of catalog.source.names?.() ?? []) {
    const place = `${vendor}/${upstream}`
    // Where a row has its bare id, it is named with its vendor, unless that row stands for it and is counted already.
    const name = !taken.has(id) ? id : !places.has(place) ? place : undefined
    if (name !== undefined) count({ id: name, kinds })
  }
  return { unpriced, models }
}

/** A model as messages name it: with the price that it lacks beside others. */
export function nameOfUnpriced({ id, lacks }: UnpricedModel, quote = (text: string): string => text): string {
  return lacks === undefined ? quote(id) : `${quote(id)} (no ${lacks})`
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

/**
 * Judges models by a price list: undefined where it has a price by which calls may be charged, or is sold in batches or from the cache
 * alone. Other conditions of rows are not judged. A chat needs prices of its input and of its output, or of the request.
 */
export function unpricedBy(
  rows: readonly PriceRow[],
): (model: Pick<CatalogModel, 'id' | 'kinds'>) => UnpricedModel | undefined {
  const meters = new Map<string, Set<Meter>>()
  for (const row of rows) {
    const known = meters.get(row.model) ?? new Set()
    meters.set(row.model, isOfCalls(row) ? known.add(row.meter) : known)
  }
  const patterns = [...meters.keys()].filter(isPattern).sort((one, other) => other.length - one.length)
  return ({ id, kinds }) => {
    const priced = meters.get(id) ?? meters.get(patterns.find((name) => starOf(name, id) !== undefined) ?? '')
    if (priced === undefined) return { id, lacks: undefined }
    const isSoldOtherwise = priced.size === 0 || priced.has('request') || kinds.some((kind) => kind !== 'chat')
    if (isSoldOtherwise) return undefined
    const lacks = CHAT_METERS.find((meter) => !priced.has(meter))
    return lacks === undefined ? undefined : { id, lacks }
  }
}

/**
 * Returns a function that says whether calls of a model are refused because it has no price. No model is judged if billing is off, or
 * if the prices do not list their rows.
 */
export function isUnpricedBy({
  prices,
  endpoints,
}: Pick<JudgedContext, 'prices' | 'endpoints'>): (model: Pick<CatalogModel, 'id' | 'kinds'>) => boolean {
  const rows = prices?.rows?.()
  if (rows === undefined) return () => false
  const judge = unpricedBy(rows)
  const needsPrice = pricedKinds(endpoints)
  return (model) => {
    const fault = needsPrice(model) ? judge(model) : undefined
    // Unknown models cost what a relative of theirs does, of which no row names them.
    return fault !== undefined && (fault.lacks !== undefined || prices?.quote(model.id, {}) === undefined)
  }
}

const CHAT_METERS: readonly Meter[] = ['input_token', 'output_token']

/** Has any vendor of a model a key? */
export function isCallable({ vendor, routes = [] }: CatalogModel, vendors: PipelineContext['vendors']): boolean {
  return [vendor, ...routes.map((route) => route.vendor)].some((id) => (vendors.get(id)?.apiKeys.length ?? 0) > 0)
}
