import { readFileSync } from 'node:fs'
import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import type { ModelDefinition } from '../catalog/model.ts'
import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { parseModelDefinitions } from '../catalog/parse-model-definitions.ts'
import { type CatalogPrices, checkMarkup, listPrices } from '../catalog/prices/list-prices.ts'
import { type PriceFile, type Prices, reloadablePrices } from '../catalog/prices/prices.ts'
import { SNAPSHOT_DATE, VendorModels } from '../catalog/vendor-models/vendor-models.ts'
import { GatewayError } from '../core/errors.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { modelVendor } from '../gateway/model-vendor.ts'
import { SHORTEST_OPERATOR_KEY } from '../gateway/operator-key.ts'
import type { Timeouts } from '../pipeline/pipeline-context.ts'
import type { Tier } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import { checkWebhookSecret } from '../tasks/webhook-signature.ts'
import { configuredVendors } from './configured-vendors.ts'
import { parseStoreSetting, type StoreSetting } from './open-store.ts'
import {
  checkDollars,
  parseCount,
  parseDuration,
  parsePairs,
  parsePort,
  parseRetentionDays,
  parseSwitch,
  parseTier,
  SettingError,
} from './setting-values.ts'
import type { Environment } from './terminal.ts'

/** Settings of `signalbox serve`. The names of the variables are public interface. */
export interface ServeSettings {
  readonly host: string
  readonly port: number
  readonly store: StoreSetting | undefined
  /** Where limits are shared; undefined: each process counts by itself. */
  readonly redisUrl: string | undefined
  /** Accepted keys, each with its own account. Empty: the keys of the store are used, or one is made. */
  readonly apiKeys: readonly string[]
  /** Dollars credited once to each of those accounts. */
  readonly credit: string | undefined
  /** Undefined: billing is off. */
  readonly prices: ServePrices | undefined
  readonly models: readonly ModelDefinition[]
  readonly limits: RateLimits
  /** Undefined: accounts keep their tier, and new ones are `paid`. */
  readonly tier: Tier | undefined
  readonly timeouts: Partial<Timeouts>
  readonly holdTtlMs: number | undefined
  /** Signs webhooks of accounts without their own secret; undefined: such accounts get no webhooks. */
  readonly webhookSecret: string | undefined
  readonly taskDeadlineMs: number | undefined
  readonly taskPollIntervalMs: number | undefined
  /** `Infinity`: forever. */
  readonly taskRetentionDays: number | undefined
  /** Grants `GET /healthz?verbose`; undefined: the state of the vendors is not shown. */
  readonly operatorKey: string | undefined
  /** Number of processes that share `redisUrl`; undefined: one. */
  readonly expectedInstances: number | undefined
  /** May URLs that callers give point to private addresses? Undefined: no. */
  readonly allowPrivateUrls: boolean | undefined
}

/** The prices of a running gateway. */
export interface ServePrices {
  /** What they come from, for people. */
  readonly source: string
  readonly prices: Prices | CatalogPrices
  /**
   * Reads the price file again.
   * @throws SettingError naming the bad row; the last good prices stay in force then.
   */
  reload(): void
}

/**
 * Reads the variables that `signalbox --help` lists for `serve`, without those of the vendors.
 * @throws SettingError naming the variable.
 */
export function readServeSettings(environment: Environment): ServeSettings {
  const read = (name: string): string | undefined => {
    const value = environment[name]?.trim()
    return value === '' ? undefined : value
  }
  const given = <Value>(name: string, parse: (name: string, text: string) => Value): Value | undefined => {
    const text = read(name)
    return text === undefined ? undefined : namingSetting(name, () => parse(name, text))
  }
  const redisUrl = given('REDIS_URL', parseRedisUrl)
  return {
    host: read('HOST') ?? '127.0.0.1',
    port: given('PORT', parsePort) ?? 8787,
    store: given('SIGNALBOX_STORE', parseStoreSetting),
    redisUrl,
    apiKeys: given('SIGNALBOX_API_KEYS', parseKeys) ?? [],
    credit: given('SIGNALBOX_CREDIT', checkDollars),
    prices: servePrices(
      read('SIGNALBOX_PRICES'),
      given('SIGNALBOX_LIST_PRICES', (_name, markup) => checkMarkup(markup)),
    ),
    models: given('SIGNALBOX_MODELS', readModels) ?? [],
    limits: given('SIGNALBOX_LIMITS', parseLimits) ?? {},
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
  }
}

/** Prices of a file, list prices, or both; undefined: neither. */
function servePrices(path: string | undefined, markup: string | undefined): ServePrices | undefined {
  const name = 'SIGNALBOX_PRICES'
  const file = (): PriceFile | undefined => (path === undefined ? undefined : readPriceFile(name, path))
  if (markup !== undefined) {
    const list = reloadableListPrices(() => namingSetting(name, () => listPrices({ markup, prices: file() })))
    const source = `list prices times ${markup} (snapshot of ${SNAPSHOT_DATE})${path === undefined ? '' : ` and ${path}`}`
    return { source, prices: list, reload: () => list.reload() }
  }
  if (path === undefined) return undefined
  const prices = namingSetting(name, () => reloadablePrices(readPriceFile(name, path)))
  return { source: path, prices, reload: () => namingSetting(name, () => prices.reload(readPriceFile(name, path))) }
}

/** List prices that are made again on request, for the catalog that they were first made for. */
function reloadableListPrices(make: () => CatalogPrices): CatalogPrices & { reload(): void } {
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
 * The built-in models, those of the vendors, and those of `SIGNALBOX_MODELS`.
 * @throws SettingError naming the variable.
 */
export function configuredCatalog(environment: Environment): Catalog {
  const name = 'SIGNALBOX_MODELS'
  const paths = environment[name]?.trim() ?? ''
  const vendors = configuredVendors(environment, undefined).map(({ vendor }) => vendor)
  return namingSetting(name, () =>
    createCatalog(
      [
        ...BUILT_IN_MODELS,
        ...vendors.flatMap((vendor) => vendor.models),
        ...(paths === '' ? [] : readModels(name, paths)),
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

function parseLimits(setting: string, text: string): RateLimits {
  const pairs = parsePairs(setting, text, ['rpm', 'tpm', 'concurrency'])
  const count = (name: 'rpm' | 'tpm' | 'concurrency'): number | undefined => {
    const value = pairs.get(name)
    return value === undefined ? undefined : parseCount(`${setting}: ${name}`, value)
  }
  return { requestsPerMinute: count('rpm'), tokensPerMinute: count('tpm'), concurrency: count('concurrency') }
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

/** Refused without Redis: limits would not be shared, and nothing would say so. */
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
  // The text is not shown: it may hold a password.
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text))
    throw new SettingError(`${name}: must be redis://… or rediss://…`)
  return text
}

/** Files separated by commas; of rows with one id the last counts. */
function readModels(name: string, paths: string): readonly ModelDefinition[] {
  return paths.split(',').flatMap((path) => parseModelDefinitions(readJson(name, path.trim())))
}

/** The content is checked where it is used. */
function readPriceFile(name: string, path: string): PriceFile {
  return readJson(name, path) as PriceFile
}

function readJson(name: string, path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new SettingError(
      `${name}: the file ${path} cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unknown reason'})`,
    )
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new SettingError(`${name}: the file ${path} does not hold valid JSON`)
  }
}
