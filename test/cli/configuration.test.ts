import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Configuration, readConfiguration, syntaxErrorPlace } from '../../src/cli/configuration.ts'
import { configuredVendors } from '../../src/cli/configured-vendors.ts'
import { FILE_ONLY_OPTIONS } from '../../src/cli/file-only-options.ts'
import { readServeSettings } from '../../src/cli/serve-settings.ts'
import { SettingError } from '../../src/cli/setting-values.ts'
import { SETTINGS, VENDOR_VARIABLES } from '../../src/cli/settings.ts'
import type { Environment } from '../../src/cli/terminal.ts'
import { optionSchemas } from '../../src/gateway/check-options.ts'

let folder: string
const before = process.cwd()
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-config-'))
  process.chdir(folder)
})
afterEach(() => {
  process.chdir(before)
  rmSync(folder, { recursive: true, force: true })
})

/** Reads what flags, variables and file say; flags as `{ port: '1' }`. */
function read(environment: Environment = {}, flags: Readonly<Record<string, string>> = {}): Promise<Configuration> {
  const given = { option: (name: string) => flags[name], flag: (name: string) => flags[name] !== undefined }
  return readConfiguration(given, environment, () => true)
}

const write = (name: string, content: unknown): void =>
  writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))

describe('a configuration', () => {
  test('takes a flag before a variable, and that before the file; an empty variable does not count', async () => {
    write('signalbox.config.json', { host: '10.0.0.1', port: 1, tier: 'free', log: 'json' })

    const { environment, file } = await read({ PORT: '2', HOST: '10.0.0.2', SIGNALBOX_TIER: ' ' }, { port: '3' })

    expect(file).toBe('signalbox.config.json')
    expect(environment).toMatchObject({ PORT: '3', HOST: '10.0.0.2', SIGNALBOX_TIER: 'free', SIGNALBOX_LOG: 'json' })
  })

  test('has a flag for every variable that is not secret, and none for the others', () => {
    const settings = SETTINGS.filter(({ flag }) => flag === undefined).map(({ variable }) => variable)
    expect(settings).toEqual(['SIGNALBOX_API_KEYS', 'SIGNALBOX_OPERATOR_KEY', 'SIGNALBOX_WEBHOOK_SECRET'])
    for (const { variable, flag, isSecret } of VENDOR_VARIABLES) {
      expect(isSecret, variable).toBe(/KEY|TOKEN|SECRET|_PROFILE$/.test(variable) && variable !== 'AWS_PROFILE')
      expect(flag === undefined, variable).toBe(isSecret)
    }
    const flags = [...SETTINGS, ...VENDOR_VARIABLES].flatMap(({ flag }) => flag ?? [])
    expect(new Set(flags).size).toBe(flags.length)
  })

  test.each(
    [...SETTINGS.map((one) => ({ ...one, isSwitch: one.value === undefined })), ...VENDOR_VARIABLES]
      .filter(({ flag }) => flag !== undefined)
      .map((one) => [one.flag!, one.variable, 'isSwitch' in one && one.isSwitch] as const),
  )('--%s stands for %s', async (flag, variable, isSwitch) => {
    const { environment } = await read({ [variable]: 'other' }, { [flag]: 'given' })

    expect(environment[variable]).toBe(isSwitch ? '1' : 'given')
  })

  test('names the flag or the member in an error about a value', async () => {
    write('signalbox.config.json', { timeouts: { idle: '1m' }, credit: 'much' })
    const { environment, named } = await read({}, { port: 'many' })
    const messageOf = (given: Environment): string => {
      try {
        readServeSettings(given)
      } catch (error) {
        return (named(error) as Error).message
      }
      return 'no error'
    }

    expect(messageOf(environment)).toBe('--port: "many" is not a port')
    expect(messageOf({ ...environment, PORT: '1' })).toBe(
      'signalbox.config.json: credit: "much" is not a dollar amount such as 25 or 0.50',
    )
  })
})

describe('the configuration file', () => {
  const FULL = {
    $schema: './node_modules/signalbox/schemas/signalbox.config.schema.json',
    host: '0.0.0.0',
    port: 9000,
    store: '$DATABASE_URL',
    redis: 'redis://cache.example:6379',
    expectedInstances: 4,
    apiKeys: ['$KEY_OF_WEB', '$KEY_OF_APP'],
    credit: 5,
    models: [{ id: 'our-chat', kind: 'chat', vendor: 'groq', upstream: 'large' }],
    vendors: { groq: { keyVariable: 'OUR_GROQ_KEY', headers: { 'x-team': '$TEAM' } } },
    prices: { currency: 'USD', prices: [{ model: 'our-chat', meter: 'request', amount: '0.01' }] },
    listPrices: 1.2,
    billing: 'metered',
    thresholds: { caps: [80, 100] },
    limits: { perKey: { requestsPerMinute: 600, concurrency: 5 }, perEndUser: { tokensPerMinute: 10 } },
    plans: { free: { limits: { perAccount: { requestsPerMinute: 10 } } } },
    timeouts: { connect: '250ms', firstByte: '2m' },
    holdTtl: '1d',
    taskRetention: 'forever',
    accessLog: 0.5,
    operatorKey: '$OPERATOR',
    shutdownDelay: '10s',
    keepAlive: '620s',
    allowPrivateUrls: true,
    passUnknownModels: ['groq'],
    console: true,
    gateway: {
      bodyLimitBytes: 1024,
      showPrices: true,
      unknownInputTokens: { document: 50_000, models: { 'our-chat': { image: 900 } } },
      routing: { retryAfterTimeout: true },
      cache: { rules: [{ endpoints: ['chat'], models: ['our-*'], sampling: 'any', ttlMs: 1000 }], callers: 'may-ask' },
      overload: { maxInFlight: 500, maxEventLoopDelayMs: 200 },
      promptCaching: 'auto',
    },
  }
  const ENVIRONMENT = {
    DATABASE_URL: 'postgres://db.example/money',
    KEY_OF_WEB: 'sk-web',
    KEY_OF_APP: 'sk-app',
    OPERATOR: 'operator-key-0123456789ab',
    OUR_GROQ_KEY: 'one,two',
    TEAM: 'red',
  }

  test('sets what variables set, and holds models, vendors, prices and plans itself', async () => {
    write('signalbox.config.json', FULL)

    const { environment, documents, serveConsole, gateway } = await read(ENVIRONMENT)
    const settings = readServeSettings(environment, documents)
    const vendors = configuredVendors(environment, undefined, new Set(['groq']), documents)

    expect(settings).toMatchObject({
      host: '0.0.0.0',
      port: 9000,
      store: { kind: 'postgres', url: 'postgres://db.example/money' },
      redisUrl: 'redis://cache.example:6379',
      expectedInstances: 4,
      apiKeys: ['sk-web', 'sk-app'],
      credit: '5',
      models: FULL.models,
      billing: 'metered',
      spendingThresholds: { caps: [80, 100] },
      limits: {
        perKey: { requestsPerMinute: 600, concurrency: 5 },
        perAccount: {},
        perEndUser: { tokensPerMinute: 10 },
      },
      plans: FULL.plans,
      timeouts: { connectMs: 250, firstByteMs: 120_000 },
      holdTtlMs: 86_400_000,
      taskRetentionDays: Number.POSITIVE_INFINITY,
      accessLogShare: 0.5,
      operatorKey: 'operator-key-0123456789ab',
      shutdownDelayMs: 10_000,
      keepAliveMs: 620_000,
      allowPrivateUrls: true,
    })
    expect(settings.prices?.source).toMatch(/list prices times 1\.2 and signalbox\.config\.json$/)
    expect(settings.prices?.isReloadable).toBe(false)
    expect(vendors.find(({ vendor }) => vendor.id === 'groq')).toMatchObject({
      state: 'configured',
      vendor: { apiKeys: ['one', 'two'], headers: ['x-team', 'red'], passUnknownModels: true },
    })
    expect([serveConsole, gateway]).toEqual([true, FULL.gateway])
  })

  test('or a variable can set every option of a gateway that is data', () => {
    const variables = ['models', 'vendors', 'prices', 'billing', 'keys', 'limits', 'plans', 'timeouts', 'operatorKey']
    const ofServe = [
      ...['store', 'holdTtlMs', 'spendingThresholds', 'webhookSecret', 'taskDeadlineMs', 'taskPollIntervalMs'],
      ...['catalog', 'taskRetentionDays', 'unknownModels', 'allowPrivateUrls', 'logger', 'rateLimiter'],
      'concurrencyLimiter',
    ]
    const code = [
      'endpoints',
      'authenticate',
      'estimateTokens',
      'hooks',
      'onEvent',
      'observe',
      'transport',
      'clock',
      'clientAddress',
      'ids',
    ]
    const known = [...Object.keys(FILE_ONLY_OPTIONS.shape), ...variables, ...ofServe, ...code]

    expect(Object.keys(optionSchemas()).filter((name) => !known.includes(name))).toEqual([])
  })

  test('gives way to a variable that names a file of models, vendors, prices or plans', async () => {
    write('signalbox.config.json', FULL)
    write('plans.json', { other: {} })

    const { environment, documents } = await read({ ...ENVIRONMENT, SIGNALBOX_PLANS: 'plans.json' })

    expect(readServeSettings(environment, documents).plans).toEqual({ other: {} })
  })

  test('names files from its own folder on', async () => {
    write('plans.json', { free: {} })
    write('models.json', FULL.models)
    write('signalbox.config.json', { plans: 'plans.json', models: ['models.json'] })
    process.chdir(before)

    const { environment, documents } = await read({ SIGNALBOX_CONFIG: join(folder, 'signalbox.config.json') })

    expect(readServeSettings(environment, documents)).toMatchObject({ plans: { free: {} }, models: FULL.models })
  })

  test.each([
    ['an object', 'export default { port: 7 }'],
    ['a function', 'export default (env) => ({ port: Number(env.BASE) + 6 })'],
    ['a function that takes its time', 'export default async ({ BASE }) => ({ port: Number(BASE) + 6 })'],
  ])('may be a module that exports %s', async (_name, text) => {
    write('signalbox.config.mjs', text)

    expect((await read({ BASE: '1' })).environment['PORT']).toBe('7')
  })

  test.each<[string, unknown, string]>([
    ['json', { prot: 1 }, 'signalbox.config.json: unknown member "prot"; did you mean port?'],
    [
      'json',
      { limits: { perkey: {} } },
      'signalbox.config.json: limits: unknown member "perkey"; did you mean perKey?',
    ],
    [
      'json',
      { gateway: { routing: { stratgy: 'cost' } } },
      'signalbox.config.json: gateway.routing: unknown member "stratgy"; did you mean strategy?',
    ],
    ['json', { port: 70_000 }, 'signalbox.config.json: port: '],
    ['json', { billing: 'post' }, 'signalbox.config.json: billing: '],
    ['json', { timeouts: { idle: '60' } }, 'signalbox.config.json: timeouts.idle: must be a duration such as 250ms'],
    ['json', { operatorKey: 'a-key-in-plain-text-0123456789' }, 'operatorKey: must name a variable of the environment'],
    ['json', { operatorKey: '$OPERATOR' }, 'signalbox.config.json: operatorKey: the variable OPERATOR is not set'],
    ['json', '{"port": ', 'signalbox.config.json: is not valid JSON: line 1, column 10: expected a value'],
    [
      'json',
      '{\n  "port": 80,\n}',
      'signalbox.config.json: is not valid JSON: line 3, column 1: expected a name in dou',
    ],
    ['json', '{\n  "operatorKey": "a-key-in-plain-text\n}', 'line 2, column 18: expected a text that ends in its line'],
    ['mjs', 'export const port = 1', 'signalbox.config.mjs: must have a default export'],
    ['mjs', 'throw new Error("no such secret")', 'signalbox.config.mjs: no such secret'],
  ])('is refused as %s with %j', async (ending, content, message) => {
    write(`signalbox.config.${ending}`, content)

    await expect(read()).rejects.toThrow(SettingError)
    await expect(read()).rejects.toThrow(message)
    await expect(read()).rejects.not.toThrow('a-key-in-plain-text')
  })

  test('is read with the byte order mark of an editor', async () => {
    write('signalbox.config.json', '\ufeff{ "port": 81 }')

    expect((await read()).environment['PORT']).toBe('81')
  })

  test('is refused, not a crash, where it is nested too deep to find its fault', async () => {
    write('signalbox.config.json', '['.repeat(200_000))

    await expect(read()).rejects.toThrow('signalbox.config.json: is not valid JSON: it is nested too deep')
  })

  test('says in which line a module does not compile', () => {
    write('signalbox.config.mjs', "export default {\n  port: 80,\n  host '::1'\n}\n")

    expect(syntaxErrorPlace(join(folder, 'signalbox.config.mjs'))).toBe('line 3: ')
  })

  test('names vendor, member and the nearest one in an error about its vendors', async () => {
    write('signalbox.config.json', { vendors: { openai: { baseUrl: 'http://gpu.example' } } })
    const { environment, documents, named } = await read()

    const refused = (): unknown => {
      try {
        return configuredVendors(environment, undefined, new Set(), documents)
      } catch (error) {
        return (named(error) as Error).message
      }
    }

    expect(refused()).toBe('signalbox.config.json: vendors: openai: unknown member "baseUrl"; did you mean baseURL?')
  })

  test('is rejected if the named file is missing, or if there are two', async () => {
    await expect(read({}, { config: 'elsewhere.json' })).rejects.toThrow('elsewhere.json cannot be read (ENOENT)')
    await expect(read({}, { config: 'elsewhere.mjs' })).rejects.toThrow('elsewhere.mjs cannot be read (ENOENT)')
    await expect(read({}, { config: 'config.yaml' })).rejects.toThrow('config.yaml must end with .json, .mjs or .js')
    write('signalbox.config.json', {})
    write('signalbox.config.mjs', 'export default {}')
    await expect(read()).rejects.toThrow('signalbox.config.json and signalbox.config.mjs are both here')
  })
})
