import { type CatalogModel, defineModel, type ModelDefinition } from './model.ts'

/** The models that callers may name. */
export interface Catalog {
  /** By public id or alias, exactly as written; undefined when there is no such model. */
  find(idOrAlias: string): CatalogModel | undefined
  /** Every model once, in the order in which their ids were first defined. */
  list(): readonly CatalogModel[]
}

/**
 * Builds a catalog from rows; of rows with the same id the last one counts. Such a row replaces the earlier one as a whole,
 * except that the earlier `protocol` is kept when the row names the same vendor and no protocol. An id always wins over an
 * alias, so a later row may take over a name that was an alias of an earlier one.
 * @throws TypeError when two models claim one alias, an alias is the id of an earlier row, or a fallback is unknown, is
 *   the model itself, or serves none of its kinds.
 */
export function createCatalog(rows: readonly (ModelDefinition | CatalogModel)[]): Catalog {
  const byId = new Map<string, CatalogModel>()
  const positions = new Map<string, number>()
  rows.forEach((row, position) => {
    const model = 'kinds' in row ? row : defineModel(row)
    byId.set(model.id, keepProtocol(model, byId.get(model.id)))
    if (!positions.has(model.id)) positions.set(model.id, position)
  })

  const models = [...byId.values()]
  const byName = new Map(byId)
  for (const model of models) {
    for (const alias of model.aliases) addAlias(byName, positions, alias, model)
  }
  for (const model of models) checkFallbacks(byName, model)
  return { find: (idOrAlias) => byName.get(idOrAlias), list: () => models }
}

function keepProtocol(model: CatalogModel, replaced: CatalogModel | undefined): CatalogModel {
  if (replaced?.protocol === undefined || model.protocol !== undefined || replaced.vendor !== model.vendor) return model
  return { ...model, protocol: replaced.protocol }
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

function checkFallbacks(byName: ReadonlyMap<string, CatalogModel>, model: CatalogModel): void {
  for (const id of model.fallbacks) {
    const fallback = byName.get(id)
    const fault = fallbackFault(fallback, model)
    if (fault !== undefined) {
      throw new TypeError(`model ${JSON.stringify(model.id)}: the fallback ${JSON.stringify(id)} ${fault}`)
    }
  }
}

function fallbackFault(fallback: CatalogModel | undefined, model: CatalogModel): string | undefined {
  if (fallback === undefined) return 'is not in the catalog'
  if (fallback === model) return 'is the model itself'
  return fallback.kinds.some((kind) => model.kinds.includes(kind)) ? undefined : 'serves none of its kinds'
}
