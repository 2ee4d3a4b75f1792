import { kindFacts } from '../core/model-kind.ts'
import {
  type CatalogModel,
  defineModel,
  hasDotSegment,
  isPattern,
  type ModelDefinition,
  starOf,
  withoutDate,
} from './model.ts'
import { effortsOf, type VendorModel } from './vendor-models/vendor-model.ts'

/** Models by name. */
export interface ModelSource {
  /** Returns the model of a public id or alias, exactly as written; undefined if there is no such model. */
  find(idOrAlias: string): CatalogModel | undefined
  /** Returns every model once. */
  list(): readonly CatalogModel[]
  /** Returns false for a vendor that cannot be called. If omitted, every vendor can be called. */
  isConfigured?(vendorId: string): boolean
  /** Returns the names of the models of `list` without caching the models. If omitted, every model needs a row. */
  names?(): Iterable<Pick<CatalogModel, 'id' | 'kinds' | 'vendor' | 'upstream'>>
  /** Returns the facts of public catalogs about a vendor's own id, or `undefined` if they list none. May be omitted. */
  facts?(vendorId: string, upstream: string): VendorModel | undefined
  /** Whether a vendor uses such ids for its own models. If omitted, no vendor does. */
  claims?(vendorId: string, upstream: string): boolean
  /** Vendors that are configured or in the public catalog, and makers whose names begin ids there, such as `meta-llama`. */
  vendorNames?(): readonly string[]
  /** Returns the protocol of all chat models of a vendor, or `undefined` if the vendor has none or several. May be omitted. */
  chatProtocol?(vendorId: string): string | undefined
}

/** Models that callers may name. */
export interface Catalog extends ModelSource {
  /** Returns the models of rows, without patterns, in the order in which their ids were first defined, then the models of the vendors. */
  list(): readonly CatalogModel[]
  /** Models of rows, then patterns, the most specific first. */
  readonly rows: readonly CatalogModel[]
  /** Models that need no row. */
  readonly source: ModelSource
}

/** Maximum number of cached ids that match patterns. Callers may invent any number of them. */
const MAX_MATCHES = 1_000

const NO_SOURCE: ModelSource = { find: () => undefined, list: () => [] }

/**
 * Creates a catalog from rows. If several rows have the same id, the last one replaces the earlier ones as a whole, except that the
 * earlier `protocol` is kept if the row names the same vendor and no protocol. A row without a protocol gets the protocol that `source`
 * knows for the vendor's model. An id always wins over an alias, so a later row may use the alias of an earlier one as its id.
 *
 * A row whose id contains one `*` stands for every matching id without a row of its own; if several patterns match, the one with the most
 * other characters counts. A `*` in its `upstream` is replaced by the text that the star of the id matched. The models of `source` follow
 * the rows; a model of a row is also found as `vendor/upstream`. If the vendor of a row cannot be called, its alias gives way to a model
 * of `source` whose vendor can. If a row uses the id of a model of `source`, that model is found as `vendor/upstream`. A vendor's own id
 * followed by a date, such as `gpt-5-2025-08-07`, means the model without the date, unless a row or `source` knows the full id; its
 * vendor receives the date.
 * @throws TypeError if two models claim one alias, an alias is the id of an earlier row, a pattern has more than one star, or a fallback
 *   is unknown, is the model itself, or serves none of its kinds.
 */
export function createCatalog(
  rows: readonly (ModelDefinition | CatalogModel)[],
  source: ModelSource = NO_SOURCE,
): Catalog {
  const byId = new Map<string, CatalogModel>()
  const positions = new Map<string, number>()
  rows.forEach((row, position) => {
    const model = 'kinds' in row ? row : defineModel(row)
    byId.set(model.id, withKnownFacts(keepProtocol(model, byId.get(model.id)), source))
    if (!positions.has(model.id)) positions.set(model.id, position)
  })

  const patterns: CatalogModel[] = []
  const models: CatalogModel[] = []
  for (const model of byId.values()) (isPattern(model.id) ? patterns : models).push(model)
  for (const { id } of patterns) checkPattern(id)
  patterns.sort((one, other) => other.id.length - one.id.length)
  const byName = new Map(models.map((model) => [model.id, model]))
  for (const model of models) {
    for (const alias of model.aliases) addAlias(byName, positions, alias, model)
  }
  const byUpstream = new Map(models.toReversed().map((model) => [`${model.vendor}/${model.upstream}`, model]))
  const matches = new Map<string, CatalogModel>()
  const match = (name: string): CatalogModel | undefined => {
    const known = matches.get(name)
    if (known !== undefined) return known
    const matching = patterns.map((pattern) => matched(pattern, name)).find((model) => model !== undefined)
    if (matching === undefined) return undefined
    const found = withKnownFacts(matching, source)
    if (matches.size >= MAX_MATCHES) matches.clear()
    matches.set(name, found)
    return found
  }
  const canBeCalled = ({ vendor, routes }: CatalogModel): boolean =>
    routes !== undefined || source.isConfigured?.(vendor) !== false
  const datedForm = (name: string): CatalogModel | undefined => {
    const bare = withoutDate(name)
    const known = matches.get(name)
    if (known !== undefined || bare === name || name.length > MAX_MATCHED_LENGTH) return known
    const model = find(bare)
    if (model === undefined) return undefined
    const { vendor, upstream, isOpen, routes } = model
    const isVendorsId = bare === upstream || bare === `${vendor}/${upstream}`
    if (!isVendorsId || isOpen === true || routes !== undefined || source.claims?.(vendor, upstream) !== true)
      return undefined
    if (matches.size >= MAX_MATCHES) matches.clear()
    const dated = { ...model, upstream: upstream + name.slice(bare.length), aliases: [name], isOpen: true }
    matches.set(name, dated)
    return dated
  }
  const renamed = new Map<string, CatalogModel>()
  const offered = (name: string): CatalogModel | undefined => {
    const model = source.find(name)
    const isKnown = model !== undefined && model.family === undefined
    const dated = isKnown ? undefined : datedForm(name)
    if (dated !== undefined) return dated
    if (model === undefined || model.id === name || find(model.id) === model) return model
    const known = renamed.get(name) ?? { ...model, id: name, aliases: [] }
    renamed.set(name, known)
    return known
  }
  const find = (name: string): CatalogModel | undefined => {
    const row = byName.get(name)
    if (row !== undefined && row.id !== name && !canBeCalled(row)) {
      const model = source.find(name)
      if (model?.id === name && canBeCalled(model)) return model
    }
    return row ?? byUpstream.get(name) ?? (patterns.length === 0 ? undefined : match(name)) ?? offered(name)
  }
  for (const model of [...models, ...patterns]) checkFallbacks(find, model)
  /** Returns a model of the source under the id by which it is found, or nothing if a row replaces it. */
  const own = (model: CatalogModel): readonly CatalogModel[] => {
    if (find(model.id) === model) return [model]
    const full = find(`${model.vendor}/${model.upstream}`)
    return full === undefined || byName.get(full.id) === full ? [] : [full]
  }
  let listed: readonly CatalogModel[] | undefined
  return {
    find,
    list() {
      listed ??= [...models, ...source.list().flatMap(own)]
      return listed
    },
    rows: [...models, ...patterns],
    source,
  }
}

function checkPattern(id: string): void {
  if (id.indexOf('*') !== id.lastIndexOf('*'))
    throw new TypeError(`model ${JSON.stringify(id)}: a pattern may have one star only`)
}

const MAX_MATCHED_LENGTH = 200

function matched(pattern: CatalogModel, name: string): CatalogModel | undefined {
  const star = name.length <= MAX_MATCHED_LENGTH ? starOf(pattern.id, name) : undefined
  if (star === undefined || star === '' || hasDotSegment(star)) return undefined
  const { routes } = pattern
  const filled = (upstream: string): string => upstream.replace('*', () => star)
  return {
    ...pattern,
    id: name,
    upstream: filled(pattern.upstream),
    ...(routes === undefined
      ? {}
      : {
          routes: routes.map((route) =>
            route.upstream === undefined ? route : { ...route, upstream: filled(route.upstream) },
          ),
        }),
    aliases: [],
    displayName: name,
    isOpen: true,
  }
}

function keepProtocol(model: CatalogModel, replaced: CatalogModel | undefined): CatalogModel {
  if (replaced?.protocol === undefined || model.protocol !== undefined || replaced.vendor !== model.vendor) return model
  return { ...model, protocol: replaced.protocol }
}

/** Adds the efforts that the catalog lists for the model, and its vendor's protocol if the row has none. */
function withKnownFacts(model: CatalogModel, source: ModelSource): CatalogModel {
  const known = source.facts?.(model.vendor, model.upstream)
  const efforts = known && effortsOf(known)
  return withKnownProtocol(efforts === undefined ? model : { ...model, efforts }, known, source)
}

function withKnownProtocol(model: CatalogModel, known: VendorModel | undefined, source: ModelSource): CatalogModel {
  if (model.protocol !== undefined) return model
  const isKnown = known?.protocol !== undefined && known.kinds.some((kind) => model.kinds.includes(kind))
  const ofChat = model.kinds.includes('chat') ? source.chatProtocol?.(model.vendor) : undefined
  const protocol = isKnown ? known.protocol : ofChat
  return protocol === undefined ? model : { ...model, protocol }
}

function addAlias(
  byName: Map<string, CatalogModel>,
  positions: ReadonlyMap<string, number>,
  alias: string,
  model: CatalogModel,
): void {
  const other = byName.get(alias)
  if (other === model) return
  if (other !== undefined) {
    const isLaterId = other.id === alias && positions.get(alias)! > positions.get(model.id)!
    if (isLaterId) return
    const claim = other.id === alias ? 'the id of another model' : `also an alias of ${JSON.stringify(other.id)}`
    throw new TypeError(`model ${JSON.stringify(model.id)}: the alias ${JSON.stringify(alias)} is ${claim}`)
  }
  byName.set(alias, model)
}

function checkFallbacks(find: ModelSource['find'], model: CatalogModel): void {
  for (const id of model.fallbacks) {
    const fallback = find(id)
    const fault = fallbackFault(fallback, model)
    if (fault !== undefined) {
      throw new TypeError(`model ${JSON.stringify(model.id)}: the fallback ${JSON.stringify(id)} ${fault}`)
    }
  }
}

function fallbackFault(fallback: CatalogModel | undefined, model: CatalogModel): string | undefined {
  if (fallback === undefined) return 'is not in the catalog'
  if (fallback === model) return 'is the model itself'
  const shared = fallback.kinds.filter((kind) => model.kinds.includes(kind))
  if (shared.length === 0) return 'serves none of its kinds'
  const kind = shared.find((one) => kindFacts(one)?.isIncomparable)
  if (kind === undefined || isSameUpstream(fallback, model)) return undefined
  return `is another ${kind} model, whose results cannot be compared; list other vendors of the model in routes`
}

/** Whether two rows are the same model at two vendors. Hosts write its id with and without its maker. */
function isSameUpstream(one: CatalogModel, other: CatalogModel): boolean {
  const names = namesOf(other)
  return namesOf(one).every((name) => names.includes(name))
}

function namesOf({ upstream, routes = [] }: CatalogModel): readonly string[] {
  const ids = routes.length === 0 ? [upstream] : routes.map((route) => route.upstream ?? upstream)
  return ids.map((id) => id.slice(id.lastIndexOf('/') + 1).toLowerCase())
}

/** Time before its retirement from which calls to a model announce it, in milliseconds. */
const NOTICE_MS = 60 * 24 * 60 * 60_000

/**
 * Returns the day on which a model retires, such as `2026-12-31`: the day of its row, or the last day of its routes according to
 * the catalog. Returns `undefined` if there is none, or if one of the routes does not retire.
 */
export function retirementOf(
  {
    vendor,
    upstream,
    routes = [{ vendor }],
    retires,
  }: Pick<CatalogModel, 'vendor' | 'upstream' | 'routes' | 'retires'>,
  source: Pick<ModelSource, 'facts'>,
): string | undefined {
  if (retires !== undefined) return retires
  const days = routes.map((route) => source.facts?.(route.vendor, route.upstream ?? upstream)?.retires)
  const last = Math.max(...days.map((seconds) => seconds ?? Number.POSITIVE_INFINITY))
  return Number.isFinite(last) ? new Date(last * 1000).toISOString().slice(0, 10) : undefined
}

/** Returns the time from which calls announce a retirement, in Unix milliseconds: 60 days before a day of {@link retirementOf}. */
export function noticeStartMs(day: string): number {
  return Date.parse(day) - NOTICE_MS
}
