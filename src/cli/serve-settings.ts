import { type CorsOptions, checkCors } from '../adapters/cors.ts'
import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import type { ModelDefinition } from '../catalog/model.ts'
import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { parseModelDefinitions } from '../catalog/parse-model-definitions.ts'
import { NEWEST_OF_FAMILY, type UnknownModels, withKnownVendors } from '../catalog/prices/check-prices.ts'
import { type CatalogPrices, checkMarkup, listPrices } from '../catalog/prices/list-prices.ts'
import { definePrices, type PriceFile, type Prices } from '../catalog/prices/prices.ts'
import { VendorModels } from '../catalog/vendor-models/vendor-models.ts'
import { GatewayError } from '../core/errors.ts'
import { type ClientAddress, forwardedAddress } from '../core/exchange.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { SHORTEST_OPERATOR_KEY } from '../gateway/authenticate.ts'
import { modelVendor } from '../gateway/catalog-in-force.ts'
import { type CatalogOptions, isAddress, limitSetOf, type Plan, planLimitsOf } from '../gateway/catalog-options.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { billingModeOf, type FixedKey, type GatewayOptions } from '../gateway/options.ts'
import type { Timeouts } from '../pipeline/pipeline-context.ts'
import { hashApiKey } from '../stores/api-keys.ts'
import type { BillingMode, Tier } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import { checkWebhookSecret } from '../tasks/webhook-payload.ts'
import type { CommandArguments, OptionDefinition } from './command.ts'
import { configuredVendors } from './configured-vendors.ts'
import { environmentProxy } from './environment-proxy.ts'
import { parseStoreSetting, type StoreSetting } from './open-store.ts'
import {
  checkDollars,
  parseBillingMode,
  parseCount,
  parseDelay,
  parseDuration,
  parsePairs,
  parsePort,
  parseRetentionDays,
  parseShare,
  parseSwitch,
  parseTier,
  readJson,
  SettingError,
} from './setting-values.ts'
import { type Documents, type Environment, type LogFormat, parseLogFormat } from './terminal.ts'

/** Settings of `signalbox serve`. The names of the variables are a public interface. */
export interface ServeSettings {
  readonly host: string
  readonly port: number
  readonly store: StoreSetting | undefined
  /** Address of shared limits, or `undefined` if each process counts separately. */
  readonly redisUrl: string | undefined
  /** Accepted keys, each with its own account. If empty, the keys of the store are used, or one is created. */
  readonly apiKeys: readonly string[]
  /** Dollars credited once to each of those accounts. */
  readonly credit: string | undefined
  /** Prices, or `undefined` if billing is off. */
  readonly prices: ServePrices | undefined
  readonly models: readonly ModelDefinition[]
  /** Newer snapshot of the vendors' models; `undefined` for the built-in one. */
  readonly catalog: CatalogOptions | undefined
  readonly limits: ServeLimits
  /** Plans by name; may be empty. */
  readonly plans: Readonly<Record<string, Plan>>
  /** Billing mode of accounts without their own. If `undefined`, `prepaid`, or `off` without prices. */
  readonly billing: BillingMode | 'off' | undefined
  /** Rule for ids that no catalog knows; `undefined` for the gateway's default. */
  readonly unknownModels: UnknownModels | undefined
  /** Shares of caps and balances that are reported to the operator. If `undefined`, the gateway's default applies. */
  readonly spendingThresholds: GatewayOptions['spendingThresholds']
  /** Tier of the accounts. If `undefined`, accounts keep their tier, and new ones are `paid`. */
  readonly tier: Tier | undefined
  readonly timeouts: Partial<Timeouts>
  readonly holdTtlMs: number | undefined
  /** Secret that signs webhooks of accounts without their own. If `undefined`, such accounts get one when they need it. */
  readonly webhookSecret: string | undefined
  readonly taskDeadlineMs: number | undefined
  readonly taskPollIntervalMs: number | undefined
  /** Days; `Infinity` keeps tasks indefinitely. */
  readonly taskRetentionDays: number | undefined
  /** Key for `GET /readyz?verbose`. If `undefined`, the state of store and vendors is not shown. */
  readonly operatorKey: string | undefined
  /** Number of processes that share `redisUrl`. If `undefined`, one. */
  readonly expectedInstances: number | undefined
  /** Whether URLs of callers may point to private addresses. If `undefined`, they may not. */
  readonly allowPrivateUrls: boolean | undefined
  /** Log format. If `undefined`, text on a terminal, else JSON. */
  readonly log: LogFormat | undefined
  /** Share of the completed requests that are logged. If `undefined`, requests are not logged. */
  readonly accessLogShare: number | undefined
  /** Allowed origins of web pages. If `undefined`, none. */
  readonly clientAddress: ClientAddress | undefined
  readonly corsOrigins: CorsOptions['origins'] | undefined
  /** How long requests are still accepted after SIGTERM while `/readyz` returns 503, in milliseconds. With 0, not at all. */
  readonly shutdownDelayMs: number
  /** How long an idle connection of a caller stays open, in milliseconds. */
  readonly keepAliveMs: number
}

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
export function readServeSettings(environment: Environment, documents?: Documents): ServeSettings {
  const read = (name: string): string | undefined => {
    const value = environment[name]?.trim()
    return value === '' ? undefined : value
  }
  const given = <Value>(name: string, parse: (name: string, text: string) => Value): Value | undefined => {
    const text = read(name)
    return text === undefined ? undefined : namingSetting(name, () => parse(name, text))
  }
  const redisUrl = given('REDIS_URL', parseRedisUrl)
  const prices = servePrices(
    read('SIGNALBOX_PRICES'),
    given('SIGNALBOX_LIST_PRICES', (_name, markup) => checkMarkup(markup)),
    documents,
  )
  const billing = given('SIGNALBOX_BILLING', parseServeBilling)
  if (prices === undefined && billing !== undefined && billing !== 'off')
    throw new SettingError(`SIGNALBOX_BILLING: ${billing} needs prices: set SIGNALBOX_PRICES or SIGNALBOX_LIST_PRICES`)
  return {
    host: read('HOST') ?? '127.0.0.1',
    port: given('PORT', parsePort) ?? 8787,
    store: given('SIGNALBOX_STORE', parseStoreSetting),
    redisUrl,
    apiKeys: given('SIGNALBOX_API_KEYS', parseKeys) ?? [],
    credit: given('SIGNALBOX_CREDIT', checkDollars),
    prices,
    models: given('SIGNALBOX_MODELS', readModels) ?? ownModels(documents),
    catalog: given('SIGNALBOX_CATALOG', (name, from) => parseCatalog(name, from, environment)),
    limits: {
      perKey: given('SIGNALBOX_LIMITS', parseLimits) ?? {},
      perAccount: given('SIGNALBOX_ACCOUNT_LIMITS', parseLimits) ?? {},
      perEndUser: given('SIGNALBOX_END_USER_LIMITS', parseLimits) ?? {},
    },
    plans: configuredPlans(read('SIGNALBOX_PLANS'), documents),
    billing,
    unknownModels: given('SIGNALBOX_UNKNOWN_MODELS', parseUnknownModels),
    spendingThresholds: given('SIGNALBOX_THRESHOLDS', parseThresholds),
    tier: given('SIGNALBOX_TIER', parseTier),
    timeouts: given('SIGNALBOX_TIMEOUTS', parseTimeouts) ?? {},
    holdTtlMs: given('SIGNALBOX_HOLD_TTL', parseDuration),
    webhookSecret: given('SIGNALBOX_WEBHOOK_SECRET', (_name, text) => checkWebhookSecret(text)),
    taskDeadlineMs: given('SIGNALBOX_TASK_DEADLINE', parseDuration),
    taskPollIntervalMs: given('SIGNALBOX_TASK_POLL_INTERVAL', parseDuration),
    taskRetentionDays: given('SIGNALBOX_TASK_RETENTION', parseRetentionDays),
    operatorKey: given('SIGNALBOX_OPERATOR_KEY', parseOperatorKey),
    expectedInstances: given('SIGNALBOX_EXPECTED_INSTANCES', (name, text) => parseInstances(name, text, redisUrl)),
    allowPrivateUrls: given('SIGNALBOX_ALLOW_PRIVATE_URLS', parseSwitch),
    log: given('SIGNALBOX_LOG', parseLogFormat),
    accessLogShare: given('SIGNALBOX_ACCESS_LOG', parseShare),
    clientAddress: given('SIGNALBOX_TRUST_PROXY', parseProxies),
    corsOrigins: given('SIGNALBOX_CORS_ORIGINS', parseCorsOrigins),
    shutdownDelayMs: given('SIGNALBOX_SHUTDOWN_DELAY', parseDelay) ?? 0,
    keepAliveMs: given('SIGNALBOX_KEEP_ALIVE', parseDuration) ?? DEFAULT_KEEP_ALIVE_MS,
  }
}

function parseCatalog(name: string, from: string, environment: Environment): CatalogOptions {
  if (!isAddress(from)) return { from }
  if (!URL.canParse(from)) throw new SettingError(`${name}: is not a URL such as https://intranet.example/catalog.json`)
  return { from, proxy: environmentProxy(from, environment) }
}

function parseProxies(name: string, text: string): ClientAddress {
  try {
    return forwardedAddress(text.split(',').map((entry) => entry.trim()))
  } catch (cause) {
    throw new SettingError((cause as TypeError).message.replace('proxies', name))
  }
}

/** Reads `*`, or origins separated by commas. */
function parseCorsOrigins(_name: string, text: string): CorsOptions['origins'] {
  const origins = text.split(',').map((origin) => origin.trim())
  return checkCors({ origins: text === '*' ? '*' : origins.filter((origin) => origin !== '') }).origins
}

/** Returns prices of a file, list prices, or both; `undefined` if there are neither. */
function servePrices(
  path: string | undefined,
  markup: string | undefined,
  documents: Documents | undefined,
): ServePrices | undefined {
  const name = 'SIGNALBOX_PRICES'
  const own = documents?.prices as PriceFile | undefined
  const file = (): PriceFile | undefined => (path === undefined ? own : readPriceFile(name, path))
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

function parseUnknownModels(name: string, text: string): UnknownModels {
  if (text === 'refuse') return text
  return { pricedAs: text === NEWEST_OF_FAMILY ? text : readPriceFile(name, text).prices }
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

/** Adds the variable's name to errors of shared code, which does not know about variables. */
function namingSetting<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError || GatewayError.isInstance(error))
      throw new SettingError(`${name}: ${error.message}`)
    throw error
  }
}

function parseKeys(name: string, text: string): string[] {
  const keys = text.split(',').map((key) => key.trim())
  for (const key of keys) {
    if (!/^sk-\S+$/.test(key))
      throw new SettingError(`${name}: every key must begin with sk- and hold no spaces; keys are separated by commas`)
  }
  return [...new Set(keys)]
}

const TIMEOUT_NAMES = {
  connect: 'connectMs',
  first_byte: 'firstByteMs',
  idle: 'idleMs',
  total: 'totalMs',
} as const satisfies Record<string, keyof Timeouts>

function parseTimeouts(setting: string, text: string): Partial<Timeouts> {
  const names = Object.keys(TIMEOUT_NAMES) as (keyof typeof TIMEOUT_NAMES)[]
  const timeouts: { -readonly [Name in keyof Timeouts]?: number } = {}
  for (const [name, value] of parsePairs(setting, text, names)) {
    timeouts[TIMEOUT_NAMES[name]] = parseDuration(`${setting}: ${name}`, value)
  }
  return timeouts
}

/** Rejected without Redis: limits would silently not be shared. */
function parseInstances(name: string, text: string, redisUrl: string | undefined): number {
  const count = parseCount(name, text)
  if (redisUrl === undefined)
    throw new SettingError(`${name}: has no effect without REDIS_URL: every process would grant the full limit`)
  return count
}

function parseOperatorKey(name: string, text: string): string {
  if (text.length < SHORTEST_OPERATOR_KEY || /\s/.test(text))
    throw new SettingError(`${name}: must have at least ${SHORTEST_OPERATOR_KEY} characters and hold no spaces`)
  return text
}

function parseRedisUrl(name: string, text: string): string {
  // The text is not shown, because it may contain a password.
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text))
    throw new SettingError(`${name}: must be redis://… or rediss://…`)
  return text
}

/** Reads files separated by commas. If rows have the same id, the last one applies. */
function readModels(name: string, paths: string): readonly ModelDefinition[] {
  return paths.split(',').flatMap((path) => parseModelDefinitions(readJson(name, path.trim())))
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

/** The content is checked where it is used. */
function readPriceFile(name: string, path: string): PriceFile {
  return readJson(name, path) as PriceFile
}

/** Limits of the variables, by scope. */
interface ServeLimits {
  readonly perKey: RateLimits
  readonly perAccount: RateLimits
  readonly perEndUser: RateLimits
}

/**
 * Reads `rpm=600,tpm=1000000,concurrency=50`.
 * @throws SettingError naming the variable.
 */
function parseLimits(setting: string, text: string): RateLimits {
  const pairs = parsePairs(setting, text, ['rpm', 'tpm', 'concurrency'])
  const count = (name: 'rpm' | 'tpm' | 'concurrency'): number | undefined => {
    const value = pairs.get(name)
    return value === undefined ? undefined : parseCount(`${setting}: ${name}`, value)
  }
  return { requestsPerMinute: count('rpm'), tokensPerMinute: count('tpm'), concurrency: count('concurrency') }
}

/**
 * Reads `prepaid`, `metered` or `off`.
 * @throws SettingError naming the variable.
 */
function parseServeBilling(setting: string, text: string): BillingMode | 'off' {
  if (text === 'off') return text
  try {
    return parseBillingMode(setting, text)
  } catch {
    throw new SettingError(`${setting}: must be prepaid, metered or off`)
  }
}

/**
 * Checks the plans of a file: `{ "free": { "limits": { "perAccount": { "requestsPerMinute": 10 } } } }`.
 * @throws TypeError naming the member.
 */
function checkPlans(content: unknown): Readonly<Record<string, Plan>> {
  if (!isObject(content) || !Object.values(content).every(isObject))
    throw new TypeError(
      'must be an object of plans by name, such as {"free":{"limits":{"perKey":{"requestsPerMinute":10}}}}',
    )
  const plans = content as Readonly<Record<string, Plan>>
  for (const [name, { limits }] of Object.entries(plans))
    if (limits !== undefined && (!isObject(limits) || Object.values(limits).some((value) => value === null)))
      throw new TypeError(`plans.${name}.limits must be an object of limits`)
  try {
    planLimitsOf(plans, limitSetOf(undefined, 'limits'))
  } catch (error) {
    throw new TypeError((error as TypeError).message.replace(/^createGateway: /, ''))
  }
  return plans
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Reads `50,80,100` for caps and balances, or `caps=80/100,balance=50/90` for each.
 * @throws SettingError naming the variable.
 */
function parseThresholds(setting: string, text: string): GatewayOptions['spendingThresholds'] & object {
  if (!text.includes('=')) {
    const percents = parsePercents(setting, text, ',')
    return { caps: percents, balance: percents }
  }
  const pairs = parsePairs(setting, text, ['caps', 'balance'])
  const of = (name: 'caps' | 'balance') => {
    const given = pairs.get(name)
    return given === undefined ? {} : { [name]: parsePercents(`${setting}: ${name}`, given, '/') }
  }
  return { ...of('caps'), ...of('balance') }
}

function parsePercents(setting: string, text: string, separator: string): readonly number[] {
  return text.split(separator).map((part) => {
    const percent = Number(part.trim())
    if (/^\s*\d{1,3}(?:\.\d{1,3})?\s*$/.test(part) && percent > 0 && percent <= 100) return percent
    throw new SettingError(`${setting}: ${JSON.stringify(part)} is not a percent above 0 and at most 100`)
  })
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
