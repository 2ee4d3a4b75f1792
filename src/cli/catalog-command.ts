import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { retirementOf } from '../catalog/catalog.ts'
import { defineModel, type ModelDefinition } from '../catalog/model.ts'
import { BUILT_IN_MODELS, MODELS_DEV_PROVIDERS } from '../catalog/models/built-in-models.ts'
import { parseModelDefinitions } from '../catalog/parse-model-definitions.ts'
import { checkMarkup, listPriceRows } from '../catalog/prices/list-prices.ts'
import { checkPriceFile, type PriceFile, type PriceRow } from '../catalog/prices/price-file.ts'
import { objectOf } from '../catalog/prices/price-import.ts'
import { THINKING_FIELD } from '../catalog/prices/prices.ts'
import { modelsFromModelsDev } from '../catalog/vendor-models/from-models-dev.ts'
import { BUILT_IN_SNAPSHOT, parseSnapshot, Snapshot, type SnapshotFile } from '../catalog/vendor-models/snapshot.ts'
import { readVendorModel, type VendorModel, writeVendorModel } from '../catalog/vendor-models/vendor-model.ts'
import { definitionOf, type ModelVendor } from '../catalog/vendor-models/vendor-models.ts'
import { systemClock } from '../core/clock.ts'
import { textOfError } from '../core/errors.ts'
import { type Decimal, parseDecimal } from '../core/money.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { modelVendor } from '../gateway/catalog-in-force.ts'
import { fetchText } from '../gateway/catalog-updates.ts'
import { MAX_ANSWER_BYTES } from '../pipeline/vendor-access.ts'
import { egressRoute } from '../transport/egress.ts'
import { undiciTransport } from '../transport/undici.ts'
import type { ActionDefinition, CommandArguments, GroupDefinition } from './command.ts'
import { configuredVendors } from './configured-vendors.ts'
import { environmentProxy } from './environment-proxy.ts'
import { configuredCatalog } from './serve-settings.ts'
import { parsedJson, SettingError } from './setting-values.ts'
import { type Environment, printRows, type Terminal } from './terminal.ts'

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

function freshRows(providers: Readonly<Record<string, unknown>>, vendors: readonly ModelVendor[], markup: string) {
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

/** Returns the new rows, and the old ones that they do not replace. */
function merged<Row>(old: readonly Row[], fresh: readonly Row[], keyOf: (row: Row) => string) {
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

/**
 * Writes a snapshot of the models and list prices of all vendors from a public catalog or from another snapshot, and prints the
 * changes. A running gateway never reads half of the file. A model that left the public catalog keeps its line. A price that moves by
 * more than three times keeps its old amount unless `accept` is set.
 * @throws SettingError for a catalog that is malformed, knows none of the vendors, or is older than the snapshot in use.
 */
function updateSnapshot(
  path: string,
  source: string,
  content: unknown,
  accept: boolean,
  print: (line: string) => void,
): void {
  const nowMs = systemClock.now()
  const own = readIfThere(path, (json) => new Snapshot(parseSnapshot(json, nowMs)))
  const before = own !== undefined && own.date >= BUILT_IN_SNAPSHOT.date ? own : BUILT_IN_SNAPSHOT
  const fresh = naming(source, () => {
    const given = objectOf('the catalog', content)
    return 'date' in given ? parseSnapshot(given, nowMs) : fromModelsDev(given, nowMs)
  })
  if (fresh.date < before.date)
    throw new SettingError(`${source}: is of ${fresh.date}, older than the snapshot in use, of ${before.date}`)
  const models: Record<string, string[]> = {}
  let [added, kept] = [0, 0]
  for (const vendor of new Set([...before.vendors(), ...Object.keys(fresh.models)])) {
    const lines = new Map(before.lines(vendor).map((line) => [readVendorModel(line).id, line]))
    for (const model of (fresh.models[vendor] ?? []).map(readVendorModel)) {
      const old = before.of(vendor).get(model.id)
      const isRefused = old !== undefined && !accept && movesFar(old, model)
      if (old === undefined) print(`+ ${vendor}/${model.id}`)
      if (isRefused)
        print(
          `! ${vendor}/${model.id} keeps its old price: the new one moves by more than three times; give --accept if it is right`,
        )
      added += Number(old === undefined)
      kept += Number(isRefused)
      const prices = isRefused ? { price: old.price, tiers: old.tiers } : {}
      lines.set(model.id, writeVendorModel({ ...old, ...model, ...prices } as VendorModel))
    }
    models[vendor] = [...lines.values()].sort()
  }
  const file = parseSnapshot({ date: fresh.date, models }, nowMs)
  writeFileSync(`${path}.new`, `${JSON.stringify({ source, ...file }, null, 1)}\n`)
  renameSync(`${path}.new`, path)
  print(`${path}: models of ${file.date}, ${added} new, ${kept} with the old price`)
}

function fromModelsDev(providers: Readonly<Record<string, unknown>>, nowMs: number): SnapshotFile {
  const models: Record<string, string[]> = {}
  for (const vendor of BUILT_IN_SNAPSHOT.vendors()) {
    const [provider = vendor] = MODELS_DEV_PROVIDERS[vendor] ?? []
    const listed = providers[provider]
    if (listed !== undefined) models[vendor] = modelsFromModelsDev(provider, listed).map(writeVendorModel)
  }
  if (Object.keys(models).length === 0) throw new TypeError('has no models of a known vendor')
  return parseSnapshot({ date: new Date(nowMs).toISOString().slice(0, 10), models }, nowMs)
}

function movesFar(old: VendorModel, model: VendorModel): boolean {
  const [before = [], after = []] = [old, model].map((one) => listPriceRows(model, one, '1'))
  const rows = new Map(before.map((row) => [priceKey(row), row]))
  return after.some((row) => {
    const earlier = rows.get(priceKey(row))
    return earlier !== undefined && isSuspicious(earlier, row)
  })
}

/** A price that moves by more than this factor, either way, waits for `--accept`: such a move is often a mistake of the list. */
const LARGEST_MOVE = 3n

/** Returns the parts that rows for the same calls have in common. */
function priceKey({ model, meter, when }: PriceRow): string {
  return JSON.stringify([model, meter, when ?? null])
}

/** Whether a price moved so far that the list may be wrong. */
function isSuspicious(before: PriceRow, after: PriceRow): boolean {
  const [old, fresh] = [perUnit(before), perUnit(after)]
  const [left, right] = [old.numerator * fresh.denominator, fresh.numerator * old.denominator]
  return left === 0n || right === 0n || left > right * LARGEST_MOVE || right > left * LARGEST_MOVE
}

function perUnit({ amount, per = 1 }: PriceRow): Decimal {
  const { numerator, denominator } = parseDecimal(amount)
  return { numerator, denominator: denominator * BigInt(per) }
}

const FETCH_TIMEOUT_MS = 30_000

/**
 * Reads a public catalog from a path or URL.
 * @throws SettingError that names the source.
 */
async function readCatalog(source: string, environment: Environment): Promise<unknown> {
  const isAddress = /^https?:\/\//.test(source)
  const proxy = isAddress && URL.canParse(source) ? environmentProxy(source, environment) : undefined
  let text: string
  try {
    text = isAddress ? await fetchDirectly(source, proxy) : readFileSync(source, 'utf8')
  } catch (error) {
    throw new SettingError(`--from: ${source} cannot be read (${textOfError(firstCause(error))})`)
  }
  return parsedJson(text, `${source} is not JSON`)
}

/** Returns the innermost cause, because "fetch failed" has no reason. */
function firstCause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? firstCause(error.cause) : error
}

async function fetchDirectly(address: string, proxy: string | undefined): Promise<string> {
  if (proxy !== undefined) return textThrough(proxy, address)
  const answer = await fetch(address, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) })
  if (!answer.ok) throw new Error(`status ${answer.status}`)
  return answer.text()
}

/** Uses the transport of calls, because `fetch` does not support proxies. */
async function textThrough(proxy: string, address: string): Promise<string> {
  const transport = undiciTransport()
  try {
    const egress = egressRoute({ proxy })
    return await fetchText(address, { transport, clock: systemClock, egress, maxBytes: MAX_ANSWER_BYTES })
  } finally {
    await transport.close()
  }
}

/**
 * Reads a JSON file, or returns `undefined` if there is none.
 * @throws SettingError that names the file.
 */
function readIfThere<Value>(path: string, check: (json: unknown) => Value): Value | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new SettingError(`${path} cannot be read (${(error as Error).message})`)
  }
  return naming(path, () => check(parsedJson(text, `${path} is not JSON`)))
}

/** Adds a name to the errors of shared code. */
function naming<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof TypeError) throw new SettingError(`${name}: ${error.message}`)
    throw error
  }
}
