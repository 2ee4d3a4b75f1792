import * as z from 'zod'
import { mistakesBetween } from '../core/known-members.ts'
import { type Preset, presets } from '../vendors/presets/presets.ts'
import type { OptionDefinition } from './command.ts'
import { presetVariables } from './configured-vendors.ts'
import type { Environment } from './terminal.ts'

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

/** Setting of `serve` and `check`: its variable, its flag, and its member in the configuration file. */
export interface Setting {
  readonly variable: string
  /** Flag without the dashes; `undefined` for a secret, because everybody on the machine can see a command line. */
  readonly flag: string | undefined
  /** Placeholder of the value in the help; `undefined` for a switch, which is `1` in the variable. */
  readonly value: string | undefined
  /** One line for the help and for the schema of the file. */
  readonly text: string
  /** Name in the configuration file, or `undefined` if it cannot be set there. */
  readonly member: string | undefined
  /** Schema of its value in the file. */
  readonly schema: z.ZodType
  /** Converts the value of the file to the format of the variable. */
  toText(value: never): string
}

const reference = z.string().regex(/^\$[A-Za-z_][A-Za-z0-9_]*$/, 'must name a variable of the environment, as "$NAME"')
const words = z.string().min(1)
const duration = z
  .string()
  .regex(/^(?:\d+(?:ms|s|m|h|d)|\$\w+)$/, 'must be a duration such as 250ms, 5s, 15m, 1h or 30d')
const count = z.int().positive()
const limits = z.strictObject({
  requestsPerMinute: count.exactOptional(),
  tokensPerMinute: count.exactOptional(),
  concurrency: count.exactOptional(),
})
const percents = z.array(z.number().positive().max(100)).nonempty()

type Limits = z.infer<typeof limits>

const LIMIT_NAMES = { requestsPerMinute: 'rpm', tokensPerMinute: 'tpm', concurrency: 'concurrency' } as const
const TIMEOUT_NAMES = { connect: 'connect', firstByte: 'first_byte', idle: 'idle', total: 'total' } as const

function pairs(values: object, names: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${names[name]}=${value}`)
    .join(',')
}

const limitsText = (value: Limits): string => pairs(value, LIMIT_NAMES)
const listText = (value: string | readonly (string | number)[]): string =>
  typeof value === 'string' ? value : value.join(',')

interface Given<Value> {
  readonly variable: string
  readonly flag?: string
  readonly value?: string
  readonly text: string
  readonly member?: string
  readonly schema?: z.ZodType<Value>
  readonly toText?: (value: Value) => string
}

function setting<Value>({ variable, flag, value, text, member, schema, toText }: Given<Value>): Setting {
  return { variable, flag, value, text, member, schema: schema ?? words, toText: toText ?? String }
}

/** Creates a text setting whose member in the file has the name of its flag. */
function plain(variable: string, flag: string, value: string, text: string): Setting {
  return setting({ variable, flag, value, text, member: flag })
}

/** Files of rows: paths as text, or the rows themselves, which are read separately from the variables. */
const rowsOrPaths = z.union([words, z.array(words).nonempty(), z.array(z.record(z.string(), z.unknown())).nonempty()])
const fileOrObject = z.union([words, z.record(z.string(), z.unknown())], 'must be the path of a file, or an object')

/** Settings of a served gateway, without those of single vendors. */
export const SETTINGS: readonly Setting[] = [
  plain('HOST', 'host', 'ADDRESS', 'address to listen on (default: 127.0.0.1)'),
  setting<number | string>({
    variable: 'PORT',
    flag: 'port',
    value: 'NUMBER',
    text: 'port to listen on, or 0 for a free one (default: 8787)',
    member: 'port',
    schema: z.union([z.int().min(0).max(65_535), words]),
  }),
  setting({
    variable: 'SIGNALBOX_STORE',
    flag: 'store',
    value: 'STORE',
    text: 'memory:, sqlite:PATH or postgres://user:password@host/database (default: sqlite:signalbox.db)',
    member: 'store',
  }),
  plain('REDIS_URL', 'redis', 'URL', 'redis://… to share the limits among several gateways'),
  setting<number>({
    variable: 'SIGNALBOX_EXPECTED_INSTANCES',
    flag: 'expected-instances',
    value: 'N',
    text: 'number of gateways that share REDIS_URL; each enforces its share while Redis is down (default: 1)',
    member: 'expectedInstances',
    schema: count,
  }),
  setting<string | readonly string[]>({
    variable: 'SIGNALBOX_API_KEYS',
    text: 'accepted keys, separated by commas; each has its own account (default: those of the store, or a new one if there is none)',
    member: 'apiKeys',
    schema: z.union([reference, z.array(reference).nonempty()], 'must be "$NAME" or a list of such names'),
    toText: listText,
  }),
  setting<string | number>({
    variable: 'SIGNALBOX_CREDIT',
    flag: 'credit',
    value: 'DOLLARS',
    text: 'dollars credited once to the account of each given key',
    member: 'credit',
    schema: z.union([words, z.number().nonnegative()]),
  }),
  setting<string | readonly string[]>({
    variable: 'SIGNALBOX_MODELS',
    flag: 'models',
    value: 'FILES',
    text: 'paths of JSON lists of models to add or override, separated by commas',
    member: 'models',
    schema: rowsOrPaths as z.ZodType<string | readonly string[]>,
    toText: listText,
  }),
  plain('SIGNALBOX_CATALOG', 'catalog', 'FILE|URL', 'newer models and list prices, from catalog update --snapshot'),
  setting({
    variable: 'SIGNALBOX_VENDORS',
    flag: 'vendors',
    value: 'FILE',
    text: 'path of a JSON file with options of vendors (headers, proxy, …), and additional servers',
    member: 'vendors',
    schema: fileOrObject as z.ZodType<string>,
  }),
  setting<readonly string[]>({
    variable: 'SIGNALBOX_PASS_UNKNOWN_MODELS',
    flag: 'pass-unknown-models',
    value: 'IDS',
    text: 'ids of vendors that get model ids which no catalog knows: groq,openai',
    member: 'passUnknownModels',
    schema: z.array(words).nonempty(),
    toText: listText,
  }),
  setting({
    variable: 'SIGNALBOX_UNKNOWN_MODELS',
    flag: 'unknown-models',
    value: 'RULE',
    text: 'ids that no catalog knows: refuse, "newest of its family" for its price, or a path of prices (default: refuse if billing is on)',
    member: 'unknownModels',
    schema: words,
  }),
  setting({
    variable: 'SIGNALBOX_PRICES',
    flag: 'prices',
    value: 'FILE',
    text: 'path of a price file; billing is off without prices; SIGHUP reads it again',
    member: 'prices',
    schema: fileOrObject as z.ZodType<string>,
  }),
  setting<string | number>({
    variable: 'SIGNALBOX_LIST_PRICES',
    flag: 'list-prices',
    value: 'FACTOR',
    text: 'factor of the vendors’ list prices to charge: 1, 1.2; rows of the price file take precedence',
    member: 'listPrices',
    schema: z.union([words, z.number().positive()]),
  }),
  setting({
    variable: 'SIGNALBOX_BILLING',
    flag: 'billing',
    value: 'MODE',
    text: 'prepaid (default), metered or off; accounts may override it',
    member: 'billing',
    schema: z.enum(['prepaid', 'metered', 'off']),
  }),
  setting<readonly number[] | { readonly caps?: readonly number[]; readonly balance?: readonly number[] }>({
    variable: 'SIGNALBOX_THRESHOLDS',
    flag: 'thresholds',
    value: 'PERCENTS',
    text: 'percentages of caps and balances that are logged: 50,80,100, or caps=80/100,balance=50/90',
    member: 'thresholds',
    schema: z.union([percents, z.strictObject({ caps: percents.exactOptional(), balance: percents.exactOptional() })]),
    toText: (value) =>
      'length' in value
        ? value.join(',')
        : Object.entries(value)
            .map(([name, list]) => `${name}=${(list as readonly number[]).join('/')}`)
            .join(','),
  }),
  setting<Limits>({
    variable: 'SIGNALBOX_LIMITS',
    flag: 'limits',
    value: 'LIMITS',
    text: 'rpm=600,tpm=1000000,concurrency=50 (per key)',
    member: 'limits.perKey',
    schema: limits,
    toText: limitsText,
  }),
  setting<Limits>({
    variable: 'SIGNALBOX_ACCOUNT_LIMITS',
    flag: 'account-limits',
    value: 'LIMITS',
    text: 'limits of all keys of an account together',
    member: 'limits.perAccount',
    schema: limits,
    toText: limitsText,
  }),
  setting<Limits>({
    variable: 'SIGNALBOX_END_USER_LIMITS',
    flag: 'end-user-limits',
    value: 'LIMITS',
    text: 'limits of each end user of keys that may name them',
    member: 'limits.perEndUser',
    schema: limits,
    toText: limitsText,
  }),
  setting({
    variable: 'SIGNALBOX_PLANS',
    flag: 'plans',
    value: 'FILE',
    text: 'path of a JSON object of plans by name, each with limits; accounts have one',
    member: 'plans',
    schema: fileOrObject as z.ZodType<string>,
  }),
  setting({
    variable: 'SIGNALBOX_TIER',
    flag: 'tier',
    value: 'TIER',
    text: 'paid (default) or free',
    member: 'tier',
    schema: z.enum(['paid', 'free']),
  }),
  setting<object>({
    variable: 'SIGNALBOX_TIMEOUTS',
    flag: 'timeouts',
    value: 'TIMES',
    text: 'connect=5s,first_byte=120s,idle=60s,total=600s',
    member: 'timeouts',
    schema: z.strictObject({
      connect: duration.exactOptional(),
      firstByte: duration.exactOptional(),
      idle: duration.exactOptional(),
      total: duration.exactOptional(),
    }),
    toText: (value) => pairs(value, TIMEOUT_NAMES),
  }),
  ...(
    [
      ['SIGNALBOX_HOLD_TTL', 'hold-ttl', 'holdTtl', 'how long a hold lives if nothing ends it (15m)'],
      ['SIGNALBOX_TASK_DEADLINE', 'task-deadline', 'taskDeadline', 'videos that take longer are given up (24h)'],
      [
        'SIGNALBOX_TASK_POLL_INTERVAL',
        'task-poll-interval',
        'taskPollInterval',
        'how often a vendor is polled about a video (default: as it recommends)',
      ],
      [
        'SIGNALBOX_SHUTDOWN_DELAY',
        'shutdown-delay',
        'shutdownDelay',
        'how long requests are still taken after SIGTERM, while /readyz is 503 (not at all)',
      ],
      [
        'SIGNALBOX_KEEP_ALIVE',
        'keep-alive',
        'keepAlive',
        'how long an idle connection stays open; longer than the balancer keeps it (75s)',
      ],
    ] as const
  ).map(([variable, flag, member, text]) => setting({ variable, flag, value: 'TIME', text, member, schema: duration })),
  setting({
    variable: 'SIGNALBOX_TASK_RETENTION',
    flag: 'task-retention',
    value: 'TIME',
    text: 'how long videos are listed after their end, at least 1d, or forever (default: 90d)',
    member: 'taskRetention',
    schema: z.union([duration, z.literal('forever')], 'must be a duration such as 90d, or forever'),
  }),
  setting({
    variable: 'SIGNALBOX_LOG',
    flag: 'log',
    value: 'FORMAT',
    text: 'format of log lines on standard error: json or text (default: text on a terminal, else json)',
    member: 'log',
    schema: z.enum(['json', 'text']),
  }),
  setting<number>({
    variable: 'SIGNALBOX_ACCESS_LOG',
    flag: 'access-log',
    value: 'SHARE',
    text: 'share of the completed requests that are logged, such as 1 or 0.01; failed ones always are',
    member: 'accessLog',
    schema: z.number().min(0).max(1),
  }),
  setting({
    variable: 'SIGNALBOX_OPERATOR_KEY',
    text: 'at least 24 characters; grants GET /readyz?verbose, GET /metrics and, with --console, the console',
    member: 'operatorKey',
    schema: reference,
  }),
  setting<string | readonly string[]>({
    variable: 'SIGNALBOX_TRUST_PROXY',
    flag: 'trust-proxy',
    value: 'PROXIES',
    text: '10.0.0.0/8,::1,…: proxies whose X-Forwarded-For names the client, for the limit of wrong operator keys (default: none)',
    member: 'trustProxy',
    schema: z.union([words, z.array(words).nonempty()]),
    toText: listText,
  }),
  setting<string | readonly string[]>({
    variable: 'SIGNALBOX_CORS_ORIGINS',
    flag: 'cors-origins',
    value: 'ORIGINS',
    text: 'https://app.example.com,… or *: web pages that may call from a browser (default: none)',
    member: 'corsOrigins',
    schema: z.union([words, z.array(words).nonempty()]),
    toText: listText,
  }),
  setting({
    variable: 'SIGNALBOX_WEBHOOK_SECRET',
    text: 'whsec_… to sign webhooks of accounts without their own secret (default: each gets one)',
    member: 'webhookSecret',
    schema: reference,
  }),
  setting<boolean>({
    variable: 'SIGNALBOX_ALLOW_PRIVATE_URLS',
    flag: 'allow-private-urls',
    text: 'lets callers’ URLs point to private addresses (on one machine only); 1 in the variable',
    member: 'allowPrivateUrls',
    schema: z.boolean(),
    toText: (value) => (value ? '1' : '0'),
  }),
]

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

const PREFIX = 'SIGNALBOX_'

/** Maximum number of wrong letters. Two swapped letters count as one mistake. */
const MOST_MISTAKES = 1

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
    const meant = KNOWN.find((known) => mistakesBetween(own, known, MOST_MISTAKES) <= MOST_MISTAKES)
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${PREFIX}${meant}?`]
  })
}
