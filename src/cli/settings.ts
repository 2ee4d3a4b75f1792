import * as z from 'zod'
import type { OptionDefinition } from './command.ts'
import { VENDOR_VARIABLES } from './vendor-variables.ts'

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
