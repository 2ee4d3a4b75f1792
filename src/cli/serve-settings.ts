import { readFileSync } from 'node:fs'
import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import type { ModelDefinition } from '../catalog/model.ts'
import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { parseModelDefinitions } from '../catalog/parse-model-definitions.ts'
import { type PriceFile, type ReloadablePrices, reloadablePrices } from '../catalog/prices/prices.ts'
import { SHORTEST_OPERATOR_KEY } from '../gateway/operator-key.ts'
import type { Timeouts } from '../stages/stage-context.ts'
import type { Tier } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import { checkWebhookSecret } from '../tasks/webhook-signature.ts'
import { SettingError } from './setting-error.ts'
import {
  checkDollars,
  parseCount,
  parseDuration,
  parsePairs,
  parsePort,
  parseRetentionDays,
  parseSwitch,
  parseTier,
} from './setting-values.ts'
import { parseStoreSetting, type StoreSetting } from './store-setting.ts'

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** What `signalbox serve` reads from the environment. The variables' names are public interface. */
export interface ServeSettings {
  readonly host: string
  readonly port: number
  /** Undefined: SIGNALBOX_STORE is not set. */
  readonly store: StoreSetting | undefined
  /** Where limits are shared; undefined: each process counts for itself. */
  readonly redisUrl: string | undefined
  /** Keys accepted as given, each with an account of its own. Empty: those of the store, else one is made. */
  readonly apiKeys: readonly string[]
  /** Dollars credited once to each of those accounts. */
  readonly credit: string | undefined
  /** Undefined: billing is off. */
  readonly prices: ServePrices | undefined
  readonly models: readonly ModelDefinition[]
  readonly limits: RateLimits
  /** Undefined: accounts keep the tier that they have, new ones are `paid`. */
  readonly tier: Tier | undefined
  readonly timeouts: Partial<Timeouts>
  readonly holdTtlMs: number | undefined
  /** Signs webhooks of accounts without a secret of their own; undefined: those can have none. */
  readonly webhookSecret: string | undefined
  readonly taskDeadlineMs: number | undefined
  readonly taskPollIntervalMs: number | undefined
  /** `Infinity`: for ever. */
  readonly taskRetentionDays: number | undefined
  /** Opens `GET /healthz?verbose`; undefined: nobody sees the state of the vendors. */
  readonly operatorKey: string | undefined
  /** How many processes share the limits of `redisUrl`; undefined: one. */
  readonly expectedInstances: number | undefined
  /** May URLs that callers give point to private addresses? Undefined: no. */
  readonly allowPrivateUrls: boolean | undefined
}

/** The price list of a running gateway. */
export interface ServePrices {
  readonly path: string
  readonly prices: ReloadablePrices
}

/**
 * Reads `HOST`, `PORT`, `SIGNALBOX_STORE`, `REDIS_URL`, `SIGNALBOX_API_KEYS`, `SIGNALBOX_CREDIT`, `SIGNALBOX_PRICES`, `SIGNALBOX_MODELS`, `SIGNALBOX_LIMITS`,
 * `SIGNALBOX_TIER`, `SIGNALBOX_TIMEOUTS`, `SIGNALBOX_HOLD_TTL`, `SIGNALBOX_WEBHOOK_SECRET`, `SIGNALBOX_TASK_DEADLINE`,
 * `SIGNALBOX_TASK_POLL_INTERVAL`, `SIGNALBOX_TASK_RETENTION`, `SIGNALBOX_OPERATOR_KEY`, `SIGNALBOX_EXPECTED_INSTANCES` and
 * `SIGNALBOX_ALLOW_PRIVATE_URLS`.
 * @throws SettingError naming the variable.
 */
export function readServeSettings(environment: Environment): ServeSettings {
  const read = (name: string): string | undefined => {
    const value = environment[name]?.trim()
    return value === '' ? undefined : value
  }
  const given = <Value>(name: string, parse: (text: string) => Value): Value | undefined => {
    const text = read(name)
    return text === undefined ? undefined : namingSetting(name, () => parse(text))
  }
  const redisUrl = given('REDIS_URL', parseRedisUrl)
  return {
    host: read('HOST') ?? '127.0.0.1',
    port: given('PORT', (text) => parsePort('PORT', text)) ?? 8787,
    store: given('SIGNALBOX_STORE', (text) => parseStoreSetting('SIGNALBOX_STORE', text)),
    redisUrl,
    apiKeys: given('SIGNALBOX_API_KEYS', parseKeys) ?? [],
    credit: given('SIGNALBOX_CREDIT', (text) => checkDollars('SIGNALBOX_CREDIT', text)),
    prices: given('SIGNALBOX_PRICES', (path) => ({ path, prices: reloadablePrices(readPriceFile(path)) })),
    models: given('SIGNALBOX_MODELS', readModels) ?? [],
    limits: given('SIGNALBOX_LIMITS', parseLimits) ?? {},
    tier: given('SIGNALBOX_TIER', (text) => parseTier('SIGNALBOX_TIER', text)),
    timeouts: given('SIGNALBOX_TIMEOUTS', parseTimeouts) ?? {},
    holdTtlMs: given('SIGNALBOX_HOLD_TTL', (text) => parseDuration('SIGNALBOX_HOLD_TTL', text)),
    webhookSecret: given('SIGNALBOX_WEBHOOK_SECRET', checkWebhookSecret),
    taskDeadlineMs: given('SIGNALBOX_TASK_DEADLINE', (text) => parseDuration('SIGNALBOX_TASK_DEADLINE', text)),
    taskPollIntervalMs: given('SIGNALBOX_TASK_POLL_INTERVAL', (text) =>
      parseDuration('SIGNALBOX_TASK_POLL_INTERVAL', text),
    ),
    taskRetentionDays: given('SIGNALBOX_TASK_RETENTION', (text) =>
      parseRetentionDays('SIGNALBOX_TASK_RETENTION', text),
    ),
    operatorKey: given('SIGNALBOX_OPERATOR_KEY', parseOperatorKey),
    expectedInstances: given('SIGNALBOX_EXPECTED_INSTANCES', (text) => parseInstances(text, redisUrl)),
    allowPrivateUrls: given('SIGNALBOX_ALLOW_PRIVATE_URLS', (text) =>
      parseSwitch('SIGNALBOX_ALLOW_PRIVATE_URLS', text),
    ),
  }
}

/**
 * Reads the price file of a running gateway again.
 * @throws SettingError naming the bad row; the last good prices stay in force then.
 */
export function reloadPrices({ path, prices }: ServePrices): void {
  namingSetting('SIGNALBOX_PRICES', () => prices.reload(readPriceFile(path)))
}

/**
 * The built-in models, and those of `SIGNALBOX_MODELS`.
 * @throws SettingError naming the variable.
 */
export function configuredCatalog(environment: Environment): Catalog {
  const path = environment['SIGNALBOX_MODELS']?.trim()
  const rows = path === undefined || path === '' ? [] : namingSetting('SIGNALBOX_MODELS', () => readModels(path))
  return namingSetting('SIGNALBOX_MODELS', () => createCatalog([...BUILT_IN_MODELS, ...rows]))
}

/** Definitions are checked by shared code, which knows nothing of variables; its complaint is given the variable's name. */
function namingSetting<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof SettingError || !(error instanceof TypeError || error instanceof RangeError)) throw error
    throw new SettingError(`${name}: ${error.message}`)
  }
}

function parseKeys(text: string): string[] {
  const keys = text.split(',').map((key) => key.trim())
  for (const key of keys) {
    if (!/^sk-\S+$/.test(key))
      throw new SettingError(
        'SIGNALBOX_API_KEYS: every key must begin with sk- and hold no spaces; keys are separated by commas',
      )
  }
  return [...new Set(keys)]
}

function parseLimits(text: string): RateLimits {
  const pairs = parsePairs('SIGNALBOX_LIMITS', text, ['rpm', 'tpm', 'concurrency'])
  const count = (name: 'rpm' | 'tpm' | 'concurrency'): number | undefined => {
    const value = pairs.get(name)
    return value === undefined ? undefined : parseCount(`SIGNALBOX_LIMITS: ${name}`, value)
  }
  return { requestsPerMinute: count('rpm'), tokensPerMinute: count('tpm'), concurrency: count('concurrency') }
}

const TIMEOUT_NAMES = {
  connect: 'connectMs',
  first_byte: 'firstByteMs',
  idle: 'idleMs',
  total: 'totalMs',
} as const satisfies Record<string, keyof Timeouts>

function parseTimeouts(text: string): Partial<Timeouts> {
  const names = Object.keys(TIMEOUT_NAMES) as (keyof typeof TIMEOUT_NAMES)[]
  const timeouts: { -readonly [Name in keyof Timeouts]?: number } = {}
  for (const [name, value] of parsePairs('SIGNALBOX_TIMEOUTS', text, names)) {
    timeouts[TIMEOUT_NAMES[name]] = parseDuration(`SIGNALBOX_TIMEOUTS: ${name}`, value)
  }
  return timeouts
}

/** Whoever sets it believes that limits are shared; without Redis each process grants them in full, and nothing would say so. */
function parseInstances(text: string, redisUrl: string | undefined): number {
  const count = parseCount('SIGNALBOX_EXPECTED_INSTANCES', text)
  if (redisUrl === undefined)
    throw new SettingError(
      'SIGNALBOX_EXPECTED_INSTANCES: has no effect without REDIS_URL: every process would grant the whole limit',
    )
  return count
}

function parseOperatorKey(text: string): string {
  if (text.length < SHORTEST_OPERATOR_KEY || /\s/.test(text))
    throw new SettingError(
      `SIGNALBOX_OPERATOR_KEY: must have at least ${SHORTEST_OPERATOR_KEY} characters and hold no spaces`,
    )
  return text
}

function parseRedisUrl(text: string): string {
  // The text is not shown: it may hold a password.
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text))
    throw new SettingError('REDIS_URL: must be redis://… or rediss://…')
  return text
}

function readModels(path: string): readonly ModelDefinition[] {
  return parseModelDefinitions(readJson('SIGNALBOX_MODELS', path))
}

/** What is read here is checked where it is used. */
function readPriceFile(path: string): PriceFile {
  return readJson('SIGNALBOX_PRICES', path) as PriceFile
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
