import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { expressHandler } from '../../../src/adapters/express.ts'
import { type FastifyGatewayOptions, fastifyGateway } from '../../../src/adapters/fastify.ts'
import { fetchHandler } from '../../../src/adapters/fetch.ts'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { adminHandler } from '../../../src/admin/index.ts'
import { parseModelDefinitions } from '../../../src/catalog/parse-model-definitions.ts'
import { createClient } from '../../../src/client/create-client.ts'
import { consoleHandler } from '../../../src/console/index.ts'
import * as credentials from '../../../src/credentials/index.ts'
import { optionSchemas } from '../../../src/gateway/check-options.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { FixedKey, GatewayOptions } from '../../../src/gateway/options.ts'
import * as main from '../../../src/index.ts'
import { mcpHandler } from '../../../src/mcp/index.ts'
import { metricsHandler, prometheus } from '../../../src/metrics/index.ts'
import { otel, otelMetrics } from '../../../src/otel/index.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { redisCache, redisLimits } from '../../../src/stores/redis/redis-limits.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { countingIds, fakeClock, sandboxVendors } from '../../../src/testing/index.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import tsconfig from '../../../tsconfig.json' with { type: 'json' }

type Extra = Readonly<Record<string, unknown>>

/** An options type, the path of its members in errors, and a call with the given members. */
type Place = readonly [type: string, path: string, call: (extra: Extra) => unknown]

const gateway = createGateway({ vendors: [], billing: 'off' })
const CALLER = { accountId: 'a', keyId: 'k', tier: 'paid' } as const
const OPERATOR_KEY = 'operator-key-of-24-letters'
const ROW = { id: 'm', kind: 'chat', vendor: 'openai' } as const
const PRICE = { model: 'm', meter: 'request', amount: '1' } as const

const withOptions = (options: object): unknown => createGateway({ vendors: [], billing: 'off', ...options } as never)
const withRow = (row: object): unknown => withOptions({ models: [{ ...ROW, ...row }] })
const preset = (members: object): unknown => main.openaiCompatible({ ...presets.groq, ...members } as never)
const vendorNames = {
  openai: 'OpenAIOptions',
  anthropic: 'AnthropicOptions',
  anthropicFoundry: 'AnthropicFoundryOptions',
  anthropicBedrock: 'AnthropicBedrockOptions',
  anthropicVertex: 'AnthropicVertexOptions',
  azureOpenai: 'AzureOpenAIOptions',
  amazonBedrock: 'AmazonBedrockOptions',
  cohere: 'CohereOptions',
  dashscope: 'DashScopeOptions',
  gemini: 'GeminiOptions',
  vertex: 'VertexOptions',
  voyage: 'VoyageOptions',
} as const
const credentialNames = {
  awsBedrock: 'AwsBedrockOptions',
  awsSignature: 'AwsSignatureOptions',
  entraClientSecret: 'EntraClientSecretOptions',
  entraManagedIdentity: 'EntraManagedIdentityOptions',
  entraWorkloadIdentity: 'EntraWorkloadIdentityOptions',
  googleDefaultCredentials: 'GoogleDefaultOptions',
  googleMetadata: 'GoogleMetadataOptions',
  googleServiceAccount: 'GoogleServiceAccountOptions',
  googleWorkloadIdentity: 'GoogleWorkloadIdentityOptions',
} as const

const vendors: Pick<typeof main, keyof typeof vendorNames> = main
const providers: Pick<typeof credentials, keyof typeof credentialNames> = credentials

const registered = (options: FastifyGatewayOptions): Promise<void> =>
  new Promise((resolve, reject) =>
    fastifyGateway({} as never, options, (error) => (error === undefined ? resolve() : reject(error))),
  )

const PLACES: readonly Place[] = [
  ['GatewayOptions', 'createGateway: ', withOptions],
  ['FixedKey', 'createGateway: keys[0].', (x) => withOptions({ keys: [{ key: 'k', account: 'a', ...x }] })],
  [
    'RateLimits',
    'createGateway: keys[0].limits.',
    (x) => withOptions({ keys: [{ key: 'k', account: 'a', limits: x }] }),
  ],
  ['LimitOptions', 'createGateway: limits.', (x) => withOptions({ limits: x })],
  ['LimitScopes', 'createGateway: limits.perAccount.', (x) => withOptions({ limits: { perAccount: x } })],
  ['Plan', 'createGateway: plans.free.', (x) => withOptions({ plans: { free: x } })],
  [
    'Plan',
    'createGateway: plans.free.limits.perKey.',
    (x) => withOptions({ plans: { free: { limits: { perKey: x } } } }),
  ],
  ['Timeouts', 'createGateway: timeouts.', (x) => withOptions({ timeouts: x })],
  ['RoutingOptions', 'createGateway: routing.', (x) => withOptions({ routing: x })],
  [
    'FallbackPolicy',
    'createGateway: routing.fallback.',
    (x) => withOptions({ routing: { fallback: { statuses: [], ...x } } }),
  ],
  ['ResponsesOptions', 'createGateway: responses.', (x) => withOptions({ responses: x })],
  ['CatalogOptions', 'createGateway: catalog.', (x) => withOptions({ catalog: { from: 'catalog.json', ...x } })],
  ['CacheOptions', 'createGateway: cache.', (x) => withOptions({ cache: x })],
  ['BatchOptions', 'createGateway: batches.', (x) => withOptions({ batches: x })],
  ['CacheRule', 'createGateway: cache.rules[0].', (x) => withOptions({ cache: { rules: [x] } })],
  ['CacheControl', 'cache.clear: ', (x) => gateway.cache.clear(x)],
  ['AccountStorageOptions', 'createGateway: accountStorage.', (x) => withOptions({ accountStorage: x })],
  ['OverloadOptions', 'createGateway: overload.', (x) => withOptions({ overload: x })],
  ['GatewayOptions', 'createGateway: usage.', (x) => withOptions({ usage: x })],
  ['UsageRetentionDays', 'createGateway: usage.retention.', (x) => withOptions({ usage: { retention: x } })],
  ['BillingOption', 'createGateway: billing.', (x) => withOptions({ billing: { mode: 'off', ...x } })],
  ['DisconnectPolicies', 'createGateway: disconnect.', (x) => withOptions({ disconnect: x })],
  ['UnknownInputTokens', 'createGateway: unknownInputTokens.', (x) => withOptions({ unknownInputTokens: x })],
  [
    'UnknownInputBounds',
    'createGateway: unknownInputTokens.models.m.',
    (x) => withOptions({ unknownInputTokens: { models: { m: x } } }),
  ],
  ['SpendingThresholds', 'createGateway: spendingThresholds.', (x) => withOptions({ spendingThresholds: x })],
  ['ModelDefinition', 'createGateway: models[0].', (x) => withRow(x)],
  ['CatalogModel', 'createGateway: models[0].', (x) => withOptions({ models: [{ ...main.defineModel(ROW), ...x }] })],
  ['ModelLimits', 'createGateway: models[0].limits.', (x) => withRow({ limits: x })],
  [
    'ModelLimits',
    'createGateway: models[0].limits.nativeDimensions.',
    (x) => withRow({ limits: { nativeDimensions: x } }),
  ],
  ['ImageAbilities', 'createGateway: models[0].image.', (x) => withRow({ image: x })],
  ['ImageAbilities', 'createGateway: models[0].image.freeSize.', (x) => withRow({ image: { freeSize: x } })],
  [
    'ImageAbilities',
    'createGateway: models[0].image.referenceImages.',
    (x) => withRow({ image: { referenceImages: x } }),
  ],
  ['VideoAbilities', 'createGateway: models[0].video.', (x) => withRow({ video: x })],
  ['VideoAbilities', 'createGateway: models[0].video.durations.', (x) => withRow({ video: { durations: x } })],
  ['SpeechAbilities', 'createGateway: models[0].speech.', (x) => withRow({ speech: x })],
  ['ModelRoute', 'createGateway: models[0].routes[0].', (x) => withRow({ routes: [{ vendor: 'openai', ...x }] })],
  [
    'ModelDefinition',
    'createGateway: vendors[0].models[0].',
    (x) => withOptions({ vendors: [{ ...main.openai(), models: [{ ...ROW, ...x }] }] }),
  ],
  ['ModelDefinition', 'models[0].', (x) => parseModelDefinitions([{ ...ROW, ...x }])],
  ['PriceFile', 'prices: ', (x) => createGateway({ vendors: [], prices: { currency: 'USD', prices: [], ...x } })],
  [
    'PriceRow',
    'prices[0].',
    (x) => createGateway({ vendors: [], prices: { currency: 'USD', prices: [{ ...PRICE, ...x }] } }),
  ],
  ['PriceRow', 'prices[0].', (x) => main.reloadablePrices({ currency: 'USD', prices: [{ ...PRICE, ...x }] })],
  ['ListPriceOptions', 'listPrices: ', (x) => main.listPrices(x)],
  ['InProcessOptions', 'gateway: ', (x) => gateway.client(CALLER, x)],
  ['RouteOverride', 'gateway: route.', (x) => gateway.client(CALLER, { route: x })],
  ['Principal', 'gateway: ', (x) => gateway.client({ ...CALLER, ...x })],
  ['KeyScopes', 'gateway: scopes.', (x) => gateway.client({ ...CALLER, scopes: x })],
  [
    'SpendingCap',
    'gateway: keySpendingCap.',
    (x) => gateway.client({ ...CALLER, keySpendingCap: { amount: 1n, period: 'day', ...x } }),
  ],
  ['Gateway', 'gateway.close: ', (x) => gateway.close(x)],
  ['NewKey', 'keys.create: ', (x) => gateway.keys.create({ accountId: 'a', ...x })],
  ['KeyScopes', 'keys.create: scopes.', (x) => gateway.keys.create({ accountId: 'a', scopes: x })],
  ['RateLimits', 'keys.create: limits.', (x) => gateway.keys.create({ accountId: 'a', limits: x })],
  [
    'SpendingCap',
    'keys.create: spendingCap.',
    (x) => gateway.keys.create({ accountId: 'a', spendingCap: { amount: 1n, period: 'day', ...x } }),
  ],
  ['Keys', 'keys.update: ', (x) => gateway.keys.update('key', x)],
  ['RateLimits', 'keys.update: limits.', (x) => gateway.keys.update('key', { limits: x })],
  ['Keys', 'keys.rotate: ', (x) => gateway.keys.rotate('key', x)],
  ['NewAccount', 'accounts.create: ', (x) => gateway.accounts.create(x)],
  ['AccountUpdate', 'accounts.update: ', (x) => gateway.accounts.update('a', x)],
  ['Accounts', 'accounts.freeze: ', (x) => gateway.accounts.freeze('a', { reason: 'r', ...x })],
  ['Accounts', 'accounts.credit: ', (x) => gateway.accounts.credit('a', '1', x)],
  ['Accounts', 'accounts.ledger: ', (x) => gateway.accounts.ledger('a', x)],
  ['AccountsPageOptions', 'accounts.list: ', (x) => gateway.accounts.list(x)],
  ['AdjustOptions', 'accounts.adjust: ', (x) => gateway.accounts.adjust('a', { amount: '1', reason: 'r', ...x })],
  ['RefundOptions', 'accounts.refund: ', (x) => gateway.accounts.refund('c', { reason: 'r', ...x })],
  ['JournalPageOptions', 'accounts.journal: ', (x) => gateway.accounts.journal('a', x)],
  ['JournalRange', 'accounts.journalCsv: ', (x) => gateway.accounts.journalCsv('a', x)[Symbol.asyncIterator]().next()],
  ['KeysPageOptions', 'keys.page: ', (x) => gateway.keys.page(x)],
  ['HoldsPageOptions', 'holds.list: ', (x) => gateway.holds.list(x)],
  ['Holds', 'holds.settle: ', (x) => gateway.holds.settle('h', '1', x)],
  ['TasksPageOptions', 'tasks.list: ', (x) => gateway.tasks.list('a', x)],
  ['AllTasksOptions', 'tasks.listAll: ', (x) => gateway.tasks.listAll(x)],
  ['AllDeliveriesOptions', 'webhooks.listAll: ', (x) => gateway.webhooks.listAll(x)],
  ['EjectOptions', 'vendorKeys.eject: ', (x) => gateway.vendorKeys.eject('c', x)],
  ['Webhooks', 'webhooks.rotateSecret: ', (x) => gateway.webhooks.rotateSecret('a', x)],
  ['AccessLogOptions', 'accessLog: ', (x) => main.accessLog(main.silentLogger, x)],
  ['MountOptions', 'nodeHandler: ', (x) => nodeHandler(gateway, x)],
  ['FetchHandlerOptions', 'fetchHandler: ', (x) => fetchHandler(gateway, x)],
  ['CorsOptions', 'cors: ', (x) => nodeHandler(gateway, { cors: { origins: '*', ...x } })],
  ['ExpressHandlerOptions', 'expressHandler: ', (x) => expressHandler(gateway, x)],
  ['FastifyGatewayOptions', 'fastifyGateway: ', (x) => registered({ gateway, ...x })],
  ['McpHandlerOptions', 'mcpHandler: ', (x) => mcpHandler(gateway, x)],
  ['AdminHandlerOptions', 'adminHandler: ', (x) => adminHandler(gateway, x)],
  [
    'OperatorKey',
    'operatorKeys[0].',
    (x) => adminHandler(gateway, { operatorKeys: [{ key: OPERATOR_KEY, name: 'o', ...x }] }),
  ],
  ['ConsoleHandlerOptions', 'consoleHandler: ', (x) => consoleHandler(gateway, x)],
  ['PrometheusOptions', 'prometheus: ', (x) => prometheus(x)],
  [
    'MetricsHandlerOptions',
    'metricsHandler: ',
    (x) => metricsHandler(prometheus(), { operatorKey: OPERATOR_KEY, ...x }),
  ],
  ['CaptureOptions', 'capture: ', (x) => main.capture({ sink: () => undefined, ...x })],
  ['JsonAnswerOptions', 'jsonAnswer: ', (x) => main.jsonAnswer(x)],
  ['RedactionOptions', 'redact: ', (x) => main.redact([], x)],
  ['ModerationGuardOptions', 'moderationGuard: ', (x) => main.moderationGuard({ model: 'm', block: { a: 1 }, ...x })],
  ['OtelOptions', 'otel: ', (x) => otel(x)],
  ['OtelMetricsOptions', 'otelMetrics: ', (x) => otelMetrics(prometheus(), x)],
  ['MemoryStoreOptions', 'memoryStore: ', (x) => main.memoryStore(x)],
  ['DirectoryBlobsOptions', 'directoryBlobs: ', (x) => main.directoryBlobs({ path: 'x', ...x })],
  ['MemoryCacheOptions', 'memoryCache: ', (x) => main.memoryCache(x)],
  ['RedisCacheOptions', 'redisCache: ', (x) => redisCache({ client: {} as never, ...x })],
  ['SqliteStoreOptions', 'sqliteStore: ', (x) => sqliteStore({ path: ':memory:', ...x })],
  ['PostgresStoreOptions', 'postgresStore: ', (x) => postgresStore({ pool: {} as never, ...x })],
  ['RedisLimitsOptions', 'redisLimits: ', (x) => redisLimits({ client: {} as never, ...x })],
  ['UndiciTransportOptions', 'undiciTransport: ', (x) => main.undiciTransport(x)],
  ['SandboxOptions', 'sandboxVendors: ', (x) => sandboxVendors(x)],
  ['FakeClockOptions', 'fakeClock: ', (x) => fakeClock(x)],
  ['CountingIdsOptions', 'countingIds: ', (x) => countingIds(x)],
  ...Object.entries(vendorNames).map(
    ([name, type]): Place => [type, `${name}: `, (x) => vendors[name as keyof typeof vendorNames](x as never)],
  ),
  [
    'OpenAICompatibleOptions',
    'openaiCompatible: ',
    (x) => main.openaiCompatible({ id: 'own', baseURL: 'http://v.example', models: [], ...x }),
  ],
  ['PresetOptions', 'openaiCompatible(presets.groq): ', (x) => main.openaiCompatible(presets.groq, x)],
  [
    'ModelDefinition',
    'openaiCompatible(presets.groq): models[0].',
    (x) => main.openaiCompatible(presets.groq, { models: [{ ...ROW, ...x }] }),
  ],
  ['WeightedKey', 'openai: apiKey[0].', (x) => main.openai({ apiKey: [{ key: 'k', weight: 1, ...x }] })],
  ['TlsMaterial', 'tls.', (x) => main.openai({ tls: x })],
  ['Preset', 'openaiCompatible: the preset "groq": ', (x) => preset(x)],
  [
    'PresetReasoning',
    'openaiCompatible: the preset "groq": reasoning.',
    (x) => preset({ reasoning: { back: 'never', ...x } }),
  ],
  ['PresetToolChoice', 'openaiCompatible: the preset "groq": toolChoice.', (x) => preset({ toolChoice: x })],
  ['PresetResponses', 'openaiCompatible: the preset "groq": responses.', (x) => preset({ responses: x })],
  ['Preset', 'openaiCompatible: the preset "groq": embeddings.', (x) => preset({ embeddings: x })],
  ['Preset', 'openaiCompatible: the preset "groq": rerank.', (x) => preset({ rerank: x })],
  ['ErrorWords', 'openaiCompatible: the preset "groq": errors.', (x) => preset({ errors: x })],
  ['PresetDialect', 'openaiCompatible: the preset "groq": byModel[0].', (x) => preset({ byModel: [[/x/, x]] })],
  ...Object.entries(credentialNames).map(
    ([name, type]): Place => [type, `${name}: `, (x) => providers[name as keyof typeof credentialNames](x as never)],
  ),
]

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  return undefined
}

describe('an unknown member is refused, naming its path', () => {
  test.each(PLACES)('in %s at %s', async (_type, path, call) => {
    const error = await errorOf(() => call({ qqq: 1 }))

    expect(error).toBeInstanceOf(TypeError)
    const [start, known = ''] = (error as Error).message.split(' is unknown; known: ')
    expect(start).toBe(`${path}qqq`)
    // Every known member is suggested for a name with the same letters.
    for (const name of known.split(', ')) {
      const misspelt = `${name.toUpperCase()}_`
      const { message } = (await errorOf(() => call({ [misspelt]: 1 }))) as Error
      expect(message).toBe(`${path}${misspelt} is unknown; did you mean ${name}?`)
    }
  })
})

type Schemas = ReturnType<typeof optionSchemas>
type Names<Group> = keyof NonNullable<Group>
type Agrees<One, Other> = [One | Other] extends [One & Other] ? true : false
type GroupName =
  | 'batches'
  | 'cache'
  | 'catalog'
  | 'overload'
  | 'responses'
  | 'routing'
  | 'spendingThresholds'
  | 'timeouts'

test('the schemas of option groups have the members of their types', () => {
  const groups: {
    readonly [Name in GroupName]: Agrees<Names<GatewayOptions[Name]>, Names<z.input<Schemas[Name]>>>
  } = {
    ...{ batches: true, cache: true, catalog: true, overload: true, responses: true, routing: true },
    ...{ spendingThresholds: true, timeouts: true },
  }
  const ofKeys: Agrees<keyof FixedKey, keyof NonNullable<z.input<Schemas['keys']>>[number]> = true
  const ofRules: Agrees<
    Names<NonNullable<NonNullable<GatewayOptions['cache']>['rules']>[number]>,
    Names<NonNullable<NonNullable<z.input<Schemas['cache']>>['rules']>[number]>
  > = true

  expect(optionSchemas()).toMatchObject(Object.fromEntries(Object.keys(groups).map((name) => [name, {}])))
  expect([ofKeys, ofRules]).toEqual([true, true])
})

describe('options that are not there, and parts that are of another kind, are refused in words', () => {
  const required = {
    createClient,
    expressHandler,
    fetchHandler,
    nodeHandler,
    mcpHandler,
    adminHandler,
    consoleHandler,
    metricsHandler,
    redisLimits,
    redisCache,
    postgresStore,
    sqliteStore,
    ...main,
    ...credentials,
  }
  test.each([
    ['createGateway', [], 'options must be an object'],
    ['createClient', [], 'options must be an object'],
    ['redisLimits', [], 'options must be an object'],
    ['redisLimits', [{}], 'client must be one of ioredis, iovalkey or node-redis'],
    ['redisCache', [], 'options must be an object'],
    ['redisCache', [{}], 'client must be one of ioredis, iovalkey or node-redis'],
    ['postgresStore', [], 'options must be an object'],
    ['postgresStore', [{}], 'pool must be a pool of pg'],
    ['sqliteStore', [], 'options must be an object'],
    ['sqliteStore', [{}], 'set path to a file, or database to an open one'],
    ['directoryBlobs', [], 'options must be an object'],
    ['directoryBlobs', [{}], 'path must be the path of a folder'],
    ['moderationGuard', [], 'options must be an object'],
    ['capture', [], 'options must be an object'],
    ['azureOpenai', [], 'options must be an object'],
    ['amazonBedrock', [], 'options must be an object'],
    ['anthropicVertex', [], 'options must be an object'],
    ['vertex', [], 'options must be an object'],
    ['googleServiceAccount', [], 'options must be an object'],
    ['googleWorkloadIdentity', [], 'options must be an object'],
    ['openai', [null], 'options must be an object'],
    ['openai', [{ apiKey: 5 }], 'apiKey must be a string, a credential provider, or a list of these'],
    ['metricsHandler', [], 'options must be an object'],
    ...(
      ['expressHandler', 'fetchHandler', 'nodeHandler', 'mcpHandler', 'adminHandler', 'consoleHandler'] as const
    ).flatMap((name) =>
      [[], [{}], [createGateway]].map(
        (given) => [name, given, `${name}: gateway must be what createGateway returned`] as const,
      ),
    ),
    ['openai', [{ baseURL: 'api.example' }], 'baseURL must be an http(s) URL'],
    ['openaiCompatible', [{}], 'id must be lower-case letters, digits and dashes, such as my-server, not undefined'],
    ['openaiCompatible', ['groq'], 'unknown preset. Import one from signalbox/presets'],
    ['openaiCompatible', [{ id: 'own', baseURL: 'http://own.example' }], 'models must be a list'],
  ] as const)('%s(%j)', (name, given, message) => {
    expect(() => (required[name] as (...all: readonly unknown[]) => unknown)(...given)).toThrow(message)
  })
})

test('reports a Fastify mount without a gateway', async () => {
  await expect(registered({ gateway: createGateway as never })).rejects.toThrow(
    'gateway must be what createGateway returned',
  )
})

test('a key of a list that is not set is left out', () => {
  expect(main.openai({ apiKey: [undefined as never, 'a', ''] }).apiKeys).toEqual(['a'])
})

/** Parts of other options types, and options of the client and its calls: a browser loads no list of near names. */
const PARTS = ['CallOptions', 'ClientOptions', 'ConnectionOptions', 'EntraOptions', 'GoogleOptions', 'WaitOptions']

test('the sweep has every options type that an entry of the package exports', () => {
  const root = join(import.meta.dirname, '../../..')
  const { compilerOptions } = tsconfig
  const exported = Object.values(compilerOptions.paths).flatMap(([entry = '']) => [
    ...readFileSync(join(root, entry), 'utf8').matchAll(/\b[A-Z]\w*Options\b/g),
  ])
  const swept = new Set([...PLACES.map(([type]) => type), ...PARTS])
  const missing = new Set(exported.map(([name]) => name).filter((name) => !swept.has(name)))

  expect(exported.length).toBeGreaterThan(40)
  expect([...missing]).toEqual([])
})

test('an unknown option of the client is refused with those that there are', () => {
  expect(() => createClient({ baseURL: 'http://gateway.example/v1', timeout: 5 } as never)).toThrow(
    'createClient: timeout is unknown; known: baseURL, apiKey, fetch, timeoutMs, maxRetries, clock',
  )
})

test('members that are undefined are as absent, at start and in calls', () => {
  expect(() =>
    withOptions({
      limits: { requestsPerMinute: undefined },
      plans: undefined,
      timeouts: { idleMs: undefined },
      routing: { strategy: undefined, fallback: undefined },
      responses: { store: undefined },
      usage: { retention: { recordDays: undefined } },
      spendingThresholds: { caps: undefined },
      unknownInputTokens: { image: undefined },
      models: [{ ...ROW, limits: undefined, image: { freeSize: undefined } }],
      operatorKey: undefined,
      bodyLimitBytes: undefined,
    }),
  ).not.toThrow()
  expect(() => main.openai({ baseURL: undefined, apiKey: undefined, headers: undefined })).not.toThrow()
  expect(() => nodeHandler(gateway, { basePath: undefined })).not.toThrow()
})

test('accepts limits of one shape with undefined ones of the other', () => {
  for (const limits of [
    { requestsPerMinute: undefined, perAccount: { concurrency: 2 } },
    { requestsPerMinute: 2, perAccount: undefined },
  ])
    expect(() => createGateway({ vendors: [], billing: 'off', limits, plans: { free: { limits } } })).not.toThrow()
})

test('what an environment may lack has a type that says so', async () => {
  const { A_VARIABLE_THAT_IS_NOT_SET: unset } = process.env
  const options = { operatorKey: unset, webhookSecret: unset, limits: undefined, logger: undefined, cache: undefined }
  const fixed = { key: 'sk-of-the-test', account: 'a', tier: undefined, limits: undefined }

  const made = createGateway({ vendors: [], billing: 'off', ...options, keys: [fixed] })
  const { record } = await made.keys.create({ accountId: (await made.accounts.create({})).id, label: unset })

  expect(record.label).toBe('')
  expect(() => createClient({ baseURL: 'http://gateway.example/v1', apiKey: unset })).not.toThrow()
  await made.close()
})

test('options may be an instance of a class', () => {
  class Settings {
    readonly vendors = []
    readonly billing = 'off'
    get source(): string {
      return 'file'
    }
  }

  expect(() => createGateway(new Settings())).not.toThrow()
})
