import { writeFileSync } from 'node:fs'
import { defineModel, type ModelDefinition } from '../catalog/model.ts'
import { retirementOf } from '../catalog/model-retirement.ts'
import { BUILT_IN_MODELS, MODELS_DEV_PROVIDERS } from '../catalog/models/built-in-models.ts'
import { parseModelDefinitions } from '../catalog/parse-model-definitions.ts'
import { checkMarkup, listPriceRows } from '../catalog/prices/list-prices.ts'
import { checkPriceFile, type PriceFile, type PriceRow } from '../catalog/prices/price-file.ts'
import { objectOf } from '../catalog/prices/price-import.ts'
import { THINKING_FIELD } from '../catalog/prices/prices.ts'
import { modelsFromModelsDev } from '../catalog/vendor-models/from-models-dev.ts'
import { BUILT_IN_SNAPSHOT } from '../catalog/vendor-models/snapshot.ts'
import { definitionOf, type ModelVendor } from '../catalog/vendor-models/vendor-models.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { modelVendor } from '../gateway/model-vendor.ts'
import { updateSnapshot } from './catalog-snapshot.ts'
import type { ActionDefinition, CommandArguments, GroupDefinition } from './command.ts'
import { configuredVendors } from './configured-vendors.ts'
import { isSuspicious, priceKey } from './price-moves.ts'
import { naming, readCatalog, readIfThere } from './public-catalog.ts'
import { configuredCatalog } from './serve-settings.ts'
import { SettingError } from './setting-values.ts'
import { printRows, type Terminal } from './terminal.ts'

const PUBLIC_CATALOG = 'https://models.dev/api.json'
const MODELS_FILE = 'models.json'
const PRICES_FILE = 'prices.json'

/** Ids that a row can have. A star would make the id a pattern. */
const ROW_ID = /^[\x21-\x29\x2b-\x7e]{1,160}$/

/** Command `signalbox models`: lists id, kinds, vendor, the vendor's own id, and the day on which the vendor ends the model. */
export const modelsCommand: ActionDefinition = {
  summary: 'list the models of the built-in catalog',
  options: {
    all: { text: 'also every model of the vendors that have a key' },
    json: { text: 'print one line of JSON instead of text' },
  },
  run: listModels,
}

/** Command `signalbox catalog update`. */
export const catalogCommand: GroupDefinition = {
  summary: 'load models and prices from a newer public catalog',
  actions: {
    update: {
      summary: 'write newer models and prices of the configured vendors; and show the changes',
      options: {
        from: { value: 'FILE|URL', text: `catalog to read (default: ${PUBLIC_CATALOG})` },
        models: { value: 'FILE', text: `file for models (default: ${MODELS_FILE})` },
        prices: { value: 'FILE', text: `file for prices (default: ${PRICES_FILE})` },
        markup: { value: 'FACTOR', text: 'factor of the list prices (default: 1)' },
        snapshot: {
          value: 'FILE',
          text: 'write a snapshot of all vendors to this file instead, for SIGNALBOX_CATALOG',
        },
        accept: { text: 'also accept prices that change by more than three times' },
      },
      run: update,
    },
  },
}

function listModels(given: CommandArguments, terminal: Terminal): void {
  const catalog = given.flag('all') ? configuredCatalog(terminal.environment, terminal.documents) : undefined
  const models = catalog?.list() ?? BUILT_IN_MODELS.map(defineModel)
  const source = catalog?.source ?? {
    facts: (vendor: string, upstream: string) => BUILT_IN_SNAPSHOT.of(vendor).get(upstream),
  }
  const data = models.map((model) => {
    const { id, kinds, vendor, upstream } = model
    return { id, kinds, vendor, upstream, retires: retirementOf(model, source) ?? null }
  })
  if (given.flag('json')) {
    terminal.print(JSON.stringify({ object: 'list', data }))
    return
  }
  const rows = data.map(({ id, kinds, vendor, upstream, retires }) => [
    ...[id, kinds.join('+'), vendor, upstream],
    retires ?? '',
  ])
  printRows(terminal, [['model', 'kind', 'vendor', 'id at the vendor', 'retires'], ...rows])
}

/**
 * Writes the models of a newer public catalog as rows, and their list prices as a price file, for the vendors that have a key, and
 * prints the changes. A model that left the catalog keeps its row and its price. A price that moves by more than three times, or to
 * 0, keeps its old amount unless `--accept` is given.
 * @throws SettingError if the catalog cannot be read, or a file has the wrong content.
 */
async function update(given: CommandArguments, terminal: Terminal): Promise<void> {
  const { print, environment, documents } = terminal
  const source = given.option('from') ?? PUBLIC_CATALOG
  const snapshotPath = given.option('snapshot')
  if (snapshotPath !== undefined)
    return updateSnapshot(snapshotPath, source, await readCatalog(source, environment), given.flag('accept'), print)
  const markup = naming('--markup', () => checkMarkup(given.option('markup') ?? '1'))
  const [modelsPath, pricesPath] = [given.option('models') ?? MODELS_FILE, given.option('prices') ?? PRICES_FILE]
  const configured = configuredVendors(environment, undefined, new Set(), documents).filter(
    ({ state }) => state === 'configured',
  )
  if (configured.length === 0)
    throw new SettingError('catalog update: no vendor has a key; set one, such as OPENAI_API_KEY')
  const vendors = configured.map(({ vendor }) => modelVendor(vendor, ENDPOINTS))
  const catalog = await readCatalog(source, environment)
  const fresh = naming(source, () => freshRows(objectOf('the catalog', catalog), vendors, markup))
  if (fresh.models.length + fresh.prices.length === 0)
    throw new SettingError(
      `${source}: has no models of the configured vendors (${vendors.map(({ id }) => id).join(', ')})`,
    )

  // A markup with many digits makes amounts that a price file cannot hold.
  naming('--markup', () => checkPriceFile({ currency: 'USD', prices: fresh.prices }))

  const oldModels = readIfThere(modelsPath, (json) => parseModelDefinitions(json)) ?? []
  const oldPrices = readIfThere(pricesPath, (json) => checkPriceFile(json))?.prices ?? []
  // A new model may have this name, and two rows cannot share it.
  const freshIds = new Set(fresh.models.map(({ id }) => id))
  const kept = oldModels.map((row) => withoutAliases(row, freshIds))
  const ownMembers = new Map(kept.map((row) => [row.id, row]))
  const models = merged(
    kept,
    fresh.models.map((row) => ({ ...ownMembers.get(row.id), ...row })),
    (row) => row.id,
  )
  const prices = merged(oldPrices, fresh.prices, priceKey)
  const refused = given.flag('accept') ? [] : prices.changed.filter(([before, after]) => isSuspicious(before, after))
  const back = new Map(refused.map(([before]) => [priceKey(before), before]))
  const file: PriceFile = {
    currency: 'USD',
    comment: `list prices times ${markup}, from ${source}`,
    prices: prices.all.map((row) => back.get(priceKey(row)) ?? row),
  }
  writeFileSync(modelsPath, `${JSON.stringify(models.all, null, 2)}\n`)
  writeFileSync(pricesPath, `${JSON.stringify(file, null, 2)}\n`)

  for (const row of models.added) print(`+ ${row.id}`)
  for (const { id, aliases = [] } of oldModels)
    for (const alias of aliases)
      if (freshIds.has(alias)) print(`! ${alias} is a model of its own now, and no alias of ${id} any more`)
  for (const row of models.gone) print(`- ${row.id} is not in the catalog any more; its row and its price stay`)
  for (const [before, after] of models.changed) print(`~ ${after.id}: ${changes(before, after).join(', ')}`)
  for (const id of fresh.unusable) print(`! ${JSON.stringify(id)} cannot be the id of a row; omitted`)
  for (const [before, after] of prices.changed) {
    const note = back.has(priceKey(before)) ? ', not taken: give --accept if it is right' : ''
    print(`~ ${named(before)}: ${before.amount} -> ${after.amount}${note}`)
  }
  const [pricedBefore, pricedNow] = [oldPrices, fresh.prices].map((rows) => new Set(rows.map(({ model }) => model)))
  for (const row of prices.added) if (pricedBefore?.has(row.model)) print(`+ ${named(row)}: ${row.amount}`)
  for (const row of prices.gone)
    if (pricedNow?.has(row.model) && isListed(row)) print(`- ${named(row)} is not in the catalog any more; it stays`)
  const taken = prices.changed.length - refused.length
  print(`${modelsPath}: ${models.all.length} models, ${models.added.length} new, ${models.gone.length} gone`)
  print(`${pricesPath}: ${file.prices.length} prices, ${taken} changed, ${refused.length} not taken`)
}

interface FreshRows {
  readonly models: readonly ModelDefinition[]
  readonly prices: readonly PriceRow[]
  readonly unusable: readonly string[]
}

function freshRows(
  providers: Readonly<Record<string, unknown>>,
  vendors: readonly ModelVendor[],
  markup: string,
): FreshRows {
  const taken = new Set(BUILT_IN_MODELS.flatMap(({ id, aliases = [] }) => [id, ...aliases]))
  const models: ModelDefinition[] = []
  const prices: PriceRow[] = []
  const unusable: string[] = []
  for (const vendor of vendors) {
    const { catalogId = vendor.id } = vendor
    const ids = MODELS_DEV_PROVIDERS[catalogId] ?? [catalogId]
    const listed = ids.flatMap((id) => (providers[id] === undefined ? [] : modelsFromModelsDev(id, providers[id])))
    for (const known of listed) {
      // Several vendors may share a list. Each uses its own part, and the price applies to the first id.
      const [priced] = vendor.catalogIds === undefined ? [known.id] : vendor.catalogIds(known.id)
      const row = priced === undefined ? undefined : definitionOf(known, vendor)
      if (row === undefined) continue
      if (!ROW_ID.test(known.id)) {
        unusable.push(known.id)
        continue
      }
      // A row of the built-in catalog has more facts, so the price uses its public id.
      const builtIn = BUILT_IN_MODELS.find((one) => one.vendor === vendor.id && one.upstream === known.id)
      const id = builtIn?.id ?? (taken.has(known.id) ? `${vendor.id}/${known.id}` : known.id)
      taken.add(id)
      const { aliases: _full, ...facts } = row
      if (builtIn === undefined) models.push({ ...facts, id, upstream: known.id })
      if (priced === known.id) prices.push(...listPriceRows({ id, kinds: [row.kind].flat() }, known, markup))
    }
  }
  return { models, prices, unusable }
}

interface Merged<Row> {
  readonly all: readonly Row[]
  readonly added: readonly Row[]
  readonly gone: readonly Row[]
  readonly changed: readonly (readonly [before: Row, after: Row])[]
}

/** Returns the new rows, and the old ones that they do not replace. */
function merged<Row>(old: readonly Row[], fresh: readonly Row[], keyOf: (row: Row) => string): Merged<Row> {
  const before = new Map(old.map((row) => [keyOf(row), row]))
  const after = new Set(fresh.map(keyOf))
  const gone = old.filter((row) => !after.has(keyOf(row)))
  const changed = fresh.flatMap((row) => {
    const earlier = before.get(keyOf(row))
    return earlier === undefined || JSON.stringify(earlier) === JSON.stringify(row) ? [] : [[earlier, row] as const]
  })
  return { all: [...fresh, ...gone], added: fresh.filter((row) => !before.has(keyOf(row))), gone, changed }
}

/** Returns the members that differ, with their values before and after. */
function changes(before: ModelDefinition, after: ModelDefinition): string[] {
  return Object.entries(after).flatMap(([name, value]) => {
    const [old, fresh] = [before[name as keyof ModelDefinition], value].map((one) => JSON.stringify(one))
    return old === fresh ? [] : [`${name} ${old ?? 'none'} -> ${fresh}`]
  })
}

function named({ model, meter, when }: PriceRow): string {
  const above = when?.inputTokensAbove
  const mode = when?.[THINKING_FIELD] === undefined ? '' : ' in thinking mode'
  return `${model} ${meter}${above === undefined ? '' : ` above ${above} tokens`}${mode}`
}

/** Whether the row may come from a catalog. Rows for other meters or with other conditions belong to the operator. */
function isListed({ meter, when = {} }: PriceRow): boolean {
  return (
    meter.endsWith('_token') &&
    Object.keys(when).every((name) => name === 'inputTokensAbove' || name === THINKING_FIELD)
  )
}

function withoutAliases(row: ModelDefinition, taken: ReadonlySet<string>): ModelDefinition {
  if (row.aliases?.some((alias) => taken.has(alias)) !== true) return row
  return { ...row, aliases: row.aliases.filter((alias) => !taken.has(alias)) }
}
