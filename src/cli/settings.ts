import * as z from 'zod'
import { type CorsOptions, checkCors } from '../adapters/cors.ts'
import type { ModelDefinition } from '../catalog/model.ts'
import { parseModelDefinitions } from '../catalog/parse-model-definitions.ts'
import { NEWEST_OF_FAMILY, type UnknownModels } from '../catalog/prices/check-prices.ts'
import { checkMarkup } from '../catalog/prices/list-prices.ts'
import type { PriceFile } from '../catalog/prices/prices.ts'
import { type ClientAddress, forwardedAddress } from '../core/exchange.ts'
import { mistakesBetween } from '../core/known-members.ts'
import { MIN_OPERATOR_KEY } from '../gateway/authenticate.ts'
import { type CatalogOptions, isAddress } from '../gateway/catalog-options.ts'
import type { GatewayOptions } from '../gateway/options.ts'
import type { Timeouts } from '../pipeline/pipeline-context.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import { checkWebhookSecret } from '../tasks/webhook-payload.ts'
import { type Preset, presets } from '../vendors/presets/presets.ts'
import type { OptionDefinition } from './command.ts'
import { presetVariables } from './configured-vendors.ts'
import { parseStoreSetting } from './open-store.ts'
import {
  checkDollars,
  namingSetting,
  parseCount,
  parseDelay,
  parseDuration,
  parsePairs,
  parsePort,
  parseRetentionDays,
  parseShare,
  parseSwitch,
  readJson,
  SettingError,
} from './setting-values.ts'
import type { Environment } from './terminal.ts'

const PREFIX = 'SIGNALBOX_'

/** Variable of a vendor. If `isSecret` is set, there is no flag for it. */
interface VendorVariable {
  readonly variable: string
  readonly flag?: string
  readonly isSecret: boolean
  readonly text: string
}

/** A base URL has a flag with the same words; a key has none. */
function ofVendor(variable: string, text: string, isSecret = false): VendorVariable {
  return { variable, text, isSecret, ...(isSecret ? {} : { flag: variable.toLowerCase().replaceAll('_', '-') }) }
}

const KEYS = 'one key, or several separated by commas, which take turns'

/** Variables of single vendors, and of their proxies. */
export const VENDOR_VARIABLES: readonly VendorVariable[] = [
  ...['OPENAI', 'ANTHROPIC', 'GEMINI', 'DASHSCOPE', 'VOYAGE', 'COHERE'].flatMap((prefix) => [
    ofVendor(`${prefix}_API_KEY`, KEYS, true),
    ofVendor(`${prefix}_BASE_URL`, 'another origin than the vendor’s own, such as http://127.0.0.1:9100'),
  ]),
  // `--no-proxy` would read as the opposite of `--proxy`.
  { ...ofVendor('HTTPS_PROXY', 'proxy for vendors with https'), flag: 'proxy' },
  { ...ofVendor('NO_PROXY', 'hosts that are called without the proxy, separated by commas'), flag: 'proxy-except' },
  ofVendor('AZURE_OPENAI_ENDPOINT', 'Azure OpenAI: the vendor azure-openai of your models'),
  ofVendor('AZURE_OPENAI_API_KEY', 'key of Azure OpenAI', true),
  ofVendor('AZURE_OPENAI_API_VERSION', 'dated version of Azure OpenAI’s API; without one its v1 paths'),
  ofVendor(
    'AZURE_OPENAI_DEPLOYMENTS',
    'models behind deployments of Azure OpenAI: my-deployment=gpt-6-luna,other=gpt-6-sol',
  ),
  ofVendor('ANTHROPIC_FOUNDRY_BASE_URL', 'Claude in Foundry: the vendor anthropic-foundry'),
  ofVendor('ANTHROPIC_FOUNDRY_API_KEY', 'key of Claude in Foundry', true),
  ofVendor(
    'GOOGLE_CLOUD_PROJECT',
    'Vertex AI by Google’s default credentials: the vendors vertex and anthropic-vertex',
  ),
  ofVendor('GOOGLE_CLOUD_LOCATION', 'location of Vertex AI: global, us, eu, europe-west4, …'),
  ofVendor('GOOGLE_APPLICATION_CREDENTIALS', 'path of Google’s credentials file'),
  ofVendor('GOOGLE_VERTEX_API_KEY', 'key for the vendor vertex, in place of credentials', true),
  ofVendor('GOOGLE_VERTEX_BASE_URL', 'another address of Vertex AI'),
  ofVendor('AWS_REGION', 'Amazon Bedrock: the vendors amazon-bedrock, and anthropic-bedrock for Claude’s Messages'),
  ofVendor('AWS_ENDPOINT_URL_BEDROCK_RUNTIME', 'another address of Amazon Bedrock'),
  ofVendor('AWS_BEARER_TOKEN_BEDROCK', 'key of Amazon Bedrock', true),
  ofVendor('AWS_ACCESS_KEY_ID', 'access key of AWS, in place of AWS_BEARER_TOKEN_BEDROCK', true),
  ofVendor('AWS_SECRET_ACCESS_KEY', 'secret of AWS_ACCESS_KEY_ID', true),
  ofVendor('AWS_PROFILE', 'profile of AWS’s credentials file, in place of keys in variables'),
  ...Object.values<Preset>(presets).flatMap((preset) => {
    const { keys, baseURL, account } = presetVariables(preset)
    return [
      ...keys.map((name) => ofVendor(name, `${preset.name}: the vendor ${preset.id} of your models`, true)),
      ...(account === undefined ? [] : [ofVendor(account, `the account at ${preset.name}`)]),
      ofVendor(baseURL, `another address of ${preset.name}`),
    ]
  }),
]

/** Reads the text of a variable. @throws SettingError with the name of the variable. */
type Parse<Value> = (name: string, text: string) => Value

/** Setting of `serve` and `check`. Its name is that of its member in the configuration file. */
interface Definition<Value> {
  /** Variable, if it is not `SIGNALBOX_` and the name. */
  readonly variable?: string
  /** Member of the configuration file, if it is not the name. */
  readonly member?: string
  /** Placeholder of the value in the help. If omitted, the flag is a switch, which is `1` in the variable. */
  readonly value?: string
  /** Whether there is no flag, because everybody on the machine can see a command line. Default false. */
  readonly isSecret?: boolean
  /** One line for the help and for the schema of the file. */
  readonly text: string
  /** Schema of its value in the file. Default: a string that is not empty. */
  readonly schema?: z.ZodType
  readonly parse: Parse<Value>
}

const reference = z.string().regex(/^\$[A-Za-z_][A-Za-z0-9_]*$/, 'must name a variable of the environment, as "$NAME"')
const words = z.string().min(1)
const wordOrWords = z.union([words, z.array(words).nonempty()])
const time = z.string().regex(/^(?:\d+(?:ms|s|m|h|d)|\$\w+)$/, 'must be a duration such as 250ms, 5s, 15m, 1h or 30d')
const count = z.int().positive()
const percents = z.array(z.number().positive().max(100)).nonempty()
/** Files of rows: paths as text, or the rows themselves, which are read separately from the variables. */
const rowsOrPaths = z.union([words, z.array(words).nonempty(), z.array(z.record(z.string(), z.unknown())).nonempty()])
const fileOrObject = z.union([words, z.record(z.string(), z.unknown())], 'must be the path of a file, or an object')

const asText: Parse<string> = (_name, text) => text

const limits = {
  value: 'LIMITS',
  schema: z.strictObject({
    requestsPerMinute: count.exactOptional(),
    tokensPerMinute: count.exactOptional(),
    concurrency: count.exactOptional(),
  }),
  parse: parseLimits,
}
const duration = { value: 'TIME', schema: time, parse: parseDuration }

function choice<const Word extends string>(...known: readonly Word[]) {
  return {
    schema: z.enum(known),
    parse(name: string, text: string): Word {
      const word = known.find((one) => one === text)
      if (word === undefined)
        throw new SettingError(`${name}: must be ${known.slice(0, -1).join(', ')} or ${known.at(-1)}`)
      return word
    },
  }
}

/** Settings of a served gateway by name, without those of single vendors. */
const DEFINITIONS = {
  host: { variable: 'HOST', value: 'ADDRESS', text: 'address to listen on (default: 127.0.0.1)', parse: asText },
  port: {
    variable: 'PORT',
    value: 'NUMBER',
    text: 'port to listen on, or 0 for a free one (default: 8787)',
    schema: z.union([z.int().min(0).max(65_535), words]),
    parse: parsePort,
  },
  store: {
    value: 'STORE',
    text: 'memory:, sqlite:PATH or postgres://user:password@host/database (default: sqlite:signalbox.db)',
    parse: parseStoreSetting,
  },
  migrate: {
    value: 'WHEN',
    text: 'when the schema of PostgreSQL is migrated: start (default), or never except by signalbox migrate',
    ...choice('start', 'never'),
  },
  redis: {
    variable: 'REDIS_URL',
    value: 'URL',
    text: 'redis://… to share the limits among several gateways',
    parse: parseRedisUrl,
  },
  expectedInstances: {
    value: 'N',
    text: 'number of gateways that share REDIS_URL; each enforces its share while Redis is down (default: 1)',
    schema: count,
    parse: parseCount,
  },
  apiKeys: {
    isSecret: true,
    text: 'accepted keys, separated by commas; each has its own account (default: those of the store, or a new one if there is none)',
    schema: z.union([reference, z.array(reference).nonempty()], 'must be "$NAME" or a list of such names'),
    parse: parseKeys,
  },
  credit: {
    value: 'DOLLARS',
    text: 'dollars credited once to the account of each given key',
    schema: z.union([words, z.number().nonnegative()]),
    parse: checkDollars,
  },
  models: {
    value: 'FILES',
    text: 'paths of JSON lists of models to add or override, separated by commas',
    schema: rowsOrPaths,
    parse: readModels,
  },
  catalog: {
    value: 'FILE|URL',
    text: 'newer models and list prices, from catalog update --snapshot',
    parse: parseCatalog,
  },
  vendors: {
    value: 'FILE',
    text: 'path of a JSON file with options of vendors (headers, proxy, …), and additional servers',
    schema: fileOrObject,
    parse: asText,
  },
  passUnknownModels: {
    value: 'IDS',
    text: 'ids of vendors that get model ids which no catalog knows: groq,openai',
    schema: z.array(words).nonempty(),
    parse: asText,
  },
  unknownModels: {
    value: 'RULE',
    text: 'ids that no catalog knows: refuse, "newest of its family" for its price, or a path of prices (default: refuse if billing is on)',
    parse: parseUnknownModels,
  },
  prices: {
    value: 'FILE',
    text: 'path of a price file; billing is off without prices; SIGHUP reads it again',
    schema: fileOrObject,
    parse: asText,
  },
  listPrices: {
    value: 'FACTOR',
    text: 'factor of the vendors’ list prices to charge: 1, 1.2; rows of the price file take precedence',
    schema: z.union([words, z.number().positive()]),
    parse: (_name: string, markup: string) => checkMarkup(markup),
  },
  billing: {
    value: 'MODE',
    text: 'prepaid (default), metered or off; accounts may override it',
    ...choice('prepaid', 'metered', 'off'),
  },
  thresholds: {
    value: 'PERCENTS',
    text: 'percentages of caps and balances that are logged: 50,80,100, or caps=80/100,balance=50/90',
    schema: z.union([percents, z.strictObject({ caps: percents.exactOptional(), balance: percents.exactOptional() })]),
    parse: parseThresholds,
  },
  limits: { ...limits, member: 'limits.perKey', text: 'rpm=600,tpm=1000000,concurrency=50 (per key)' },
  accountLimits: { ...limits, member: 'limits.perAccount', text: 'limits of all keys of an account together' },
  endUserLimits: {
    ...limits,
    member: 'limits.perEndUser',
    text: 'limits of each end user of keys that may name them',
  },
  plans: {
    value: 'FILE',
    text: 'path of a JSON object of plans by name, each with limits; accounts have one',
    schema: fileOrObject,
    parse: asText,
  },
  tier: { value: 'TIER', text: 'paid (default) or free', ...choice('paid', 'free') },
  timeouts: {
    value: 'TIMES',
    text: 'connect=5s,first_byte=120s,idle=60s,total=600s',
    schema: z.strictObject({
      connect: time.exactOptional(),
      firstByte: time.exactOptional(),
      idle: time.exactOptional(),
      total: time.exactOptional(),
    }),
    parse: parseTimeouts,
  },
  holdTtl: { ...duration, text: 'how long a hold lives if nothing ends it (15m)' },
  taskDeadline: { ...duration, text: 'videos that take longer are given up (24h)' },
  taskPollInterval: {
    ...duration,
    text: 'how often a vendor is polled about a video (default: as it recommends)',
  },
  shutdownDelay: {
    ...duration,
    text: 'how long requests are still taken after SIGTERM, while /readyz is 503 (not at all)',
    parse: parseDelay,
  },
  keepAlive: {
    ...duration,
    text: 'how long an idle connection stays open; longer than the balancer keeps it (75s)',
  },
  taskRetention: {
    value: 'TIME',
    text: 'how long videos are listed after their end, at least 1d, or forever (default: 90d)',
    schema: z.union([time, z.literal('forever')], 'must be a duration such as 90d, or forever'),
    parse: parseRetentionDays,
  },
  log: {
    value: 'FORMAT',
    text: 'format of log lines on standard error: json or text (default: text on a terminal, else json)',
    ...choice('json', 'text'),
  },
  accessLog: {
    value: 'SHARE',
    text: 'share of the completed requests that are logged, such as 1 or 0.01; failed ones always are',
    schema: z.number().min(0).max(1),
    parse: parseShare,
  },
  operatorKey: {
    isSecret: true,
    text: 'at least 24 characters; grants GET /readyz?verbose, GET /metrics and, with --console, the console',
    schema: reference,
    parse: parseOperatorKey,
  },
  trustProxy: {
    value: 'PROXIES',
    text: '10.0.0.0/8,::1,…: proxies whose X-Forwarded-For names the client, for the limit of wrong operator keys (default: none)',
    schema: wordOrWords,
    parse: parseProxies,
  },
  corsOrigins: {
    value: 'ORIGINS',
    text: 'https://app.example.com,… or *: web pages that may call from a browser (default: none)',
    schema: wordOrWords,
    parse: parseCorsOrigins,
  },
  webhookSecret: {
    isSecret: true,
    text: 'whsec_… to sign webhooks of accounts without their own secret (default: each gets one)',
    schema: reference,
    parse: (_name: string, text: string) => checkWebhookSecret(text),
  },
  allowPrivateUrls: {
    text: 'lets callers’ URLs point to private addresses (on one machine only); 1 in the variable',
    schema: z.boolean(),
    parse: parseSwitch,
  },
} as const satisfies Readonly<Record<string, Definition<unknown>>>

/** Values of the settings by name; `undefined` if a setting is not set. */
export type SettingValues = {
  readonly [Name in keyof typeof DEFINITIONS]: ReturnType<(typeof DEFINITIONS)[Name]['parse']> | undefined
}

/** Setting of `serve` and `check`: its variable, its flag, and its member in the configuration file. */
export interface Setting {
  readonly name: string
  readonly variable: string
  /** Flag without the dashes; `undefined` for a secret. */
  readonly flag: string | undefined
  /** Placeholder of the value in the help; `undefined` for a switch. */
  readonly value: string | undefined
  readonly text: string
  /** Path of the member in the configuration file. */
  readonly member: string
  /** Schema of its value in the file. */
  readonly schema: z.ZodType
  readonly parse: Parse<unknown>
}

export const SETTINGS: readonly Setting[] = Object.entries<Definition<unknown>>(DEFINITIONS).map(
  ([name, { variable, value, member = name, isSecret = false, text, schema = words, parse }]) => {
    const parts = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    return {
      name,
      variable: variable ?? `${PREFIX}${parts.replaceAll('-', '_').toUpperCase()}`,
      flag: isSecret ? undefined : parts,
      value,
      text,
      member,
      schema,
      parse,
    }
  },
)

/**
 * Reads the variables of the settings. Blank ones count as unset.
 * @param names Settings to read. Default: all.
 * @throws SettingError naming the variable.
 */
export function settingValues(
  environment: Environment,
  names: readonly string[] = SETTINGS.map(({ name }) => name),
): SettingValues {
  const values = SETTINGS.filter(({ name }) => names.includes(name)).map(({ name, variable, parse }) => {
    const text = environment[variable]?.trim() ?? ''
    return [name, text === '' ? undefined : namingSetting(variable, () => parse(variable, text))]
  })
  return Object.fromEntries(values) as unknown as SettingValues
}

/** Names of members of the file in pairs of a variable, where they differ. */
const PAIR_NAMES: Readonly<Record<string, string>> = {
  requestsPerMinute: 'rpm',
  tokensPerMinute: 'tpm',
  firstByte: 'first_byte',
}

/** Converts the value of a setting in the file to the format of its variable. */
export function settingText(value: unknown): string {
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return value.join(',')
  return Object.entries(value)
    .map(([name, part]) => `${PAIR_NAMES[name] ?? name}=${Array.isArray(part) ? part.join('/') : String(part)}`)
    .join(',')
}

/** Options of `serve` and `check`: a flag for every setting that is not secret. */
export const SETTING_OPTIONS: Readonly<Record<string, OptionDefinition>> = Object.fromEntries([
  ...SETTINGS.flatMap(({ flag, value, text, variable }) =>
    flag === undefined ? [] : [[flag, { ...(value === undefined ? {} : { value }), text: `${text} [${variable}]` }]],
  ),
  ...VENDOR_VARIABLES.flatMap(({ flag, text, variable }) =>
    flag === undefined ? [] : [[flag, { value: 'VALUE', text: `${text} [${variable}]` }]],
  ),
])

/** Lists the variables without a flag, as lines of a help text. */
export function secretLines(): string {
  const secrets = [
    ...SETTINGS.filter(({ flag }) => flag === undefined),
    ...VENDOR_VARIABLES.filter((one) => one.isSecret),
  ]
  return lines('Variables without a flag, because everybody on the machine sees a command line:', secrets)
}

/** Lists every setting with its variable, as lines of a help text. */
export function variableLines(): string {
  return lines('Variables of serve and check. Flags override them; they override the configuration file:', SETTINGS)
}

function lines(head: string, rows: readonly { readonly variable: string; readonly text: string }[]): string {
  const width = Math.max(...rows.map(({ variable }) => variable.length))
  return [head, ...rows.map(({ variable, text }) => `  ${variable.padEnd(width)}  ${text}`)].join('\n')
}

/** Maximum number of wrong letters. Two swapped letters count as one mistake. */
const MAX_MISTAKES = 1

/** Variables that Kubernetes sets for a service with the gateway's name. */
const SERVICE = /_(?:SERVICE_(?:HOST|PORT(?:_.*)?)|PORT(?:_.*)?)$/

const KNOWN: readonly string[] = [...SETTINGS.map(({ variable }) => variable), `${PREFIX}CONFIG`].flatMap((name) =>
  name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : [],
)

/**
 * Returns variables that nearly match the name of a setting: a misspelt limit would have no effect. Other variables with this prefix
 * may belong to the host, or to a Kubernetes service of this name.
 */
export function misspeltVariables(environment: Environment): string[] {
  return Object.entries(environment).flatMap(([name, value = '']) => {
    const own = name.slice(PREFIX.length)
    if (!name.startsWith(PREFIX) || KNOWN.includes(own) || SERVICE.test(name) || value.trim() === '') return []
    const meant = KNOWN.find((known) => mistakesBetween(own, known, MAX_MISTAKES) <= MAX_MISTAKES)
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${PREFIX}${meant}?`]
  })
}

function parseCatalog(name: string, from: string): CatalogOptions {
  if (isAddress(from) && !URL.canParse(from))
    throw new SettingError(`${name}: is not a URL such as https://intranet.example/catalog.json`)
  return { from }
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

function parseUnknownModels(name: string, text: string): UnknownModels {
  if (text === 'refuse') return text
  return { pricedAs: text === NEWEST_OF_FAMILY ? text : (readJson(name, text) as PriceFile).prices }
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

function parseOperatorKey(name: string, text: string): string {
  if (text.length < MIN_OPERATOR_KEY || /\s/.test(text))
    throw new SettingError(`${name}: must have at least ${MIN_OPERATOR_KEY} characters and hold no spaces`)
  return text
}

function parseRedisUrl(name: string, text: string): string {
  // The text is not shown, because it may contain a password.
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text))
    throw new SettingError(`${name}: must be redis://… or rediss://…`)
  return text
}

/** Reads files separated by commas. If rows have the same id, the last one applies. */
export function readModels(name: string, paths: string): readonly ModelDefinition[] {
  return paths.split(',').flatMap((path) => parseModelDefinitions(readJson(name, path.trim())))
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
