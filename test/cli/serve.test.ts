import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type RunningServer, serve } from '../../src/cli/serve-command.ts'
import { SettingError } from '../../src/cli/setting-values.ts'
import { hashApiKey } from '../../src/stores/api-keys.ts'
import { chatBody } from '../support/start-gateway.ts'
import { runCommand, runForJson } from './support/run-command.ts'

const KEY = 'sk-of-the-operator-1'

let folder: string
let store: string
let running: RunningServer | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-serve-'))
  store = `sqlite:${join(folder, 'money.db')}`
})
afterEach(async () => {
  await running?.close()
  running = undefined
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a server with stand-ins for all vendors, and returns its lines. */
async function start(environment: Record<string, string>): Promise<string[]> {
  const lines: string[] = []
  running = await serve({
    environment: { PORT: '0', SIGNALBOX_STORE: store, ...environment },
    useStandIns: true,
    print: (line) => void lines.push(line),
    version: '0.0.0',
  })
  return lines
}

async function stop(): Promise<void> {
  await running?.close()
  running = undefined
}

function post(body: unknown, key = KEY): Promise<Response> {
  return fetch(`${running?.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

async function account(key = KEY): Promise<Record<string, unknown>> {
  const response = await fetch(`${running?.url}/v1/account`, { headers: { authorization: `Bearer ${key}` } })
  return (await response.json()) as Record<string, unknown>
}

/** A price file in which every call costs so many dollars. */
function pricesOf(dollars: string): string {
  const path = join(folder, 'prices.json')
  const prices = ['cl-sonnet-4-6', 'our-chat'].map((model) => ({ model, meter: 'request', amount: dollars }))
  writeFileSync(path, JSON.stringify({ currency: 'USD', prices }))
  return path
}

const line = (lines: readonly string[], name: string) => lines.find((text) => text.startsWith(`${name} `))

describe('serve with SIGNALBOX_CORS_ORIGINS', () => {
  const ORIGIN = 'https://app.example'
  const preflight = (path: string, origin = ORIGIN): Promise<Response> =>
    fetch(`${running?.url}${path}`, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } })

  test('lets pages of these origins call the gateway and its MCP server', async () => {
    const lines = await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_CORS_ORIGINS: ORIGIN })
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } }

    const asked = await preflight('/v1/chat/completions')
    const others = await preflight('/v1/chat/completions', 'https://other.example')
    const tools = await fetch(`${running?.url}/mcp`, {
      method: 'POST',
      headers: {
        origin: ORIGIN,
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize }),
    })

    expect(line(lines, 'cors')).toBe('cors      pages of https://app.example may call')
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, ORIGIN])
    expect(others.headers.get('access-control-allow-origin')).toBeNull()
    expect([tools.status, tools.headers.get('access-control-allow-origin')]).toEqual([200, ORIGIN])
  })

  test('opens nothing when it is not set', async () => {
    await start({ SIGNALBOX_API_KEYS: KEY })

    const asked = await preflight('/v1/chat/completions')

    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([405, null])
  })
})

describe('an idle connection of serve', () => {
  const keepAlive = async (environment: Record<string, string>): Promise<string | undefined> => {
    await start({ SIGNALBOX_API_KEYS: KEY, ...environment })
    return await new Promise((resolve, reject) => {
      get(`${running?.url}/livez`, { agent: new Agent({ keepAlive: true }) }, (response) => {
        resolve(String(response.headers['keep-alive']))
        response.socket.destroy()
      }).on('error', reject)
    })
  }

  test('stays open for 75 seconds, longer than balancers keep it', async () => {
    expect(await keepAlive({})).toBe('timeout=75')
  })

  test('stays open for SIGNALBOX_KEEP_ALIVE', async () => {
    expect(await keepAlive({ SIGNALBOX_KEEP_ALIVE: '620s' })).toBe('timeout=620')
  })
})

describe('serve with SIGNALBOX_API_KEYS', () => {
  test('tells how to credit an account without money, whose calls are refused', async () => {
    const lines = await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_PRICES: pricesOf('0.5') })

    const { status } = await post(chatBody('cl-sonnet-4-6', 'Say hello'))

    const command = /signalbox accounts credit acct_\w+ 10$/
    expect(line(lines, 'balance')).toMatch(/^balance {3}\$0: calls that cost are refused until it has money; /)
    expect(line(lines, 'balance')).toMatch(command)
    expect(status).toBe(402)
  })

  test('accepts these keys, charges by the price file, and shows no key whole', async () => {
    const lines = await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_CREDIT: '5', SIGNALBOX_PRICES: pricesOf('0.5') })

    const answer = await post(chatBody('cl-sonnet-4-6', 'Say hello'))
    const refused = await post(chatBody('cl-sonnet-4-6', 'Say hello'), 'sk-of-somebody-else')

    expect([answer.status, refused.status]).toEqual([200, 401])
    expect(await account()).toMatchObject({ balance: '4.5', held: '0', tier: 'paid' })
    expect(line(lines, 'store')).toBe(`store     ${store}`)
    expect(line(lines, 'key')).toBe('key       sk-of-…')
    expect(line(lines, 'balance')).toBe('balance   $5')
    expect(lines.join('\n')).not.toContain(KEY)
  })

  test('prints an example call of a model that has a price', async () => {
    const lines = await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_CREDIT: '5', SIGNALBOX_PRICES: pricesOf('0.5') })
    const body = /-d '(.+)'$/.exec(lines.at(-1) ?? '')?.[1] ?? ''

    expect(JSON.parse(body)).toMatchObject({ model: 'cl-sonnet-4-6' })
    expect((await post(JSON.parse(body))).status).toBe(200)
  })

  test('prints an example call of a model of today, where only a vendor names models', async () => {
    const lines: string[] = []
    running = await serve({
      environment: { PORT: '0', SIGNALBOX_STORE: store, SIGNALBOX_API_KEYS: KEY, OPENAI_API_KEY: 'any' },
      useStandIns: false,
      print: (text) => void lines.push(text),
      version: '0.0.0',
    })
    const body = JSON.parse(/-d '(.+)'$/.exec(lines.at(-1) ?? '')?.[1] ?? '{}')

    // It reasons first, within the same bound.
    expect(body).toMatchObject({ model: 'gpt-6-luna', max_tokens: 1_000 })
  })

  test('says that no chat model can be called where none has a price of an answer', async () => {
    const path = join(folder, 'prices.json')
    const row = { model: 'cl-sonnet-4-6', meter: 'request', amount: '1', when: { batch: 'true' } }
    writeFileSync(path, JSON.stringify({ currency: 'USD', prices: [row] }))

    const lines = await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_PRICES: path })

    expect(lines.at(-1)).toBe(
      'models    no chat model of the configured vendors has a price: name one in SIGNALBOX_PRICES',
    )
  })

  test('says how many models have no price, in one line, and only while billing is on', async () => {
    const priced = await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_PRICES: pricesOf('0.5') })
    await stop()
    const unbilled = await start({ SIGNALBOX_API_KEYS: KEY })
    const told = (lines: readonly string[]) => lines.filter((text) => text.includes('no price'))
    const [unpriced, models] = told(priced)[0]?.match(/\d+/g)?.map(Number) ?? []

    expect(told(priced)).toEqual([
      `prices    ${unpriced} of ${models} models have no price, and are refused; name them in SIGNALBOX_PRICES`,
    ])
    // Only one model of the price file is in the catalog, and two for moderation are free.
    expect(unpriced).toBe(models! - 3)
    expect(told(unbilled)).toEqual([])
  })

  test('keeps balances over a restart, and gives the first credit once', async () => {
    const environment = { SIGNALBOX_API_KEYS: KEY, SIGNALBOX_CREDIT: '5', SIGNALBOX_PRICES: pricesOf('0.5') }
    await start(environment)
    await post(chatBody('cl-sonnet-4-6', 'Say hello'))
    await stop()

    const lines = await start(environment)

    expect(line(lines, 'balance')).toBe('balance   $4.5')
    await post(chatBody('cl-sonnet-4-6', 'Say hello'))
    expect((await account())['balance']).toBe('4')
  })

  test('gives accounts that exist the tier that is set now, and leaves it when none is set', async () => {
    const tiers = []
    for (const set of [{}, { SIGNALBOX_TIER: 'free' }, {}, { SIGNALBOX_TIER: 'paid' }]) {
      await start({ SIGNALBOX_API_KEYS: KEY, ...set })
      tiers.push((await account())['tier'])
      await stop()
    }

    expect(tiers).toEqual(['paid', 'free', 'free', 'paid'])
  })

  test('refuses a call that the balance does not cover', async () => {
    await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_CREDIT: '0.4', SIGNALBOX_PRICES: pricesOf('0.5') })

    expect((await post(chatBody('cl-sonnet-4-6', 'Say hello'))).status).toBe(402)
  })

  test('opens the state of the vendors to the operator’s key alone, and shows each key of a vendor', async () => {
    const operatorKey = 'operator-key-0123456789ab'
    await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_OPERATOR_KEY: operatorKey, OPENAI_API_KEY: 'one-key,other-key' })
    const stateFor = (key: string) =>
      fetch(`${running?.url}/healthz?verbose`, { headers: { authorization: `Bearer ${key}` } })

    const [refused, shown] = [await stateFor(KEY), await stateFor(operatorKey)]
    const state = (await shown.json()) as { vendors: { vendor: string; keys: unknown[] }[] }

    expect([refused.status, shown.status]).toEqual([401, 200])
    expect(state.vendors.find(({ vendor }) => vendor === 'openai')?.keys).toHaveLength(2)
    expect(JSON.stringify(state)).not.toMatch(/one-key|other-key/)
  })

  test('applies limits, added models and timeouts', async () => {
    const models = join(folder, 'models.json')
    writeFileSync(models, JSON.stringify([{ id: 'our-chat', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' }]))
    await start({
      SIGNALBOX_API_KEYS: KEY,
      SIGNALBOX_MODELS: models,
      SIGNALBOX_LIMITS: 'rpm=2',
      SIGNALBOX_TIMEOUTS: 'total=300ms',
    })

    const answers = [
      await post(chatBody('our-chat', 'Say hello')),
      await post(chatBody('our-chat', 'Say hello [[fault:hang]]')),
      await post(chatBody('our-chat', 'Say hello')),
    ]

    expect(answers.map(({ status }) => status)).toEqual([200, 504, 429])
  })
})

describe('serve with other kinds of billing', () => {
  test('charges metered accounts without a balance, and logs the thresholds that are passed', async () => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const lines = await start({
      SIGNALBOX_API_KEYS: KEY,
      SIGNALBOX_PRICES: pricesOf('0.5'),
      SIGNALBOX_BILLING: 'metered',
      SIGNALBOX_THRESHOLDS: '40',
    })
    const { id } = await account()
    await runCommand(['accounts', 'update', String(id), '--credit-limit', '1'], { SIGNALBOX_STORE: store })

    const statuses = [
      await post(chatBody('cl-sonnet-4-6', 'Say hello')),
      await post(chatBody('cl-sonnet-4-6', 'again')),
    ]
    const logged = written.mock.calls.flatMap(([text]) =>
      String(text).includes('a balance is low') ? [String(text)] : [],
    )
    written.mockRestore()

    expect(statuses.map(({ status }) => status)).toEqual([200, 200])
    expect((await post(chatBody('cl-sonnet-4-6', 'too much'))).status).toBe(402)
    expect(await account()).toMatchObject({ balance: '0', owed: '1' })
    expect(line(lines, 'billing')).toMatch(/^billing {3}metered, by /)
    expect(logged.map((text) => JSON.parse(text))).toEqual([
      expect.objectContaining({ level: 'warn', accountId: id, thresholdPercent: 40, total: '1', remaining: '0.5' }),
    ])
  })

  test('is off when it says so, whatever the prices', async () => {
    const environment = { SIGNALBOX_API_KEYS: KEY, SIGNALBOX_PRICES: pricesOf('0.5'), SIGNALBOX_BILLING: 'off' }

    const lines = await start(environment)

    expect((await post(chatBody('cl-sonnet-4-6', 'Say hello'))).status).toBe(200)
    expect(line(lines, 'billing')).toBe('billing   off, as SIGNALBOX_BILLING says')
  })

  test('limits accounts by their plan, and else as the variables say', async () => {
    const plans = join(folder, 'plans.json')
    writeFileSync(plans, JSON.stringify({ small: { limits: { perAccount: { requestsPerMinute: 1 } } } }))
    const id = `acct_${hashApiKey(KEY).slice(0, 16)}`
    await runCommand(['accounts', 'create', '--id', id, '--plan', 'small'], { SIGNALBOX_STORE: store })
    await start({ SIGNALBOX_API_KEYS: `${KEY},${KEY}-two`, SIGNALBOX_PLANS: plans, SIGNALBOX_ACCOUNT_LIMITS: 'rpm=2' })

    const ask = async (key: string) => (await post(chatBody('cl-sonnet-4-6', 'Say hello'), key)).status

    expect([await ask(KEY), await ask(KEY)]).toEqual([200, 429])
    expect([await ask(`${KEY}-two`), await ask(`${KEY}-two`), await ask(`${KEY}-two`)]).toEqual([200, 200, 429])
  })
})

describe('serve without SIGNALBOX_API_KEYS', () => {
  test('makes a key once, stores it and makes none at the next start', async () => {
    const first = await start({ SIGNALBOX_CREDIT: '3' })
    const key = /^key +(\S+) +\(made now, shown this once\)$/.exec(line(first, 'key') ?? '')?.[1] ?? ''
    const status = (await post(chatBody('cl-sonnet-4-6', 'Say hello'), key)).status
    await stop()

    const second = await start({ SIGNALBOX_CREDIT: '3' })

    expect(status).toBe(200)
    expect(line(second, 'key')).toBeUndefined()
    expect(line(second, 'keys')).toBe('keys      1 in the store; signalbox keys create makes another')
    expect(second.join('\n')).not.toContain(key)
    expect((await account(key))['balance']).toBe('3')
  })

  test('serves the keys and accounts that the commands made, while it runs', async () => {
    const environment = { SIGNALBOX_STORE: store }
    await runCommand(['accounts', 'create', '--id', 'acct_one'], environment)
    await runCommand(['accounts', 'credit', 'acct_one', '2'], environment)
    const made = await runForJson(['keys', 'create', '--account', 'acct_one', '--endpoints', 'chat'], environment)
    await start({ SIGNALBOX_PRICES: pricesOf('0.5') })

    const answer = await post(chatBody('cl-sonnet-4-6', 'Say hello'), String(made['key']))
    await runCommand(['accounts', 'credit', 'acct_one', '10'], environment)

    expect(answer.status).toBe(200)
    expect(await account(String(made['key']))).toMatchObject({ id: 'acct_one', balance: '11.5' })
    const { data } = await runForJson(['accounts', 'ledger', 'acct_one'], environment)
    expect(data.map(({ kind, amount }) => `${kind} ${amount}`)).toEqual(['credit 10', 'charge -0.5', 'credit 2'])
  })

  test('keeps nothing with stand-ins when no store is set, and says so', async () => {
    const lines = await start({ SIGNALBOX_STORE: '' })

    const key = /^key +(\S+) +\(made for this run\)$/.exec(line(lines, 'key') ?? '')?.[1] ?? ''
    expect(line(lines, 'store')).toBe('store     memory: (accounts, keys and balances are gone when this process ends)')
    expect(line(lines, 'balance')).toBe('balance   $10')
    expect((await post(chatBody('cl-sonnet-4-6', 'Say hello'), key)).status).toBe(200)
    expect(existsSync('signalbox.db')).toBe(false)
  })
})

describe('prices of a server', () => {
  test('change without a restart, and stay when the new file is bad', async () => {
    const environment = { SIGNALBOX_API_KEYS: KEY, SIGNALBOX_CREDIT: '5', SIGNALBOX_PRICES: pricesOf('1') }
    await start(environment)
    const balances = []
    for (const [content, isGood] of [
      ['2', true],
      ['minus one', false],
    ] as const) {
      pricesOf(content)
      if (isGood) running?.reloadPrices?.()
      else expect(running?.reloadPrices).toThrow('SIGNALBOX_PRICES: prices[0].amount: must be a decimal string')
      await post(chatBody('cl-sonnet-4-6', 'Say hello'))
      balances.push((await account())['balance'])
    }

    expect(balances).toEqual(['3', '1'])
  })

  test('cannot be reloaded if there are no prices', async () => {
    await start({ SIGNALBOX_API_KEYS: KEY })

    expect(running?.reloadPrices).toBeUndefined()
  })
})

describe('a server that cannot start', () => {
  test('names the store when it cannot be used', async () => {
    store = `sqlite:${join(folder, 'no-such-folder', 'money.db')}`

    await expect(start({})).rejects.toThrow(SettingError)
    await expect(start({})).rejects.toThrow(`SIGNALBOX_STORE: ${store} cannot be used: `)
  })

  test('closes what it opened, so that the next try finds everything free', async () => {
    const blocker = createServer()
    const port = await new Promise<number>((resolve) =>
      blocker.listen(0, '127.0.0.1', () => resolve((blocker.address() as { port: number }).port)),
    )
    await expect(start({ SIGNALBOX_API_KEYS: KEY, PORT: String(port) })).rejects.toThrow('EADDRINUSE')
    await new Promise((resolve) => blocker.close(resolve))

    await start({ SIGNALBOX_API_KEYS: KEY, PORT: String(port) })

    expect((await post(chatBody('cl-sonnet-4-6', 'Say hello'))).status).toBe(200)
  })
})

describe('serve with models of other servers', () => {
  test('asks a stand-in that speaks as they do, and names the key that is missing without one', async () => {
    const models = join(folder, 'models.json')
    const rows = ['groq', 'ollama'].map((vendor) => ({ id: `our-${vendor}`, kind: 'chat', vendor, upstream: 'small' }))
    writeFileSync(models, JSON.stringify(rows))
    const lines = await start({ SIGNALBOX_API_KEYS: KEY, SIGNALBOX_MODELS: models })
    const answers = await Promise.all(rows.map(({ id }) => post(chatBody(id, 'Say hello'))))

    expect(line(lines, 'vendors')).toMatch(/groq \(stand-in\), ollama \(stand-in\)$/)
    for (const answer of answers)
      expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'You said: Say hello' } }] })

    await stop()
    const alone: string[] = []
    running = await serve({
      environment: { PORT: '0', SIGNALBOX_STORE: store, SIGNALBOX_API_KEYS: KEY, SIGNALBOX_MODELS: models },
      useStandIns: false,
      print: (text) => void alone.push(text),
      version: '0.0.0',
    })
    const refused = await post(chatBody('our-groq', 'Say hello'))

    expect(line(alone, 'vendors')).toMatch(/groq \(not configured: set GROQ_API_KEY\), ollama \(configured\)$/)
    expect(refused.status).toBe(503)
    expect(((await refused.json()) as { error: { message: string } }).error.message).toBe(
      'The model "our-groq" is not available here.',
    )
  })
})
