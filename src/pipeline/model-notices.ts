import { type CatalogModel, isPattern, newerFirst, starOf, versionOf } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import { isOfCalls, type Meter, type PriceRow } from '../catalog/prices/prices.ts'
import { GatewayError } from '../core/errors.ts'
import { nearestName } from '../core/known-members.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Principal } from '../stores/principal.ts'
import { isConfigured, type PipelineContext } from './pipeline-context.ts'

/** Caller and place of a request for a model. */
export interface ModelQuestion {
  readonly principal: Principal
  /** Endpoint of the request. If omitted, models of every kind are suggested. */
  readonly endpoint?: Pick<Endpoint, 'kind' | 'unknownModel'>
  /** Whether a vendor claims the id, but billing is on and it has no price. */
  readonly isUnpriced?: boolean
}

/**
 * Returns the error for an unknown model: `model_not_found`, or the endpoint's own. It suggests a similar model of the same
 * generation or a newer one. It never names a model that the caller's key may not use, whose vendor has no key, or that has no
 * price while billing is on.
 */
export function unknownModel(
  context: PipelineContext,
  id: string,
  { principal, endpoint, isUnpriced = false }: ModelQuestion,
): GatewayError {
  const generation = generationOf(id)
  const names = id.length > MAX_ID_COMPARED ? [] : callableNames(context, principal, endpoint?.kind)
  const nearest = nearestName(
    id,
    names.filter((name) => !(generationOf(name) < generation)),
  )
  const remedy = isUnpriced
    ? ' No catalog knows it, and billing is on: the operator can allow it with a price, or with unknownModels.'
    : ''
  const hint =
    nearest === undefined ? '. GET /v1/models lists the models.' : `; did you mean ${JSON.stringify(nearest)}?`
  return new GatewayError('model_not_found', {
    message: `There is no ${isUnpriced ? 'price for the ' : ''}model ${JSON.stringify(shown(id))}${hint}${remedy}`,
    param: 'model',
    status: endpoint?.unknownModel?.status,
    publicCode: endpoint?.unknownModel?.code,
  })
}

/** Returns the first number of a version, or `NaN` if the id has none. Models with a lower number are older. */
function generationOf(id: string): number {
  return versionOf(id)[0] ?? Number.NaN
}

/** The time of a comparison grows with the length of the id, which the caller chooses. */
const MAX_ID_COMPARED = 80

/** Returns ids and aliases, newest model first. An alias that is the id of another model stands for that model. */
function callableNames(context: PipelineContext, { scopes }: Principal, kind: string | undefined): string[] {
  const { catalog } = context
  const isUnpriced = isUnpricedBy(context)
  const isCallable = (model: CatalogModel): boolean =>
    (kind === undefined || model.kinds.some((one) => one === kind)) &&
    isInScope(scopes?.models, model) &&
    isConfigured(context, model) &&
    !isUnpriced(model)
  const models = catalog
    .list()
    .filter(isCallable)
    .sort((one, other) => newerFirst(one.id, other.id))
  const ids = models.map(({ id }) => id)
  const aliases = models.flatMap((model) => model.aliases.filter((alias) => catalog.find(alias) === model))
  return [...ids, ...aliases]
}

const MAX_ID_SHOWN = 200

/** Repeats a text of the caller, up to a maximum length. */
function shown(id: string): string {
  return id.length <= MAX_ID_SHOWN ? id : `${id.slice(0, MAX_ID_SHOWN)}...`
}

/** Number of models of the configured vendors without a price, which are rejected while billing is on. */
export interface UnpricedModels {
  readonly unpriced: number
  /** Number of all models of these vendors, without patterns. */
  readonly models: number
}

/** Model that is rejected while billing is on. */
export interface UnpricedModel {
  readonly id: string
  /** Missing price of a model with other prices, or `undefined` if it has none. */
  readonly lacks: Meter | undefined
}

/** Context for checking models and their prices. */
type JudgedContext = Pick<PipelineContext, 'catalog' | 'vendors' | 'prices'> & { readonly endpoints: ListedEndpoints }

/**
 * Counts the unpriced models without caching the vendors' models. Undefined if billing is off, or if the prices do not list their rows.
 */
export function unpricedModels(context: JudgedContext): UnpricedModels | undefined {
  const found = listUnpricedModels(context)
  return found === undefined ? undefined : { unpriced: found.unpriced.length, models: found.models }
}

/** Returns the models that {@link unpricedModels} counts. */
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
    // If a row uses its bare id, the model is named with its vendor, unless that row stands for the model and is counted already.
    const name = !taken.has(id) ? id : !places.has(place) ? place : undefined
    if (name !== undefined) count({ id: name, kinds })
  }
  return { unpriced, models }
}

/** Returns the name of a model for messages, with its missing price if it has others. */
export function nameOfUnpriced({ id, lacks }: UnpricedModel, quote = (text: string): string => text): string {
  return lacks === undefined ? quote(id) : `${quote(id)} (no ${lacks})`
}

/** Facts of an endpoint table that matter for prices. */
export interface ListedEndpoints {
  readonly all: readonly Pick<Endpoint, 'kind' | 'isFree'>[]
}

/** Returns a function that returns whether a model must have a price: some endpoint that serves it is not free without one. */
export function pricedKinds({ all }: ListedEndpoints): (model: Pick<CatalogModel, 'kinds'>) => boolean {
  const kinds = new Set(all.filter(({ isFree = false }) => isFree === false).map(({ kind }) => kind))
  return (model) => model.kinds.some((kind) => kinds.has(kind))
}

/**
 * Returns a function that checks models by a price list. It returns `undefined` for a model with a usable price, or with prices only
 * for batches or the cache. Other conditions of rows are ignored. A chat needs prices of its input and its output, or of the request.
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
    // Unknown models have the price of a related model, and no row names them.
    return fault !== undefined && (fault.lacks !== undefined || prices?.quote(model.id, {}) === undefined)
  }
}

const CHAT_METERS: readonly Meter[] = ['input_token', 'output_token']

/** Whether any vendor of a model has a key. */
export function isCallable({ vendor, routes = [] }: CatalogModel, vendors: PipelineContext['vendors']): boolean {
  return [vendor, ...routes.map((route) => route.vendor)].some((id) => (vendors.get(id)?.apiKeys.length ?? 0) > 0)
}
