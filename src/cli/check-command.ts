import { silentLogger } from '../core/logger.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import type { CatalogState } from '../gateway/catalog-options.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { listUnpricedModels, nameOfUnpriced } from '../pipeline/unpriced-models.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { undiciTransport } from '../transport/undici.ts'
import { type Check, printChecks, variablesOf } from './check-report.ts'
import { checkRedis, checkStore } from './check-stores.ts'
import { checkVendor } from './check-vendor.ts'
import type { ActionDefinition, CommandArguments, OptionDefinition } from './command.ts'
import { CONFIG_OPTION, type Configuration, readConfiguration } from './configuration.ts'
import type { ConfiguredVendor } from './configured-clouds.ts'
import { configuredVendors } from './configured-vendors.ts'
import { optionsWithExamples, withExamples } from './example-run.ts'
import type { FurtherOptions } from './further-options.ts'
import { memoryInstead } from './memory-instead.ts'
import { misspeltVariables } from './misspelt-variables.ts'
import { DEFAULT_STORE, ENGINE_COMMAND, loadOptionalPackage } from './open-store.ts'
import { consoleKey } from './serve-console.ts'
import { readServeFlags, SERVE_FLAGS } from './serve-flags.ts'
import { readServeSettings, type ServeSettings } from './serve-settings.ts'
import { namedVendors, servedGateway } from './served-gateway.ts'
import { SettingError } from './setting-values.ts'
import { SETTING_OPTIONS, secretLines } from './settings.ts'
import type { Terminal } from './terminal.ts'

const OPTIONS: Readonly<Record<string, OptionDefinition>> = {
  json: { text: 'print one line of JSON instead of text' },
  ...SERVE_FLAGS,
  ...CONFIG_OPTION,
  ...SETTING_OPTIONS,
}

/** Placeholder origin: the command starts and calls no stand-ins. */
const STAND_IN_ORIGIN = 'http://127.0.0.1'

/** Maximum number of unpriced models that are printed; JSON contains all of them. */
const SHOWN_MODELS = 8

/** Command `signalbox check`. */
export const checkCommand: ActionDefinition = {
  summary: 'check the configuration of serve: settings, store, Redis, every vendor’s key, prices',
  options: OPTIONS,
  after: `Exits with status 0 if serve can start and no vendor rejects its key, else with status 1. No call is charged.\n\n${secretLines()}`,
  run: check,
}

async function check(given: CommandArguments, terminal: Terminal): Promise<void> {
  const asJson = given.flag('json')
  const checks: Check[] = []
  await allChecks(given, terminal, checks)
  printChecks(checks, terminal, asJson)
  if (checks.some(({ status }) => status === 'failed')) terminal.fail?.()
}

async function allChecks(given: CommandArguments, terminal: Terminal, checks: Check[]): Promise<void> {
  const configuration = await settle(checks, undefined, () =>
    readConfiguration(given, terminal.environment, (name) => Object.hasOwn(OPTIONS, name)),
  )
  if (configuration === undefined) return
  const { environment, documents, file } = configuration
  for (const message of misspeltVariables(environment))
    checks.push({ name: 'configuration', status: 'warning', message })
  const flags = readServeFlags(given, configuration)
  const { useStandIns } = flags
  const settings = await settle(checks, configuration, () =>
    withExamples(readServeSettings(environment, documents), flags),
  )
  if (settings === undefined) return
  const vendors = await settle(checks, configuration, () =>
    configuredVendors(environment, useStandIns ? STAND_IN_ORIGIN : undefined, namedVendors(settings), documents),
  )
  const store = settings.store ?? (useStandIns ? ({ kind: 'memory' } as const) : undefined)
  let gateway: Gateway | undefined
  if (vendors !== undefined) {
    gateway = await settle(checks, configuration, async () => {
      if (flags.serveConsole) consoleKey(settings.operatorKey, useStandIns && store?.kind === 'memory')
      return await checkGateway(settings, vendors, optionsWithExamples(configuration.gateway, flags))
    })
    if (gateway !== undefined) {
      checks.push({
        name: 'configuration',
        status: 'ok',
        message: file === undefined ? 'from variables and flags' : `${file}, variables and flags`,
      })
      checks.push(checkCatalog((await gateway.health()).catalog))
    }
  }
  const fallback = store === undefined ? await memoryInstead(settings) : undefined
  checks.push(fallback === undefined ? await checkStore(store ?? DEFAULT_STORE) : withoutEngine(fallback.reason))
  if (settings.redisUrl !== undefined) checks.push(await checkRedis(settings.redisUrl))
  if (vendors === undefined) return
  checks.push(...(useStandIns ? vendors.flatMap(notAsked) : await checkVendors(vendors, namedVendors(settings))))
  const prices = gateway === undefined ? undefined : checkPrices(settings, vendors, gateway)
  if (prices !== undefined) checks.push(prices)
  checks.push(await checkMcp())
}

function withoutEngine(reason: string): Check {
  const message = `serve would keep everything in memory, until the process ends: ${reason}`
  return { name: 'store', status: 'warning', message, remedy: ENGINE_COMMAND }
}

/** Runs a step. An invalid setting becomes a failed check. */
async function settle<Value>(
  checks: Check[],
  configuration: Configuration | undefined,
  run: () => Value | Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await run()
  } catch (error) {
    const named = configuration?.named(error) ?? error
    if (!(named instanceof SettingError)) throw named
    checks.push({ name: 'configuration', status: 'failed', message: named.message })
    return undefined
  }
}

/** Creates the gateway, which checks its options, loads its catalog, and closes it without a start. */
async function checkGateway(
  settings: ServeSettings,
  vendors: readonly ConfiguredVendor[],
  further: FurtherOptions | undefined,
): Promise<Gateway> {
  const gateway = servedGateway(settings, vendors, further, { store: memoryStore(), logger: silentLogger })
  // The state of the catalog contains a failure.
  if (settings.catalog !== undefined) await gateway.loadCatalog().catch(() => undefined)
  await gateway.close({ drainMs: 0 })
  return gateway
}

function checkCatalog({ date, ageDays, isOld, error }: CatalogState): Check {
  const message = `models and list prices of ${date}, ${ageDays} days old`
  if (error === undefined && !isOld) return { name: 'catalog', status: 'ok', message }
  return {
    name: 'catalog',
    status: 'warning',
    message: error === undefined ? message : `${message}; newer ones cannot be loaded from ${error}`,
    remedy: 'update signalbox, or name in SIGNALBOX_CATALOG what signalbox catalog update --snapshot FILE writes',
  }
}

/** Checks of a vendor with --sandbox, which makes no call. */
function notAsked({ vendor, state }: ConfiguredVendor): readonly Check[] {
  const name = `vendor ${vendor.id}`
  if (state === 'stand-in') return [{ name, status: 'ok', message: 'a stand-in answers for it' }]
  if (state === 'not configured') return []
  return [
    { name, status: 'unchecked', message: 'serve would call it with its key; --sandbox asks no vendor for a check' },
  ]
}

async function checkVendors(
  vendors: readonly ConfiguredVendor[],
  named: ReadonlySet<string>,
): Promise<readonly Check[]> {
  const configured = vendors.filter(({ state }) => state === 'configured')
  const missing = vendors.filter(({ vendor, state }) => state === 'not configured' && named.has(vendor.id))
  const lacking = missing.map(({ vendor }): Check => {
    const message = 'a model of yours names it, and it has no key'
    return { name: `vendor ${vendor.id}`, status: 'failed', message, remedy: `set ${variablesOf(vendor.configuredBy)}` }
  })
  if (configured.length === 0) {
    const others = vendors.map(({ vendor }) => variablesOf(vendor.configuredBy)).join(', ')
    return [
      ...lacking,
      {
        name: 'vendors',
        status: 'failed',
        message: 'no vendor has a key, so no model can be called',
        remedy: `set one of ${others}`,
      },
    ]
  }
  const transport = undiciTransport()
  try {
    const found = await Promise.all(configured.map(({ vendor }) => checkVendor(vendor, transport)))
    return [...found.flat(), ...lacking]
  } finally {
    await transport.close()
  }
}

function checkPrices(
  { prices, billing, models }: ServeSettings,
  vendors: readonly ConfiguredVendor[],
  { catalog }: Gateway,
): Check | undefined {
  if (prices === undefined || billing === 'off')
    return { name: 'prices', status: 'ok', message: 'billing is off; nobody is charged' }
  const list = 'forCatalog' in prices.prices ? prices.prices.forCatalog(catalog) : prices.prices
  const byId = new Map(vendors.map(({ vendor }) => [vendor.id, vendor]))
  const found = listUnpricedModels({ catalog, vendors: byId, prices: list, endpoints: { all: ENDPOINTS } })
  if (found === undefined) return undefined
  const { models: count } = found
  const unpriced = found.unpriced.map((model) => nameOfUnpriced(model))
  if (unpriced.length === 0) return { name: 'prices', status: 'ok', message: `all ${count} models have a price` }
  const shown = unpriced.slice(0, SHOWN_MODELS).join(', ')
  const more = unpriced.length > SHOWN_MODELS ? ` and ${unpriced.length - SHOWN_MODELS} more` : ''
  const added = new Set(models.map(({ id }) => id))
  const own = found.unpriced.filter(({ id }) => added.has(id)).map((model) => nameOfUnpriced(model))
  return {
    name: 'prices',
    // A model that the operator has added is intended to be called.
    status: own.length > 0 ? 'failed' : 'warning',
    message: `${unpriced.length} of ${count} models have no price, and are refused: ${own.length > 0 ? `${own.join(', ')} of your own; ` : ''}${shown}${more}`,
    remedy: `name them in SIGNALBOX_PRICES, or charge list prices by SIGNALBOX_LIST_PRICES=1`,
  }
}

async function checkMcp(): Promise<Check> {
  try {
    await loadOptionalPackage('@modelcontextprotocol/server', '/mcp')
    return { name: 'mcp', status: 'ok', message: 'served at /mcp' }
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    return {
      name: 'mcp',
      status: 'warning',
      message: 'not served: its package is not installed',
      remedy: 'npm install @modelcontextprotocol/server, if you want it',
    }
  }
}
