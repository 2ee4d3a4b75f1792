import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { BUILT_IN_SNAPSHOT } from '../../src/catalog/vendor-models/snapshot.ts'
import type { Check } from '../../src/cli/check-command.ts'
import { runSignalbox } from '../../src/cli/signalbox.ts'
import { MIGRATIONS } from '../../src/stores/sqlite/sqlite-migrations.ts'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { runCommand } from './support/run-command.ts'

let sandbox: Sandbox
let origin: string
let folder: string
beforeAll(async () => {
  sandbox = sandboxVendors()
  origin = (await sandbox.listen()).origin
})
afterAll(() => sandbox.close())
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-check-'))
})
afterEach(() => {
  sandbox.reset()
  rmSync(folder, { recursive: true, force: true })
})

interface Outcome {
  readonly isGood: boolean
  readonly checks: readonly Check[]
  /** The one of this name. */
  of(name: string): Check | undefined
}

async function check(environment: Record<string, string>, ...words: string[]): Promise<Outcome> {
  const lines: string[] = []
  let isGood = true
  const print = (line: string): void => void lines.push(line)
  const fail = (): void => {
    isGood = false
  }
  const given = { SIGNALBOX_STORE: 'memory:', ...environment }
  await runSignalbox(['check', '--json', ...words], { environment: given, print, fail }, '0.0.0')
  expect(lines).toHaveLength(1)
  const report = JSON.parse(lines[0]!) as { object: string; ok: boolean; data: Check[] }
  expect(report).toMatchObject({ object: 'check', ok: isGood })
  return { isGood, checks: report.data, of: (name) => report.data.find((one) => one.name === name) }
}

const OPENAI = 'sk-openai-canary-7f3a'
const openai = (): Record<string, string> => ({ OPENAI_API_KEY: OPENAI, OPENAI_BASE_URL: origin })

describe('check, with every vendor', () => {
  test('asks each for its models with its key, and says of which it cannot tell', async () => {
    const { isGood, checks, of } = await check({
      ...openai(),
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: origin,
      GEMINI_API_KEY: 'k',
      GEMINI_BASE_URL: origin,
      DASHSCOPE_API_KEY: 'k',
      DASHSCOPE_BASE_URL: origin,
      VOYAGE_API_KEY: 'k',
      VOYAGE_BASE_URL: origin,
      GROQ_API_KEY: 'k',
      GROQ_BASE_URL: `${origin}/presets/groq/v1`,
      OLLAMA_BASE_URL: `${origin}/presets/ollama/v1`,
      AZURE_OPENAI_API_KEY: 'k',
      AZURE_OPENAI_ENDPOINT: origin,
    })

    expect(isGood).toBe(true)
    for (const id of ['openai', 'anthropic', 'gemini', 'dashscope', 'groq', 'azure-openai'])
      expect(of(`vendor ${id}`), id).toMatchObject({ status: 'ok', message: `${origin} accepts the key` })
    expect(of('vendor ollama')).toMatchObject({ status: 'ok', message: `${origin} answers; it needs no key` })
    expect(of('vendor voyage')).toMatchObject({ status: 'unchecked' })
    expect(of('configuration')).toMatchObject({ status: 'ok' })
    expect(sandbox.requests.map(({ operation }) => operation).every((operation) => operation === 'models')).toBe(true)
    expect(checks.every(({ message }) => message.length > 0)).toBe(true)
  })

  test('fails for a key that is refused, names its variable, and shows no key', async () => {
    sandbox.fault({ kind: 'leak-key', vendor: 'openai' })

    const { isGood, of } = await check(openai())

    expect(isGood).toBe(false)
    const found = of('vendor openai')
    expect(found).toMatchObject({ status: 'failed', remedy: 'set OPENAI_API_KEY to a key that is valid' })
    expect(found?.message).toContain('refuses the key (401')
    expect(JSON.stringify(found)).not.toContain('canary')
  })

  test('tries each of several keys', async () => {
    sandbox.fault({ kind: 'bad-key', vendor: 'openai', times: 1 })

    const { checks } = await check({ ...openai(), OPENAI_API_KEY: 'one-key,other-key' })

    const found = checks.filter(({ name }) => name.startsWith('vendor openai, key '))
    expect(found.map(({ status }) => status).sort()).toEqual(['failed', 'ok'])
  })

  test('fails for a connection that is refused and for an error of the vendor', async () => {
    const away = await check({ ...openai(), OPENAI_BASE_URL: 'http://127.0.0.1:1' })
    sandbox.fault({ kind: 'status', status: 503, vendor: 'openai' })
    const ill = await check(openai())

    expect(away.isGood).toBe(false)
    expect(away.of('vendor openai')).toMatchObject({
      message: 'http://127.0.0.1:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1',
      remedy: expect.stringContaining('base URL'),
    })
    expect(ill.of('vendor openai')?.message).toContain('answers with an error (503')
  })

  test('asks a vendor that has Responses only, and takes no page or error for a list', async () => {
    let answer: readonly [status: number, body: string] = [200, '{"data":[]}']
    const vendor = createServer(({ headers }, response) => {
      const [status, body] = headers.authorization === undefined ? [401, '{}'] : answer
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    })
    await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
    const at = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
    const perplexity = async () => {
      const { of } = await check({ PERPLEXITY_API_KEY: 'k', PERPLEXITY_BASE_URL: `${at}/v1` })
      return of('vendor perplexity')
    }

    expect(await perplexity()).toMatchObject({ status: 'ok', message: `${at} accepts the key` })
    for (const [status, body, message, remedy] of [
      [200, '<html><title>Welcome</title></html>', 'with something else than a list of models', 'base URL'],
      [301, '', 'answers with an error (301', 'base URL'],
      [200, '{"error":{"message":"Bad key","code":"invalid_api_key"}}', 'refuses the key (200', 'PERPLEXITY_API_KEY'],
      [400, '{"error":{"message":"No such route"}}', 'answers with an error (400', 'check the key'],
      [402, '{"error":{"message":"No credit"}}', 'answers with an error (402', 'its credit'],
    ] as const) {
      answer = [status, body]
      expect(await perplexity()).toMatchObject({
        status: 'failed',
        message: expect.stringContaining(message),
        remedy: expect.stringContaining(remedy),
      })
    }
    vendor.closeAllConnections()
    vendor.close()
  })

  test('does not say that a key is good where the list of models is open to everybody or missing', async () => {
    const open = createServer((_request, response) => response.end('{"object":"list","data":[]}'))
    await new Promise<void>((resolve) => open.listen(0, '127.0.0.1', resolve))
    const { port } = open.address() as AddressInfo
    const vendors = join(folder, 'vendors.json')
    const at = (path: string) => ({ type: 'openai-compatible', baseURL: `${origin}${path}`, keyVariable: 'OWN_KEY' })
    writeFileSync(
      vendors,
      JSON.stringify({ own: at('/nothing/here/v1'), open: { ...at(''), baseURL: `http://127.0.0.1:${port}/v1` } }),
    )

    const { isGood, of } = await check({ SIGNALBOX_VENDORS: vendors, OWN_KEY: 'k' })

    expect(isGood).toBe(true)
    expect(of('vendor own')).toMatchObject({ status: 'unchecked', message: expect.stringContaining('(404)') })
    expect(of('vendor open')).toMatchObject({ status: 'unchecked', message: expect.stringContaining('everybody') })
    open.closeAllConnections()
    open.close()
  })

  test('fails where no vendor has a key, and where a model names one that has none', async () => {
    const models = join(folder, 'models.json')
    writeFileSync(models, JSON.stringify([{ id: 'ours', kind: 'chat', vendor: 'groq', upstream: 'large' }]))

    const none = await check({})
    const named = await check({ ...openai(), SIGNALBOX_MODELS: models })

    expect(none.of('vendors')).toMatchObject({ status: 'failed', remedy: expect.stringContaining('OPENAI_API_KEY') })
    expect(named.of('vendor groq')).toMatchObject({ status: 'failed', remedy: expect.stringContaining('GROQ_API_KEY') })
  })
})

describe('check, with the flags of serve', () => {
  const OPERATOR_KEY = 'operator-key-0123456789abcdef'

  test('counts stand-ins as vendors that are configured, and asks no vendor', async () => {
    const { isGood, of, checks } = await check(openai(), '--sandbox', '--examples')

    expect(isGood).toBe(true)
    expect(of('vendor anthropic')).toMatchObject({ status: 'ok', message: 'a stand-in answers for it' })
    expect(of('vendor openai')).toMatchObject({ status: 'unchecked' })
    expect(of('prices')).toMatchObject({ status: expect.stringMatching(/ok|warning/) })
    expect(of('prices')?.message).not.toContain('billing is off')
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([])
    expect(sandbox.requests).toEqual([])
  })

  test('takes the store memory: for a sandbox that names none', async () => {
    expect((await check({ SIGNALBOX_STORE: '' }, '--sandbox')).of('store')?.message).toMatch(/^memory: /)
  })

  test('says what serve would refuse', async () => {
    const examples = await check(openai(), '--examples')
    const closed = await check(openai(), '--console')
    const open = await check({ ...openai(), SIGNALBOX_OPERATOR_KEY: OPERATOR_KEY }, '--console')
    const trial = await check({ SIGNALBOX_STORE: '' }, '--console', '--sandbox')

    expect(examples.of('configuration')?.message).toBe('--examples: has no effect without --sandbox')
    expect(closed.of('configuration')?.message).toMatch(/^--console: set SIGNALBOX_OPERATOR_KEY/)
    expect([open.of('configuration')?.status, trial.of('configuration')?.status]).toEqual(['ok', 'ok'])
  })
})

describe('check, of the store', () => {
  const storeOf = async (store: string): Promise<Check | undefined> =>
    (await check({ ...openai(), SIGNALBOX_STORE: store })).of('store')

  test('says that memory keeps nothing, and that a database is made at the start', async () => {
    const path = join(folder, 'money.db')

    expect(await storeOf('memory:')).toMatchObject({
      status: 'warning',
      remedy: expect.stringContaining('sqlite:PATH'),
    })
    expect(await storeOf(`sqlite:${path}`)).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('not there yet'),
    })
  })

  test('counts the steps of the schema that are missing, and makes none', async () => {
    const path = join(folder, 'money.db')
    await runCommand(['accounts', 'create'], { SIGNALBOX_STORE: `sqlite:${path}` })
    const current = await storeOf(`sqlite:${path}`)
    const database = new DatabaseSync(path)
    const last = database.prepare('SELECT max(version) AS version FROM signalbox_migrations')
    const steps = MIGRATIONS as string[]
    steps.push('CREATE TABLE signalbox_later (id TEXT)')
    onTestFinished(() => void steps.pop())
    const old = await storeOf(`sqlite:${path}`)

    expect(current).toMatchObject({ status: 'ok', message: expect.stringContaining('up to date') })
    expect(old).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/brings its schema \d+ steps forward/),
    })
    expect(last.get()).toEqual({ version: 1 })
    database.exec('INSERT INTO signalbox_migrations (version, applied_at_ms) VALUES (99, 0)')
    database.close()
    expect(await storeOf(`sqlite:${path}`)).toMatchObject({
      status: 'failed',
      remedy: expect.stringContaining('update'),
    })
  })

  test('fails for a folder that is not there and for a server that refuses, without its password', async () => {
    const sqlite = await storeOf(`sqlite:${join(folder, 'no', 'money.db')}`)
    const postgres = await storeOf('postgres://gateway:canary-7f3a@127.0.0.1:1/money')

    expect(sqlite?.status).toBe('failed')
    expect(postgres).toMatchObject({ status: 'failed', message: expect.stringContaining('ECONNREFUSED') })
    expect(JSON.stringify(postgres)).not.toContain('canary')
  })

  test('fails for a Redis that refuses', async () => {
    const { isGood, of } = await check({ ...openai(), REDIS_URL: 'redis://:canary-7f3a@127.0.0.1:1' })

    expect(isGood).toBe(false)
    expect(of('redis')).toMatchObject({ status: 'failed', message: expect.stringContaining('ECONNREFUSED') })
    expect(JSON.stringify(of('redis'))).not.toContain('canary')
  })
})

describe('check, of the settings', () => {
  test('warns of a variable whose name is nearly that of a setting, and of no other', async () => {
    const others = {
      SIGNALBOX_SERVICE_HOST: '10.0.0.1',
      SIGNALBOX_PORT_8787_TCP: 'tcp://10.0.0.1:8787',
      SIGNALBOX_TEAM: 'a',
    }
    const { isGood, checks } = await check({ ...openai(), ...others, SIGNALBOX_LIMIT: 'rpm=5', SIGNALBOX_PRICE: ' ' })

    expect(isGood).toBe(true)
    expect(checks.filter(({ name }) => name === 'configuration')).toMatchObject([
      { status: 'warning', message: 'SIGNALBOX_LIMIT is not a setting; did you mean SIGNALBOX_LIMITS?' },
      { status: 'ok' },
    ])
  })

  test('tells a flag, a variable and a file that cannot be used, and goes on as far as it can', async () => {
    const config = join(folder, 'signalbox.config.json')
    writeFileSync(config, JSON.stringify({ prot: 1 }))

    const flag = await check(openai(), '--port', 'many')
    const file = await check(openai(), '--config', config)
    writeFileSync(config, JSON.stringify({ gateway: { unpricedFeatures: ['Web search'] } }))
    const option = await check(openai(), '--config', config)

    expect(flag.of('configuration')).toMatchObject({ status: 'failed', message: '--port: "many" is not a port' })
    expect(file.of('configuration')?.message).toContain('unknown member "prot"; did you mean port?')
    expect(option.of('configuration')?.message).toContain('unpricedFeatures must be a list')
    expect(option.of('vendor openai')?.status).toBe('ok')
  })

  test('names models without a price: a warning, and a failure for those that the operator added', async () => {
    const models = join(folder, 'models.json')
    const prices = join(folder, 'prices.json')
    writeFileSync(models, JSON.stringify([{ id: 'ours', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o' }]))
    writeFileSync(
      prices,
      JSON.stringify({ currency: 'USD', prices: [{ model: 'ours', meter: 'request', amount: '1' }] }),
    )
    const environment = { ...openai(), SIGNALBOX_MODELS: models }

    const off = await check(environment)
    const own = await check({ ...environment, SIGNALBOX_PRICES: prices })
    const list = await check({ ...environment, SIGNALBOX_LIST_PRICES: '1', SIGNALBOX_MODELS: models })
    const half = { currency: 'USD', prices: [{ model: 'ours', meter: 'output_token', amount: '1' }] }
    writeFileSync(prices, JSON.stringify(half))
    const halfPriced = await check({ ...environment, SIGNALBOX_LIST_PRICES: '1', SIGNALBOX_PRICES: prices })

    expect(off.of('prices')).toMatchObject({ status: 'ok', message: 'billing is off; nobody is charged' })
    expect(own.of('prices')).toMatchObject({ status: 'warning', remedy: expect.stringContaining('SIGNALBOX_PRICES') })
    expect(own.isGood).toBe(true)
    expect(list.of('prices')?.message).toMatch(/have no price/)
    expect(halfPriced.of('prices')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('refused: ours (no input_token) of your own;'),
    })
  })

  test('prints a table that ends in one sentence', async () => {
    const lines = await runCommand(['check'], { ...openai(), SIGNALBOX_STORE: 'memory:' })

    expect(lines[0]).toMatch(/^result +of +what was found$/)
    expect(lines).toContainEqual(expect.stringMatching(/^ok +vendor openai +http\S+ accepts the key$/))
    expect(lines.at(-1)).toBe('signalbox serve can start')
  })
})

describe('check of the catalog', () => {
  const builtInMs = Date.parse(BUILT_IN_SNAPSHOT.date)
  const LINE = 'gpt-9||c|1000|100|t|t|||1,2'
  afterEach(() => vi.useRealTimers())

  test.each([
    [60, 'ok'],
    [61, 'warning'],
  ])('says that it is %i days old: %s', async (days, status) => {
    vi.useFakeTimers({ toFake: ['Date'], now: builtInMs + days * 86_400_000 })

    const { isGood, of } = await check(openai())

    expect(isGood).toBe(true)
    const message = `models and list prices of ${BUILT_IN_SNAPSHOT.date}, ${days} days old`
    expect(of('catalog')).toMatchObject({ status, message })
    expect(of('catalog')?.remedy ?? '').toContain(status === 'ok' ? '' : 'SIGNALBOX_CATALOG')
  })

  test('loads the newer one that a setting names, and judges prices by it', async () => {
    const date = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10)
    const path = join(folder, 'catalog.json')
    writeFileSync(path, JSON.stringify({ date, models: { openai: [LINE] } }))

    const { of } = await check({ ...openai(), SIGNALBOX_LIST_PRICES: '1' }, '--catalog', path)

    expect(of('catalog')).toMatchObject({ status: 'ok', message: `models and list prices of ${date}, 3 days old` })
    expect(of('prices')?.message).toContain('models have no price')
  })

  test('warns of one that cannot be loaded, with the reason; serve starts with the built-in one', async () => {
    const path = join(folder, 'catalog.json')
    writeFileSync(path, JSON.stringify({ date: '2020-01-01', models: { openai: [LINE] } }))

    const { isGood, of } = await check({ ...openai(), SIGNALBOX_CATALOG: path })

    expect(isGood).toBe(true)
    expect(of('catalog')?.status).toBe('warning')
    expect(of('catalog')?.message).toContain(`cannot be loaded from ${path}: date: 2020-01-01 is older`)
  })
})
