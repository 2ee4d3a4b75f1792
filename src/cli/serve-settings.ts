import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import type { ModelDefinition } from '../catalog/model.ts'
import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { parseModelDefinitions } from '../catalog/parse-model-definitions.ts'
import { withKnownVendors } from '../catalog/prices/check-prices.ts'
import { type CatalogPrices, listPrices } from '../catalog/prices/list-prices.ts'
import { definePrices, type PriceFile, type Prices } from '../catalog/prices/prices.ts'
import { VendorModels } from '../catalog/vendor-models/vendor-models.ts'
import { isJsonObject } from '../core/json.ts'
import { checkBySchema } from '../core/option-schema.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { modelVendor } from '../gateway/catalog-in-force.ts'
import { isAddress, limitSchemas, limitSetOf, type Plan, planLimitsOf } from '../gateway/catalog-options.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { billingModeOf, type FixedKey, type GatewayOptions } from '../gateway/options.ts'
import { hashApiKey } from '../stores/api-keys.ts'
import type { BillingMode } from '../stores/principal.ts'
import type { CommandArguments, OptionDefinition } from './command.ts'
import { configuredVendors } from './configured-vendors.ts'
import { environmentProxy } from './environment-proxy.ts'
import { namingSetting, readJson, SettingError } from './setting-values.ts'
import { readModels, settingValues } from './settings.ts'
import type { Documents, Environment } from './terminal.ts'

/** Settings of `signalbox serve`. */
export type ServeSettings = ReturnType<typeof readServeSettings>

/**
 * Longer than the 60 seconds after which most load balancers close an idle connection. If the server closed it first, a request could
 * be lost.
 */
const DEFAULT_KEEP_ALIVE_MS = 75_000

/** Prices of a running gateway. */
export interface ServePrices {
  /** Display name of the source. */
  readonly source: string
  readonly prices: Prices | CatalogPrices
  /** Whether the prices come from neither a file nor a variable. */
  readonly isExample?: boolean
  /** Whether SIGHUP reads them again, which requires a separate price file. */
  readonly isReloadable: boolean
  /**
   * Reads the price file again.
   * @throws SettingError naming the invalid row; the last valid prices then stay in force.
   */
  reload(): void
}

/**
 * Reads the variables that `signalbox --help` lists for `serve`, without those of the vendors.
 * @throws SettingError naming the variable.
 */
export function readServeSettings(environment: Environment, documents?: Documents) {
  const values = settingValues(environment)
  const { host = '127.0.0.1', port = 8787, redis: redisUrl, apiKeys = [], catalog, billing, timeouts = {} } = values
  const { expectedInstances, shutdownDelay = 0, keepAlive = DEFAULT_KEEP_ALIVE_MS } = values
  const prices = servePrices(values.prices, values.listPrices, documents)
  if (prices === undefined && billing !== undefined && billing !== 'off')
    throw new SettingError(`SIGNALBOX_BILLING: ${billing} needs prices: set SIGNALBOX_PRICES or SIGNALBOX_LIST_PRICES`)
  // Without Redis, limits would silently not be shared.
  if (expectedInstances !== undefined && redisUrl === undefined)
    throw new SettingError(
      'SIGNALBOX_EXPECTED_INSTANCES: has no effect without REDIS_URL: every process would grant the full limit',
    )
  if (values.migrate === 'never' && values.store?.kind !== 'postgres')
    throw new SettingError(
      'SIGNALBOX_MIGRATE: never needs SIGNALBOX_STORE=postgres://…; each start migrates other stores',
    )
  const { limits: perKey = {}, accountLimits: perAccount = {}, endUserLimits: perEndUser = {} } = values
  return {
    host,
    port,
    store: values.store,
    /** When the schema of PostgreSQL is migrated. */
    migrate: values.migrate,
    redisUrl,
    /** Accepted keys, each with its own account. If empty, the keys of the store are used, or one is created. */
    apiKeys,
    /** Dollars credited once to each of those accounts. */
    credit: values.credit,
    /** Prices, or `undefined` if billing is off. */
    prices,
    models: values.models ?? ownModels(documents),
    catalog:
      catalog !== undefined && isAddress(catalog.from)
        ? { ...catalog, proxy: environmentProxy(catalog.from, environment) }
        : catalog,
    limits: { perKey, perAccount, perEndUser },
    plans: configuredPlans(values.plans, documents),
    /** Billing mode of accounts without their own. If `undefined`, `prepaid`, or `off` without prices. */
    billing,
    unknownModels: values.unknownModels,
    spendingThresholds: values.thresholds,
    /** Tier of the accounts. If `undefined`, accounts keep their tier, and new ones are `paid`. */
    tier: values.tier,
    timeouts,
    holdTtlMs: values.holdTtl,
    webhookSecret: values.webhookSecret,
    taskDeadlineMs: values.taskDeadline,
    taskPollIntervalMs: values.taskPollInterval,
    /** Days; `Infinity` keeps tasks indefinitely. */
    taskRetentionDays: values.taskRetention,
    operatorKey: values.operatorKey,
    expectedInstances,
    allowPrivateUrls: values.allowPrivateUrls,
    log: values.log,
    /** Share of the completed requests that are logged. If `undefined`, requests are not logged. */
    accessLogShare: values.accessLog,
    clientAddress: values.trustProxy,
    corsOrigins: values.corsOrigins,
    shutdownDelayMs: shutdownDelay,
    keepAliveMs: keepAlive,
  }
}

/** Returns prices of a file, list prices, or both; `undefined` if there are neither. */
function servePrices(
  path: string | undefined,
  markup: string | undefined,
  documents: Documents | undefined,
): ServePrices | undefined {
  const name = 'SIGNALBOX_PRICES'
  // The content is checked where it is used.
  const own = documents?.prices as PriceFile | undefined
  const file = (): PriceFile | undefined => (path === undefined ? own : (readJson(name, path) as PriceFile))
  const isReloadable = path !== undefined
  const from = path ?? (own === undefined ? undefined : documents?.name)
  if (markup !== undefined) {
    const list = reloadableCatalogPrices(() => namingSetting(name, () => listPrices({ markup, prices: file() })))
    const source = `list prices times ${markup}${from === undefined ? '' : ` and ${from}`}`
    return { source, prices: list, isReloadable, reload: () => list.reload() }
  }
  const first = file()
  if (first === undefined || from === undefined) return undefined
  const prices = reloadableCatalogPrices(() => {
    const read = namingSetting(name, () => definePrices(file() ?? first))
    return { forCatalog: (catalog) => namingSetting(name, () => withKnownVendors(read, catalog)) }
  })
  return { source: from, prices, isReloadable, reload: () => prices.reload() }
}

/** Prices that can be rebuilt on request, for the catalog that they were first built for. */
function reloadableCatalogPrices(make: () => CatalogPrices): CatalogPrices & { reload(): void } {
  let made = make()
  let catalog: Catalog | undefined
  let current: Required<Prices> | undefined
  return {
    forCatalog(given) {
      catalog = given
      current = made.forCatalog(given)
      return {
        quote: (model, fields, surcharges) => current?.quote(model, fields, surcharges),
        rows: () => current?.rows() ?? [],
      }
    },
    reload() {
      const next = make()
      if (catalog !== undefined) current = next.forCatalog(catalog)
      made = next
    },
  }
}

/**
 * Returns the built-in models, those of the vendors, and those of `SIGNALBOX_MODELS`.
 * @throws SettingError naming the variable.
 */
export function configuredCatalog(environment: Environment, documents?: Documents): Catalog {
  const name = 'SIGNALBOX_MODELS'
  const paths = environment[name]?.trim() ?? ''
  const vendors = configuredVendors(environment, undefined, new Set(), documents).map(({ vendor }) => vendor)
  return namingSetting(name, () =>
    createCatalog(
      [
        ...BUILT_IN_MODELS,
        ...vendors.flatMap((vendor) => vendor.models),
        ...(paths === '' ? ownModels(documents) : readModels(name, paths)),
      ],
      new VendorModels(vendors.map((vendor) => modelVendor(vendor, ENDPOINTS))),
    ),
  )
}

/** Returns the models inside the configuration file. */
function ownModels(documents: Documents | undefined): readonly ModelDefinition[] {
  if (documents?.models === undefined) return []
  return namingSetting('SIGNALBOX_MODELS', () => parseModelDefinitions(documents.models))
}

/**
 * Returns the plans of a file, or of the configuration file itself; may be empty.
 * @param path Value of `SIGNALBOX_PLANS`.
 * @throws SettingError naming the variable.
 */
export function configuredPlans(path: string | undefined, documents?: Documents): Readonly<Record<string, Plan>> {
  const name = 'SIGNALBOX_PLANS'
  const file = path?.trim() ?? ''
  if (file === '' && documents?.plans === undefined) return {}
  return namingSetting(name, () => checkPlans(file === '' ? documents?.plans : readJson(name, file)))
}

/**
 * Checks the plans of a file: `{ "free": { "limits": { "perAccount": { "requestsPerMinute": 10 } } } }`.
 * @throws TypeError naming the member.
 */
function checkPlans(content: unknown): Readonly<Record<string, Plan>> {
  if (!isJsonObject(content))
    throw new TypeError(
      'must be an object of plans by name, such as {"free":{"limits":{"perKey":{"requestsPerMinute":10}}}}',
    )
  checkBySchema(limitSchemas().plans, content, '', 'plans')
  const plans = content as Readonly<Record<string, Plan>>
  try {
    planLimitsOf(plans, limitSetOf(undefined, 'limits'))
  } catch (error) {
    throw new TypeError((error as TypeError).message.replace(/^createGateway: /, ''))
  }
  return plans
}

/** Billing settings of `serve`. */
export interface BillingSettings {
  readonly prices: { readonly prices: NonNullable<GatewayOptions['prices']> } | undefined
  /** Billing mode. If `undefined`, it is `prepaid` if there are prices, else `off`. */
  readonly billing: BillingMode | 'off' | undefined
}

/** Returns the gateway's options for the billing settings. */
export function billingOptions({ prices, billing }: BillingSettings): Pick<GatewayOptions, 'billing' | 'prices'> {
  if (prices === undefined || billing === 'off') return { billing: 'off' }
  return { prices: prices.prices, billing: { mode: billingModeOf(billing && { mode: billing }) } }
}

/** Settings of `serve` and `check` that only flags can set. */
export interface ServeFlags {
  /** Whether offline stand-ins replace vendors without a key. */
  readonly useStandIns: boolean
  /** Whether to serve the console and the admin API, too. */
  readonly serveConsole: boolean
  /** Whether to use example prices if none are set, and to make example calls. Requires stand-ins. */
  readonly showExamples: boolean
}

/** Flags of `serve` and `check` that no variable sets. */
export const SERVE_FLAGS: Readonly<Record<string, OptionDefinition>> = {
  sandbox: {
    text: 'use offline stand-ins for every vendor without a key, and memory: as the store unless one is set',
  },
  console: { text: 'also serve the console at /console/ and the admin API at /admin/v1' },
  examples: { text: 'with --sandbox: use example prices if none are set, and make some example calls' },
}

/** @param file Whether the configuration file enables the console. */
export function readServeFlags(
  given: Pick<CommandArguments, 'flag'>,
  file: Pick<ServeFlags, 'serveConsole'>,
): ServeFlags {
  return {
    useStandIns: given.flag('sandbox'),
    serveConsole: given.flag('console') || file.serveConsole,
    showExamples: given.flag('examples'),
  }
}

/** Keys that a server starts with. */
export type StartKeys =
  | { readonly source: 'given'; readonly first: FixedKey; readonly count: number }
  | { readonly source: 'made'; readonly key: string; readonly account: string }
  | { readonly source: 'stored'; readonly count: number; readonly hasMore: boolean }

/** Returns the keys of `SIGNALBOX_API_KEYS`. Each account id is derived from its key, so that it stays the same over all starts. */
export function fixedKeys(settings: ServeSettings): FixedKey[] {
  return settings.apiKeys.map((key) => ({
    key,
    account: `acct_${hashApiKey(key).slice(0, 16)}`,
    ...(settings.tier === undefined ? {} : { tier: settings.tier }),
  }))
}

/**
 * Ensures that the started gateway has a usable key. Credits the accounts of the configured keys, once each over all starts, or
 * creates a key if neither the settings nor the store have one.
 * @param credit Dollars for each account of a configured or created key.
 */
export async function startKeys(
  gateway: Gateway,
  settings: ServeSettings,
  credit: string | undefined,
): Promise<StartKeys> {
  const given = fixedKeys(settings)
  const [first] = given
  if (first !== undefined) {
    for (const { account } of given) {
      // Updates accounts of earlier starts.
      if (settings.tier !== undefined) await gateway.accounts.update(account, { tier: settings.tier })
      await creditOnce(gateway, account, credit)
    }
    return { source: 'given', first, count: given.length }
  }
  // Reads one page: there may be very many keys, and the start waits for it.
  const { keys, next } = await gateway.keys.page()
  if (keys.length > 0) return { source: 'stored', count: keys.length, hasMore: next !== undefined }
  const { id: account } = await gateway.accounts.create(settings.tier === undefined ? {} : { tier: settings.tier })
  await creditOnce(gateway, account, credit)
  const { key } = await gateway.keys.create({ accountId: account, label: 'made at the first start' })
  return { source: 'made', key, account }
}

async function creditOnce(gateway: Gateway, account: string, credit: string | undefined): Promise<void> {
  if (credit === undefined || !(Number(credit) > 0)) return
  await gateway.accounts.credit(account, credit, { creditId: `initial:${account}`, description: 'initial credit' })
}
