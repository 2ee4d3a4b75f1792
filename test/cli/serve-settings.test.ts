import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import type { CatalogPrices } from '../../src/catalog/prices/list-prices.ts'
import { VendorModels } from '../../src/catalog/vendor-models/vendor-models.ts'
import { configuredVendors } from '../../src/cli/configured-vendors.ts'
import { configuredCatalog, readServeSettings, type ServePrices } from '../../src/cli/serve-settings.ts'
import { SettingError } from '../../src/cli/setting-values.ts'
import type { Environment } from '../../src/cli/terminal.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-settings-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Writes a file and gives its path. */
function fileWith(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const pricesAt = (amount: string) => ({
  currency: 'USD',
  prices: [{ model: 'our-chat', meter: 'request', amount }],
})
const PLANS = { free: { limits: { perAccount: { requestsPerMinute: 10 } } }, pro: {} }
const models = [{ id: 'our-chat', kind: 'chat', vendor: 'openai', upstream: 'large' }]

describe('the environment of serve', () => {
  test('may be empty', () => {
    expect(readServeSettings({})).toEqual({
      host: '127.0.0.1',
      port: 8787,
      store: undefined,
      redisUrl: undefined,
      apiKeys: [],
      credit: undefined,
      prices: undefined,
      models: [],
      limits: { perKey: {}, perAccount: {}, perEndUser: {} },
      plans: {},
      billing: undefined,
      spendingThresholds: undefined,
      tier: undefined,
      timeouts: {},
      holdTtlMs: undefined,
      corsOrigins: undefined,
      shutdownDelayMs: 0,
      keepAliveMs: 75_000,
    })
  })

  test('may have every variable set', () => {
    const settings = readServeSettings({
      HOST: '0.0.0.0',
      PORT: '9000',
      SIGNALBOX_STORE: 'sqlite:money.db',
      REDIS_URL: 'rediss://cache.example:6380/2',
      SIGNALBOX_API_KEYS: 'sk-first-key, sk-second-key,sk-first-key',
      SIGNALBOX_CREDIT: '25.50',
      SIGNALBOX_PRICES: fileWith('prices.json', pricesAt('0.10')),
      SIGNALBOX_MODELS: fileWith('models.json', models),
      SIGNALBOX_LIMITS: 'rpm=600, tpm=1000000,concurrency=50',
      SIGNALBOX_ACCOUNT_LIMITS: 'rpm=60',
      SIGNALBOX_END_USER_LIMITS: 'concurrency=2',
      SIGNALBOX_PLANS: fileWith('plans.json', PLANS),
      SIGNALBOX_BILLING: 'metered',
      SIGNALBOX_THRESHOLDS: 'caps=80/100,balance=90.5',
      SIGNALBOX_TIER: 'free',
      SIGNALBOX_TIMEOUTS: 'connect=250ms,first_byte=2m,idle=60s,total=1h',
      SIGNALBOX_HOLD_TTL: '1d',
      SIGNALBOX_TASK_DEADLINE: '6h',
      SIGNALBOX_TASK_POLL_INTERVAL: '10s',
      SIGNALBOX_TASK_RETENTION: '36h',
      SIGNALBOX_OPERATOR_KEY: 'operator-key-0123456789ab',
      SIGNALBOX_EXPECTED_INSTANCES: '4',
      SIGNALBOX_LOG: 'json',
      SIGNALBOX_ACCESS_LOG: '0.01',
      SIGNALBOX_CORS_ORIGINS: 'https://app.example, http://localhost:5173',
      SIGNALBOX_SHUTDOWN_DELAY: '10s',
      SIGNALBOX_KEEP_ALIVE: '620s',
    })

    expect(settings).toEqual({
      log: 'json',
      accessLogShare: 0.01,
      corsOrigins: ['https://app.example', 'http://localhost:5173'],
      shutdownDelayMs: 10_000,
      keepAliveMs: 620_000,
      host: '0.0.0.0',
      port: 9000,
      store: { kind: 'sqlite', path: 'money.db' },
      redisUrl: 'rediss://cache.example:6380/2',
      apiKeys: ['sk-first-key', 'sk-second-key'],
      credit: '25.50',
      prices: {
        source: join(folder, 'prices.json'),
        prices: expect.anything(),
        isReloadable: true,
        reload: expect.any(Function),
      },
      models,
      limits: {
        perKey: { requestsPerMinute: 600, tokensPerMinute: 1_000_000, concurrency: 50 },
        perAccount: { requestsPerMinute: 60 },
        perEndUser: { concurrency: 2 },
      },
      plans: PLANS,
      billing: 'metered',
      spendingThresholds: { caps: [80, 100], balance: [90.5] },
      tier: 'free',
      timeouts: { connectMs: 250, firstByteMs: 120_000, idleMs: 60_000, totalMs: 3_600_000 },
      holdTtlMs: 86_400_000,
      taskDeadlineMs: 21_600_000,
      taskPollIntervalMs: 10_000,
      taskRetentionDays: 1.5,
      operatorKey: 'operator-key-0123456789ab',
      expectedInstances: 4,
    })
    expect(amountOf(settings.prices)).toBe('0.10')
  })

  test('may hold empty values, which count as unset', () => {
    const names = [
      'HOST',
      'PORT',
      'SIGNALBOX_STORE',
      'REDIS_URL',
      'SIGNALBOX_API_KEYS',
      'SIGNALBOX_PRICES',
      'SIGNALBOX_TIER',
    ]

    const settings = readServeSettings(Object.fromEntries(names.map((name) => [name, ' '])))

    expect(settings).toEqual(readServeSettings({}))
  })

  test.each<[Environment, string]>([
    [{ PORT: '65536' }, 'PORT: "65536" is not a port'],
    [{ PORT: '-1' }, 'PORT: "-1" is not a port'],
    [{ PORT: '80a' }, 'PORT: "80a" is not a port'],
    [{ SIGNALBOX_STORE: 'mysql://x' }, 'SIGNALBOX_STORE: must be memory:, sqlite:PATH or postgres://'],
    [{ REDIS_URL: 'localhost:6379' }, 'REDIS_URL: must be redis://… or rediss://…'],
    [{ SIGNALBOX_API_KEYS: 'sk-first-key,,' }, 'SIGNALBOX_API_KEYS: every key must begin with sk-'],
    [{ SIGNALBOX_API_KEYS: 'pk-first-key' }, 'SIGNALBOX_API_KEYS: every key must begin with sk-'],
    [{ SIGNALBOX_CREDIT: '-5' }, 'SIGNALBOX_CREDIT: "-5" is not a dollar amount such as 25 or 0.50'],
    [{ SIGNALBOX_CREDIT: '1e3' }, 'SIGNALBOX_CREDIT: "1e3" is not a dollar amount'],
    [{ SIGNALBOX_CREDIT: '0.0000000001' }, 'SIGNALBOX_CREDIT: "0.0000000001" is not a dollar amount'],
    [{ SIGNALBOX_PRICES: '/nowhere/p.json' }, 'SIGNALBOX_PRICES: the file /nowhere/p.json cannot be read (ENOENT)'],
    [{ SIGNALBOX_PRICES: fileWith('half.json', '{"currency"') }, 'does not hold valid JSON: line 1, column 12'],
    [{ SIGNALBOX_PRICES: fileWith('bad-row.json', { ...pricesAt('one') }) }, 'SIGNALBOX_PRICES: prices[0].amount: '],
    [{ SIGNALBOX_MODELS: fileWith('bad-models.json', [{ id: 'x' }]) }, 'SIGNALBOX_MODELS: models[0].kind: '],
    [{ SIGNALBOX_LOG: 'xml' }, 'SIGNALBOX_LOG: must be json or text'],
    [{ SIGNALBOX_ACCESS_LOG: '1.5' }, 'SIGNALBOX_ACCESS_LOG: "1.5" is not a share from 0 to 1'],
    [{ SIGNALBOX_ACCESS_LOG: 'yes' }, 'SIGNALBOX_ACCESS_LOG: "yes" is not a share from 0 to 1'],
    [{ SIGNALBOX_LIMITS: 'rpm=0' }, 'SIGNALBOX_LIMITS: rpm: "0" is not a whole number above 0'],
    [{ SIGNALBOX_LIMITS: 'rpm=1.5' }, 'SIGNALBOX_LIMITS: rpm: "1.5" is not a whole number above 0'],
    [{ SIGNALBOX_LIMITS: 'rps=5' }, 'SIGNALBOX_LIMITS: "rps=5" is not one of rpm=…, tpm=…, concurrency=…'],
    [{ SIGNALBOX_LIMITS: 'rpm=5,rpm=6' }, 'SIGNALBOX_LIMITS: rpm is given twice'],
    [{ SIGNALBOX_ACCOUNT_LIMITS: 'rpm=0' }, 'SIGNALBOX_ACCOUNT_LIMITS: rpm: "0" is not a whole number above 0'],
    [{ SIGNALBOX_END_USER_LIMITS: 'rps=5' }, 'SIGNALBOX_END_USER_LIMITS: "rps=5" is not one of rpm=…'],
    [{ SIGNALBOX_PLANS: fileWith('no-plans.json', [{}]) }, 'SIGNALBOX_PLANS: must be an object of plans by name'],
    [
      { SIGNALBOX_PLANS: fileWith('bad-plans.json', { free: { limits: { perUser: { requestsPerMinute: 1 } } } }) },
      'SIGNALBOX_PLANS: plans.free.limits.perUser is unknown; did you mean perEndUser?',
    ],
    [
      { SIGNALBOX_PLANS: fileWith('zero-plans.json', { free: { limits: { perKey: { concurrency: 0 } } } }) },
      'SIGNALBOX_PLANS: plans.free.limits.perKey.concurrency must be a positive number',
    ],
    [{ SIGNALBOX_BILLING: 'postpaid' }, 'SIGNALBOX_BILLING: must be prepaid, metered or off'],
    [
      { SIGNALBOX_BILLING: 'metered' },
      'SIGNALBOX_BILLING: metered needs prices: set SIGNALBOX_PRICES or SIGNALBOX_LIST_PRICES',
    ],
    [{ SIGNALBOX_THRESHOLDS: '50,101' }, 'SIGNALBOX_THRESHOLDS: "101" is not a percent above 0 and at most 100'],
    [{ SIGNALBOX_THRESHOLDS: 'caps=x' }, 'SIGNALBOX_THRESHOLDS: caps: "x" is not a percent above 0'],
    [
      { SIGNALBOX_CORS_ORIGINS: 'https://app.example/' },
      'SIGNALBOX_CORS_ORIGINS: cors: origins: "https://app.example/"',
    ],
    [
      { SIGNALBOX_CORS_ORIGINS: 'app.example' },
      'must be an origin as browsers send it, such as https://app.example.com',
    ],
    [{ SIGNALBOX_TIER: 'gold' }, 'SIGNALBOX_TIER: must be paid or free'],
    [{ SIGNALBOX_TIMEOUTS: 'idle=60' }, 'SIGNALBOX_TIMEOUTS: idle: "60" is not a duration such as 250ms'],
    [{ SIGNALBOX_TIMEOUTS: 'read=60s' }, 'SIGNALBOX_TIMEOUTS: "read=60s" is not one of connect=…'],
    [{ SIGNALBOX_TIMEOUTS: 'idle=0s' }, 'SIGNALBOX_TIMEOUTS: idle: "0s" must be longer than 0'],
    [{ SIGNALBOX_HOLD_TTL: '0m' }, 'SIGNALBOX_HOLD_TTL: "0m" must be longer than 0'],
    [{ SIGNALBOX_SHUTDOWN_DELAY: '0' }, 'SIGNALBOX_SHUTDOWN_DELAY: "0" is not a duration such as 250ms'],
    [{ SIGNALBOX_TASK_RETENTION: '0d' }, 'SIGNALBOX_TASK_RETENTION: "0d" is less than 1d, the time'],
    [
      { SIGNALBOX_TASK_RETENTION: '23h' },
      'SIGNALBOX_TASK_RETENTION: "23h" is less than 1d, the time for which an Idempotency-Key returns its task',
    ],
    [
      { SIGNALBOX_EXPECTED_INSTANCES: '4' },
      'SIGNALBOX_EXPECTED_INSTANCES: has no effect without REDIS_URL: every process would grant the full limit',
    ],
  ])('is refused with %j, naming the variable', (environment, message) => {
    expect(() => readServeSettings(environment)).toThrow(SettingError)
    expect(() => readServeSettings(environment)).toThrow(message)
  })

  test('a Redis URL with a slip in it is refused without its password', () => {
    expect(() => readServeSettings({ REDIS_URL: 'http://:canary-7f3a@cache.example' })).not.toThrow('canary-7f3a')
  })

  test('may have no shutdown delay', () => {
    expect(readServeSettings({ SIGNALBOX_SHUTDOWN_DELAY: '0s' }).shutdownDelayMs).toBe(0)
  })

  test('may keep tasks indefinitely', () => {
    expect(readServeSettings({ SIGNALBOX_TASK_RETENTION: 'forever' }).taskRetentionDays).toBe(Number.POSITIVE_INFINITY)
  })

  test('an operator key that is too short is refused without showing it', () => {
    const refused = (text: string) => () => readServeSettings({ SIGNALBOX_OPERATOR_KEY: text })

    for (const text of ['short-canary', 'long enough but with spaces canary']) {
      expect(refused(text)).toThrow('SIGNALBOX_OPERATOR_KEY: must have at least 24 characters and hold no spaces')
      expect(refused(text)).not.toThrow(/canary/)
    }
  })

  test('may hold several keys of a vendor, each taken once', () => {
    const vendors = configuredVendors(
      { OPENAI_API_KEY: ' key-one, key-two,,key-one', VOYAGE_API_KEY: ' , ' },
      undefined,
    )
    const found = new Map(vendors.map(({ vendor, state }) => [vendor.id, { keys: vendor.apiKeys, state }]))

    expect(found.get('openai')).toEqual({ keys: ['key-one', 'key-two'], state: 'configured' })
    expect(found.get('voyage')).toEqual({ keys: [], state: 'not configured' })
  })

  test('names the variable of a vendor whose base URL is none', () => {
    expect(() => configuredVendors({ GEMINI_BASE_URL: 'example.com' }, undefined)).toThrow(
      'GEMINI_BASE_URL: "example.com" is not an http or https URL',
    )
  })
})

describe('servers of OpenAI’s dialect', () => {
  const found = (environment: Record<string, string>, standIns?: string, named: string[] = []) =>
    configuredVendors(environment, standIns, new Set(named))
      .slice(6)
      .map(({ vendor, state }) => [vendor.id, vendor.origin, vendor.apiKeys.join('+'), state])

  test('are configured by their usual variables, and else not listed', () => {
    expect(found({})).toEqual([])
    expect(
      found({ GROQ_API_KEY: 'one,two', HF_TOKEN: 'hf', ZHIPU_API_KEY: 'z', CLOUDFLARE_API_TOKEN: 'wrangler' }),
    ).toEqual([
      ['zai', 'https://api.z.ai', 'z', 'configured'],
      ['groq', 'https://api.groq.com', 'one+two', 'configured'],
      ['huggingface', 'https://router.huggingface.co', 'hf', 'configured'],
    ])
    expect(found({ GROQ_API_KEY: 'k', GROQ_BASE_URL: 'http://proxy.example/groq/v1' })).toEqual([
      ['groq', 'http://proxy.example', 'k', 'configured'],
    ])
    expect(found({ CLOUDFLARE_API_KEY: 'k', CLOUDFLARE_ACCOUNT_ID: 'abc' })).toEqual([
      ['cloudflare', 'https://api.cloudflare.com', 'k', 'configured'],
    ])
  })

  test('on this machine need only a model that names them, or their address', () => {
    expect(found({}, undefined, ['ollama'])).toEqual([['ollama', 'http://localhost:11434', '', 'configured']])
    expect(found({ VLLM_BASE_URL: 'http://gpu.example:8000/v1' })).toEqual([
      ['vllm', 'http://gpu.example:8000', '', 'configured'],
    ])
  })

  test('report what to set if a model names them and something is missing', () => {
    const [groq] = configuredVendors({}, undefined, new Set(['groq'])).slice(6)

    expect(groq).toMatchObject({ state: 'not configured', vendor: { apiKeys: [] } })
    expect(groq?.vendor.configuredBy).toMatch(/^GROQ_API_KEY /)
    expect(() => found({ CLOUDFLARE_API_KEY: 'k' }, undefined, ['cloudflare'])).toThrow(
      /^CLOUDFLARE_ACCOUNT_ID: set it/,
    )
    expect(() => found({ GROQ_BASE_URL: 'groq.example' })).toThrow(
      'GROQ_BASE_URL: "groq.example" is not an http or https URL',
    )
    expect(found({}, undefined, ['cloudflare'])).toEqual([
      ['cloudflare', 'https://api.cloudflare.com', '', 'not configured'],
    ])
  })

  test('have stand-ins with --sandbox if a model names them', () => {
    expect(found({}, 'http://127.0.0.1:9', ['groq', 'ollama'])).toEqual([
      ['groq', 'http://127.0.0.1:9', 'stand-in', 'stand-in'],
      ['ollama', 'http://127.0.0.1:9', 'stand-in', 'stand-in'],
    ])
  })
})

describe('Amazon Bedrock', () => {
  const found = (environment: Record<string, string>, standIns?: string, named: string[] = []) =>
    configuredVendors(environment, standIns, new Set(named))
      .slice(6)
      .map(({ vendor, state }) => [vendor.id, vendor.origin, vendor.apiKeys, state])
  const origin = 'https://bedrock-runtime.eu-central-1.amazonaws.com'
  const AWS_REGION = 'eu-central-1'

  test('is configured by a region with a key of its own, with keys of AWS or with a profile', () => {
    expect(found({ AWS_REGION, AWS_BEARER_TOKEN_BEDROCK: 'one,two' })).toEqual([
      ['amazon-bedrock', origin, ['one', 'two'], 'configured'],
      ['anthropic-bedrock', origin, ['one', 'two'], 'configured'],
    ])
    for (const keys of [{ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }, { AWS_PROFILE: 'team' }])
      expect(found({ AWS_DEFAULT_REGION: AWS_REGION, ...keys }).map(([id, at, , state]) => [id, at, state])).toEqual([
        ['amazon-bedrock', origin, 'configured'],
        ['anthropic-bedrock', origin, 'configured'],
      ])
    expect(
      found({
        AWS_REGION,
        AWS_BEARER_TOKEN_BEDROCK: 'k',
        AWS_ENDPOINT_URL_BEDROCK_RUNTIME: 'https://vpce.example',
        AWS_ACCESS_KEY_ID: 'unused',
      })[0],
    ).toEqual(['amazon-bedrock', 'https://vpce.example', ['k'], 'configured'])
  })

  test('is not configured by keys of AWS alone, which may be there for something else', () => {
    expect(found({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' })).toEqual([])
    expect(found({ AWS_REGION })).toEqual([])
  })

  test('says what is missing or cannot be used, and has stand-ins', () => {
    expect(() => found({ AWS_BEARER_TOKEN_BEDROCK: 'k' })).toThrow(/^AWS_REGION: set it to the region/)
    expect(() => found({ AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_REGION: 'mars' })).toThrow(/^AWS_REGION: .*"mars"/)
    expect(() => found({ AWS_ACCESS_KEY_ID: 'a' }, undefined, ['amazon-bedrock'])).toThrow(/^AWS_REGION: set it/)
    expect(found({}, undefined, ['amazon-bedrock'])).toEqual([
      ['amazon-bedrock', 'https://not-set.invalid', [], 'not configured'],
    ])
    expect(found({}, 'http://127.0.0.1:9', ['anthropic-bedrock'])).toEqual([
      ['anthropic-bedrock', 'http://127.0.0.1:9', ['stand-in'], 'stand-in'],
    ])
  })
})

describe('Azure OpenAI and Claude in Foundry', () => {
  const azure = { AZURE_OPENAI_API_KEY: 'k', AZURE_OPENAI_ENDPOINT: 'https://res.openai.azure.com/' }
  const found = (environment: Record<string, string>, standIns?: string, named: string[] = []) =>
    configuredVendors(environment, standIns, new Set(named))
      .slice(6)
      .map(({ vendor, state }) => [vendor.id, vendor.origin, state])

  test('are configured by the address of the resource and its key', () => {
    expect(found(azure)).toEqual([['azure-openai', 'https://res.openai.azure.com', 'configured']])
    expect(
      found({
        ANTHROPIC_FOUNDRY_API_KEY: 'k',
        ANTHROPIC_FOUNDRY_BASE_URL: 'https://res.services.ai.azure.com/anthropic',
      }),
    ).toEqual([['anthropic-foundry', 'https://res.services.ai.azure.com', 'configured']])
    expect(found({}, 'http://127.0.0.1:9', ['azure-openai'])).toEqual([
      ['azure-openai', 'http://127.0.0.1:9', 'stand-in'],
    ])
  })

  test('say what is missing or cannot be used', () => {
    expect(() => found({ AZURE_OPENAI_API_KEY: 'k' })).toThrow(/^AZURE_OPENAI_ENDPOINT: set it/)
    expect(() => found({ ...azure, AZURE_OPENAI_API_VERSION: 'latest' })).toThrow(/AZURE_OPENAI.*apiVersion.*latest/)
    expect(() => found({ ...azure, AZURE_OPENAI_ENDPOINT: 'res' })).toThrow(/^AZURE_OPENAI_ENDPOINT: /)
    expect(found({ AZURE_OPENAI_ENDPOINT: azure.AZURE_OPENAI_ENDPOINT })).toEqual([
      ['azure-openai', 'https://res.openai.azure.com', 'not configured'],
    ])
    expect(found({}, undefined, ['anthropic-foundry'])).toEqual([
      ['anthropic-foundry', 'https://not-set.invalid', 'not configured'],
    ])
  })
})

describe('Vertex AI', () => {
  const place = { GOOGLE_CLOUD_PROJECT: 'our-project', GOOGLE_CLOUD_LOCATION: 'eu' }
  const found = (environment: Record<string, string>, standIns?: string, named: string[] = []) =>
    configuredVendors(environment, standIns, new Set(named))
      .slice(6)
      .map(({ vendor, state }) => [vendor.id, vendor.origin, state])

  test('is configured by a project and a location, with Claude', () => {
    const origin = 'https://aiplatform.eu.rep.googleapis.com'
    expect(found(place)).toEqual([
      ['vertex', origin, 'configured'],
      ['anthropic-vertex', origin, 'configured'],
    ])
    expect(found({ ...place, GOOGLE_VERTEX_BASE_URL: 'https://proxy.example/v1' })[0]?.[1]).toBe(
      'https://proxy.example',
    )
    expect(found({}, 'http://127.0.0.1:9', ['anthropic-vertex'])).toEqual([
      ['anthropic-vertex', 'http://127.0.0.1:9', 'stand-in'],
    ])
  })

  test('is configured by a key alone, without Claude', () => {
    const key = { GOOGLE_VERTEX_API_KEY: 'AQ.key-0123456789' }
    expect(found({ ...key, GOOGLE_CLOUD_PROJECT: 'our-project' })).toEqual([
      ['vertex', 'https://aiplatform.googleapis.com', 'configured'],
    ])
  })

  test('is not what a project means that another program needs', () => {
    expect(found({ GOOGLE_CLOUD_PROJECT: 'our-project', GOOGLE_APPLICATION_CREDENTIALS: 'key.json' })).toEqual([])
    expect(found({ GOOGLE_CLOUD_LOCATION: 'global' })).toEqual([])
  })

  test('says what is missing or cannot be used', () => {
    expect(() => found({ GOOGLE_CLOUD_PROJECT: 'our-project' }, undefined, ['vertex'])).toThrow(
      /^GOOGLE_CLOUD_LOCATION: set it to global, us, eu/,
    )
    expect(() => found({ GOOGLE_CLOUD_LOCATION: 'eu' }, undefined, ['anthropic-vertex'])).toThrow(
      /^GOOGLE_CLOUD_PROJECT: set it/,
    )
    expect(() => found({ ...place, GOOGLE_CLOUD_LOCATION: 'europe' })).toThrow(/GOOGLE_CLOUD_LOCATION.*"europe"/)
    expect(() => found({ ...place, GOOGLE_CLOUD_PROJECT: 'x y' })).toThrow(/GOOGLE_CLOUD_PROJECT.*"x y"/)
    expect(found({}, undefined, ['vertex'])).toEqual([['vertex', 'https://not-set.invalid', 'not configured']])
  })
})

describe('the models of serve', () => {
  test('are known to the commands for keys, too', () => {
    const catalog = configuredCatalog({ SIGNALBOX_MODELS: fileWith('models-2.json', models) })

    expect(catalog.find('our-chat')?.upstream).toBe('large')
    expect(catalog.find('cl-sonnet-4-6')?.vendor).toBe('anthropic')
  })
})

/** The first price of `our-chat`. */
function amountOf(served: ServePrices | undefined): string | undefined {
  const prices = served?.prices
  if (prices === undefined) return undefined
  const list = 'quote' in prices ? prices : prices.forCatalog(createCatalog([]))
  return list.quote('our-chat', {})?.prices[0]?.amount
}

test('list prices keep the rows of the price file, and read them again', () => {
  const path = fileWith('beside.json', pricesAt('1'))
  const { prices } = readServeSettings({ SIGNALBOX_PRICES: path, SIGNALBOX_LIST_PRICES: '1.2' })
  expect(prices?.source).toContain('list prices times 1.2')
  expect(amountOf(prices)).toBe('1')
  fileWith('beside.json', pricesAt('2'))

  prices!.reload()

  expect(amountOf(prices)).toBe('2')
  expect(() => readServeSettings({ SIGNALBOX_LIST_PRICES: 'many' })).toThrow(
    'SIGNALBOX_LIST_PRICES: a markup must be a decimal string above zero',
  )
})

test('several files of models are read one after the other', () => {
  const first = fileWith('first.json', [{ id: 'one', kind: 'chat', vendor: 'openai' }])
  const second = fileWith('second.json', [
    { id: 'one', kind: 'chat', vendor: 'anthropic' },
    { id: 'two', kind: 'chat', vendor: 'openai' },
  ])

  const catalog = configuredCatalog({ SIGNALBOX_MODELS: `${first}, ${second}` })

  expect(catalog.find('one')?.vendor).toBe('anthropic')
  expect(catalog.find('two')?.vendor).toBe('openai')
})

describe('a price file that is read again', () => {
  test('replaces the prices', () => {
    const path = fileWith('reloaded.json', pricesAt('1'))
    const { prices } = readServeSettings({ SIGNALBOX_PRICES: path })
    fileWith('reloaded.json', pricesAt('2'))

    prices!.reload()

    expect(amountOf(prices)).toBe('2')
  })

  test.each([
    [
      { currency: 'USD', prices: [{ model: 'x', meter: 'request', amount: '-1' }] },
      'SIGNALBOX_PRICES: prices[0].amount: ',
    ],
    ['', 'SIGNALBOX_PRICES: the file '],
  ])('keeps the last good prices when it holds %j', (content, message) => {
    const path = fileWith('spoiled.json', pricesAt('1'))
    const { prices } = readServeSettings({ SIGNALBOX_PRICES: path })
    fileWith('spoiled.json', content)

    expect(() => prices!.reload()).toThrow(message)

    expect(amountOf(prices)).toBe('1')
  })

  test('keeps the last good prices when a row names an unknown vendor', () => {
    const path = fileWith('unknown-vendor.json', pricesAt('1'))
    const { prices } = readServeSettings({ SIGNALBOX_PRICES: path })
    const list = (prices!.prices as CatalogPrices).forCatalog(createCatalog([], new VendorModels([])))
    fileWith('unknown-vendor.json', {
      currency: 'USD',
      prices: [{ model: 'openia/gpt-4o', meter: 'request', amount: '2' }],
    })

    expect(() => prices!.reload()).toThrow(
      'SIGNALBOX_PRICES: prices[0]: "openia/gpt-4o" names an unknown vendor; did you mean openai?',
    )

    expect(list.quote('our-chat', {})?.prices[0]?.amount).toBe('1')
  })
})

describe('SIGNALBOX_UNKNOWN_MODELS', () => {
  const rows = [{ model: 'gpt-*', meter: 'request', amount: '1' }]

  test.each([
    ['refuse', 'refuse'],
    ['newest of its family', { pricedAs: 'newest of its family' }],
    [fileWith('unknown-models.json', { currency: 'USD', prices: rows }), { pricedAs: rows }],
  ])('reads %s as the rule for ids that no catalog knows', (SIGNALBOX_UNKNOWN_MODELS, unknownModels) => {
    expect(readServeSettings({ SIGNALBOX_UNKNOWN_MODELS }).unknownModels).toEqual(unknownModels)
  })

  test('is an error if the file is missing', () => {
    expect(() => readServeSettings({ SIGNALBOX_UNKNOWN_MODELS: 'newest' })).toThrow('SIGNALBOX_UNKNOWN_MODELS: ')
  })
})
