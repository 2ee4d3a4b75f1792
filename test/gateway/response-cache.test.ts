import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../src/gateway/gateway-options.ts'
import { memoryCache } from '../../src/stores/memory/memory-cache.ts'
import type { Principal } from '../../src/stores/principal.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import {
  chatBody,
  type StartedGateway,
  startGateway,
  TEST_ACCOUNT,
  TEST_KEY,
  TEST_MODELS,
} from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { answeringVendor, json } from './answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const SURE = { temperature: 0 }
const EMBEDDING = { model: 'vy-4', input: 'hello' }

const ANSWER = {
  ...{ id: 'chatcmpl-0123456789', object: 'chat.completion', created: 1, model: 'chat-relayed' },
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
}

function choiceOf(content: string): object {
  return { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }
}

let started: StartedGateway

afterEach(() => started.close())

/** As `startGateway`, with a model that takes a temperature. */
function start(options: Partial<GatewayOptions> = {}): Promise<StartedGateway> {
  const limits = { maxOutputTokens: 2000 }
  const plain = { id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini', limits } as const
  return startGateway({ ...options, models: [...TEST_MODELS, plain, ...(options.models ?? [])] })
}

/** What a caller reads of the cache: how the request fared, and the body. */
async function ask(
  body: unknown,
  { path = CHAT, ...headers }: Record<string, string> = {},
): Promise<{ response: Response; cache: string | null; text: string }> {
  const response = await started.post(path, body, headers)
  return { response, cache: response.headers.get('x-signalbox-cache'), text: await response.text() }
}

/** The same text without what the cache makes anew. */
function withoutIds(text: string): string {
  return text.replace(/"id":"(chatcmpl|msg|resp)[-_][^"]+"/g, '"id":"-"')
}

const CALLS = [
  ['a chat', CHAT, chatBody('chat-relayed', 'hello', SURE)],
  ['a translated chat', CHAT, chatBody('cl-sonnet-4-6', 'hello', SURE)],
  ['a message', '/v1/messages', chatBody('cl-sonnet-4-6', 'hello', { max_tokens: 50, ...SURE })],
  ['a translated message', '/v1/messages', chatBody('chat-relayed', 'hello', { max_tokens: 50, ...SURE })],
  ['an embedding', '/v1/embeddings', EMBEDDING],
  ['a response', '/v1/responses', { model: 'chat-relayed', input: 'hello', store: false, ...SURE }],
] as const

describe.each([
  ['billing on', {}],
  ['billing off', { billing: 'off' as const }],
])('with %s, an equal request', (_name, options) => {
  test.each(CALLS)('for %s gets the same answer without a vendor', async (_call, path, body) => {
    started = await start({ ...options, cache: {} })
    const first = await ask(body, { path })
    const balance = await started.account()
    const second = await ask(body, { path })

    expect([first.cache, second.cache]).toEqual(['miss', 'hit'])
    expect(second.response.status).toBe(200)
    expect(withoutIds(second.text)).toBe(withoutIds(first.text))
    expect(second.response.headers.get('content-type')).toBe('application/json')
    expect(second.response.headers.get('content-length')).toBe(String(Buffer.byteLength(second.text)))
    expect(second.response.headers.get('age')).toBe('0')
    expect(second.response.headers.get('x-signalbox-cost')).toBe('billing' in options ? null : '0')
    expect(second.response.headers.get('x-signalbox-vendor')).toBeNull()
    expect(started.sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual(balance)
  })
})

test('without a cache nothing is given twice, and no header speaks of one', async () => {
  started = await start()
  const first = await ask(chatBody('chat-relayed', 'hello', SURE))
  await ask(chatBody('chat-relayed', 'hello', SURE))

  expect(first.cache).toBeNull()
  expect(started.sandbox.requests).toHaveLength(2)
  expect(started.gateway.cache.stats()).toEqual({ hits: 0, misses: 0, stale: 0, writes: 0, failedWrites: 0 })
  await started.gateway.cache.clear()
})

test.each([
  ['/v1/chat/completions', chatBody('chat-relayed', 'hello', SURE), /^chatcmpl-/],
  ['/v1/moderations', { input: 'hello' }, /^modr-/],
])('an answer given again has an id of its own, of the same length and kind: %s', async (path, body, kind) => {
  started = await start({ cache: {} })
  const ids = []
  for (let count = 0; count < 3; count++) {
    const { text } = await ask(body, { path })
    ids.push((JSON.parse(text) as { id: string }).id)
  }

  expect(new Set(ids).size).toBe(3)
  for (const id of ids) expect(id).toMatch(kind)
  expect(new Set(ids.map((id) => id.length)).size).toBe(1)
})

describe('what a rule covers', () => {
  test('is what asks for the same answer each time: a temperature that is absent is not 0', async () => {
    started = await start({ cache: {} })
    for (const rest of [{}, { temperature: null }, { temperature: 1 }]) {
      const body = chatBody('chat-relayed', 'hello', rest)
      expect([(await ask(body)).cache, (await ask(body)).cache]).toEqual(['bypass', 'bypass'])
    }

    expect(started.sandbox.requests).toHaveLength(6)
  })

  test('may be any sampling, of some endpoints and models', async () => {
    started = await start({ cache: { rules: [{ endpoints: ['chat'], models: ['cl-*'], sampling: 'any' }] } })
    const covered = chatBody('cl-sonnet-4-6', 'hello')

    expect([(await ask(covered)).cache, (await ask(covered)).cache]).toEqual(['miss', 'hit'])
    expect((await ask(chatBody('chat-relayed', 'hello', SURE))).cache).toBe('bypass')
    expect((await ask(EMBEDDING, { path: '/v1/embeddings' })).cache).toBe('bypass')
  })

  test('is asked of a vendor again in time when the clock was set back after an answer was kept', async () => {
    const clock = fakeClock()
    let aheadMs = 86_400_000
    const moved = { ...clock, now: () => clock.now() + aheadMs }
    started = await start({ clock: moved, cache: { rules: [{ ttlMs: 60_000 }] } })
    const first = await ask(chatBody('chat-relayed', 'hello', SURE))
    aheadMs = 0
    clock.advance(60_000)
    const second = await ask(chatBody('chat-relayed', 'hello', SURE))
    const third = await ask(chatBody('chat-relayed', 'hello', SURE))

    expect([first.cache, second.cache, third.cache]).toEqual(['miss', 'miss', 'hit'])
  })

  test('is fresh for the time of its rule', async () => {
    const clock = fakeClock()
    started = await start({ clock, cache: { rules: [{ ttlMs: 60_000 }] } })
    const body = chatBody('chat-relayed', 'hello', SURE)
    await ask(body)
    clock.advance(59_000)
    const fresh = await ask(body)
    clock.advance(1_000)

    expect([fresh.cache, fresh.response.headers.get('age')]).toEqual(['hit', '59'])
    expect((await ask(body)).cache).toBe('miss')
  })
})

describe('never read or written are', () => {
  const tool = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } }
  const picture = { type: 'file', file: { file_id: 'file_123' } }

  test.each<[string, string, Record<string, unknown>]>([
    ['a chat that is stored', CHAT, chatBody('chat-relayed', 'hello', { store: true })],
    ['another tier of service', CHAT, chatBody('chat-relayed', 'hello', { service_tier: 'flex' })],
    ['a search', CHAT, chatBody('chat-relayed', 'hello', { web_search_options: {} })],
    ['a tool of the vendor', CHAT, chatBody('chat-relayed', 'hello', { tools: [tool, { type: 'code_interpreter' }] })],
    ['a plug-in of the vendor', CHAT, chatBody('chat-relayed', 'hello', { plugins: [{ id: 'web' }] })],
    [
      'a plug-in in a response',
      '/v1/responses',
      { model: 'chat-relayed', input: 'hello', store: false, plugins: [{ id: 'web' }] },
    ],
    ['a file by its id', CHAT, { model: 'chat-relayed', messages: [{ role: 'user', content: [picture] }] }],
    [
      'tools of other servers in a message',
      '/v1/messages',
      chatBody('cl-sonnet-4-6', 'hello', { max_tokens: 9, mcp_servers: [] }),
    ],
    ['a response that is stored', '/v1/responses', { model: 'chat-relayed', input: 'hello' }],
  ])('%s', async (_name, path, body) => {
    started = await start({ billing: 'off', cache: { rules: [{ sampling: 'any' }], callers: 'may-ask' } })
    for (const header of ['use', 'refresh']) await ask({ ...body, ...SURE }, { path, 'x-signalbox-cache': header })
    const { cache } = await ask({ ...body, ...SURE }, { path })

    // An error of the vendor has no such header.
    expect(['bypass', null]).toContain(cache)
    expect(started.gateway.cache.stats()).toMatchObject({ hits: 0, misses: 0, writes: 0 })
  })

  test('failures, and answers that were refused', async () => {
    started = await start({ cache: {} })
    const body = chatBody('chat-relayed', 'hello', SURE)
    started.sandbox.fault({ kind: 'status', status: 503, times: 4 })
    await ask(body)
    started.sandbox.reset()
    started.sandbox.fault({ kind: 'blocked' })
    const blocked = await ask(chatBody('gmn-2.5-pro', 'hello', SURE))

    expect(blocked.text).toContain('content_filter')
    expect(started.gateway.cache.stats().writes).toBe(0)
    expect((await ask(body)).cache).toBe('miss')
    expect(started.gateway.cache.stats().writes).toBe(1)
  })

  test.each([1024, -1024])('answers above a mebibyte (by %i bytes)', async (above) => {
    const frame = JSON.stringify({ ...ANSWER, choices: [choiceOf('')] })
    const content = 'x'.repeat(1024 * 1024 - frame.length + above)
    const vendor = await answeringVendor((response) => json(response, { ...ANSWER, choices: [choiceOf(content)] }))
    started = await start({ vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], cache: {} })
    for (let count = 0; count < 2; count++) await ask(chatBody('chat-relayed', 'hello', SURE))
    await vendor.close()

    expect(vendor.calls).toBe(above > 0 ? 2 : 1)
  })

  test('the answer of a fallback model', async () => {
    const models = [
      {
        ...{ id: 'chat-first', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini' },
        ...{ limits: { maxOutputTokens: 2000 }, fallbacks: ['cl-sonnet-4-6'] },
      },
    ] as const
    started = await start({ billing: 'off', models, cache: {} })
    const body = chatBody('chat-first', 'hello', SURE)
    started.sandbox.fault({ kind: 'quota', times: 1 })
    const fallback = await ask(body)
    const own = await ask(body)

    expect(JSON.parse(fallback.text)).toMatchObject({ model: 'cl-sonnet-4-6' })
    expect([fallback.cache, own.cache]).toEqual(['miss', 'miss'])
    expect(started.gateway.cache.stats().writes).toBe(0)
  })

  test('an answer that the balance made shorter', async () => {
    started = await start({ cache: {} })
    const { id } = await started.gateway.accounts.create()
    await started.gateway.accounts.credit(id, '0.003')
    const { key } = await started.gateway.keys.create({ accountId: id })
    const first = await ask(chatBody('chat-relayed', 'hello', SURE), { authorization: `Bearer ${key}` })

    expect(first.response.headers.get('x-signalbox-max-output-tokens')).not.toBeNull()
    expect(started.gateway.cache.stats().writes).toBe(0)
  })
})

describe('headers of callers', () => {
  const body = chatBody('chat-relayed', 'hello')

  test('do nothing unless the operator lets them', async () => {
    started = await start({ cache: {} })
    for (let count = 0; count < 2; count++)
      expect((await ask(body, { 'x-signalbox-cache': 'use', 'x-signalbox-cache-ttl': 'x' })).cache).toBe('bypass')
  })

  test('ask for the cache, for a new answer, for none of it, and for nothing else', async () => {
    started = await start({ cache: { rules: [], callers: 'may-ask' } })
    const modes = ['use', 'use', 'off', 'refresh', 'only']
    const seen = []
    for (const mode of modes) seen.push((await ask(body, { 'x-signalbox-cache': mode })).cache)
    const missing = await ask(chatBody('chat-relayed', 'another'), { 'x-signalbox-cache': 'only' })

    expect(seen).toEqual(['miss', 'hit', 'bypass', 'refresh', 'hit'])
    expect((await ask(body)).cache).toBe('bypass')
    expect(missing.response.status).toBe(504)
    expect(missing.response.headers.get('x-signalbox-error-code')).toBe('cache_miss')
    expect(missing.response.headers.get('x-should-retry')).toBe('false')
    expect(started.events).toContainEqual(expect.objectContaining({ type: 'request-refused', code: 'cache_miss' }))
    expect((await started.account()).held).toBe(0n)
  })

  test("set how long an answer is fresh, up to the operator's longest", async () => {
    const clock = fakeClock()
    started = await start({ clock, cache: { callers: 'may-ask', maxTtlMs: 60_000 } })
    const short = { 'x-signalbox-cache': 'use', 'x-signalbox-cache-ttl': '10' }
    const long = { 'x-signalbox-cache': 'use', 'x-signalbox-cache-ttl': '86400' }
    await ask(chatBody('chat-relayed', 'short'), short)
    await ask(chatBody('chat-relayed', 'long'), long)
    clock.advance(10_000)

    expect((await ask(chatBody('chat-relayed', 'short'), short)).cache).toBe('miss')
    expect((await ask(chatBody('chat-relayed', 'long'), long)).cache).toBe('hit')
    clock.advance(50_000)
    expect((await ask(chatBody('chat-relayed', 'long'), long)).cache).toBe('miss')
  })

  test.each([
    ['x-signalbox-cache', 'perhaps'],
    ['x-signalbox-cache-ttl', '1.5'],
    ['x-signalbox-cache-partition', 'x'.repeat(201)],
  ])('are 400 when %s says %s', async (name, value) => {
    started = await start({ cache: { callers: 'may-ask' } })
    const { response, text } = await ask(body, { [name]: value })

    expect(response.status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ error: { param: name } })
  })
})

describe('answers are shared', () => {
  /** Keys are written `account/key/user`. */
  const authenticate: GatewayOptions['authenticate'] = ({ apiKey = '' }): Principal => {
    const [accountId = '', keyId = '', endUser] = apiKey.split('/')
    return { accountId, keyId, tier: 'paid', endUser: endUser || undefined }
  }
  const CALLERS = ['a/k1/u1', 'a/k1/u2', 'a/k2/u1', 'b/k1/u1', 'b/k2/u2', 'a/k1', 'b/k1']
  const expected = {
    account: (caller: string) => caller.split('/')[0],
    key: (caller: string) => caller.split('/').slice(0, 2).join(),
    user: (caller: string) => (caller.split('/').length < 3 ? undefined : `${caller.at(0)}${caller.slice(-2)}`),
    gateway: () => 'all',
  }

  test.each(['account', 'key', 'user', 'gateway'] as const)(
    'within the partition %s and nowhere else',
    async (partition) => {
      started = await start({ billing: 'off', authenticate, cache: { rules: [{ partition }] } })
      const seen = new Set<string | undefined>()
      for (const caller of CALLERS) {
        const who = expected[partition](caller)
        const wanted = who === undefined ? 'bypass' : seen.has(who) ? 'hit' : 'miss'
        const { cache } = await ask(chatBody('chat-relayed', 'hello', SURE), { authorization: `Bearer ${caller}` })
        expect([caller, cache]).toEqual([caller, wanted])
        seen.add(who)
      }
    },
  )

  test('in narrower parts that callers name', async () => {
    started = await start({ billing: 'off', authenticate, cache: {} })
    const seen = []
    for (const [caller, part] of [
      ['a/k1', 'x'],
      ['a/k1', 'y'],
      ['a/k2', 'x'],
      ['b/k1', 'x'],
      ['a/k1', ''],
    ] as const) {
      const headers = { authorization: `Bearer ${caller}`, 'x-signalbox-cache-partition': part }
      seen.push((await ask(chatBody('chat-relayed', 'hello', SURE), headers)).cache)
    }

    expect(seen).toEqual(['miss', 'miss', 'hit', 'miss', 'miss'])
  })
})

describe('a hit', () => {
  const body = chatBody('chat-relayed', 'hello', SURE)

  test('leaves the journal as it is, and tells what the first call had used', async () => {
    started = await start({ cache: {} })
    const first = await ask(body)
    const journal = await started.gateway.accounts.journal(TEST_ACCOUNT)
    const second = await ask(body)
    const [madeEvent, hitEvent] = [await started.ended(first.response), await started.ended(second.response)]

    expect(await started.gateway.accounts.journal(TEST_ACCOUNT)).toEqual(journal)
    expect(madeEvent.cachedUsage).toBeUndefined()
    expect(hitEvent).toMatchObject({ usage: undefined, cachedUsage: madeEvent.usage, costNanoDollars: 0n })
    expect(hitEvent).toMatchObject({ ending: 'completed', vendor: undefined, model: 'chat-relayed' })
    expect(started.events.map(({ type }) => type)).toEqual([
      ...['request-started', 'request-ended'],
      ...['request-started', 'request-ended', 'cache-hit'],
    ])
    expect(started.events.filter(({ type }) => type === 'cache-hit')).toMatchObject([
      { endpoint: 'chat', model: 'chat-relayed', accountId: TEST_ACCOUNT, ageMs: expect.any(Number), isStale: false },
    ])
  })

  test('costs what a price for hits says, and nothing else', async () => {
    const prices = [
      ...testPrices.prices,
      { model: 'chat-relayed', meter: 'request' as const, amount: '0.000123', when: { cache: 'hit' } },
    ]
    started = await start({ prices: { currency: 'USD', prices }, cache: {} })
    await ask(body)
    const before = await started.account()
    const second = await ask(body)

    expect(second.response.headers.get('x-signalbox-cost')).toBe('0.000123')
    expect((await started.account()).balance).toBe(before.balance - 123_000n)
    expect((await started.account()).held).toBe(0n)
    const { entries } = await started.gateway.accounts.journal(TEST_ACCOUNT)
    expect(entries[0]).toMatchObject({ kind: 'charge', amount: -123_000n, details: { vendor: 'cache' } })
    expect(started.events.filter(({ type }) => type === 'configuration-warning')).toEqual([])
  })

  test('needs no money when it is free, and is refused without money when it is not', async () => {
    const prices = [
      ...testPrices.prices,
      { model: 'chat-relayed', meter: 'input_token' as const, amount: '1', when: { cache: 'hit' } },
      { model: 'chat-relayed', meter: 'output_token' as const, amount: '1', when: { cache: 'hit' } },
    ]
    const cache = { rules: [{ partition: 'gateway' as const }] }
    started = await start({ prices: { currency: 'USD', prices }, cache })
    const { id } = await started.gateway.accounts.create()
    const { key } = await started.gateway.keys.create({ accountId: id })
    const poor = { authorization: `Bearer ${key}` }
    const free = chatBody('cl-sonnet-4-6', 'hello', SURE)
    await ask(body)
    await ask(free)

    expect((await ask(free, poor)).cache).toBe('hit')
    expect((await ask(body, poor)).response.status).toBe(402)
  })

  test('counts against requests per minute, and gives its tokens back', async () => {
    started = await start({ cache: {}, limits: { requestsPerMinute: 3, tokensPerMinute: 5000 } })
    await ask(body)
    const left = (await ask(body)).response.headers.get('x-ratelimit-remaining-requests')
    await ask(body)
    const refused = await ask(body)

    expect(left).toBe('1')
    expect(refused.response.status).toBe(429)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('gives its place among the requests at once back', async () => {
    started = await start({ cache: {}, limits: { concurrency: 1 } })
    for (let count = 0; count < 4; count++) expect((await ask(body)).response.status).toBe(200)
  })

  test('with an Idempotency-Key is answered the same after the entry has gone', async () => {
    const clock = fakeClock()
    started = await start({ clock, cache: {} })
    await ask(body)
    const key = { 'idempotency-key': 'order-1' }
    const hit = await ask(body, key)
    clock.advance(3_600_000)
    const replayed = await ask(body, key)
    const other = await ask(chatBody('chat-relayed', 'other', SURE), key)

    expect([hit.cache, replayed.response.headers.get('idempotent-replayed')]).toEqual(['hit', 'true'])
    expect(replayed.text).toBe(hit.text)
    expect(other.response.status).toBe(422)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('counts as a request without usage in reports', async () => {
    started = await start({ cache: {} })
    const first = await ask(body)
    const { usage } = await started.ended(first.response)
    await ask(body)
    await ask(body)
    const read = async () => {
      const { rows } = await started.gateway.usage.query({ from: Date.now() - 3_600_000, groupBy: ['model'] })
      return rows[0]
    }

    // Records of calls that were not charged are written together, a little later.
    await expect.poll(async () => (await read())?.requests).toBe(3)
    expect((await read())?.usage.inputTokens).toBe(usage?.inputTokens)
  })
})

describe('clearing', () => {
  test('makes the answers of one account unreachable, or those of all', async () => {
    started = await start({ cache: { rules: [{ endpoints: ['chat'] }, { partition: 'gateway' }] } })
    const body = chatBody('chat-relayed', 'hello', SURE)
    const shared = { path: '/v1/embeddings' }
    await ask(body)
    await ask(EMBEDDING, shared)
    await started.gateway.cache.clear({ account: 'another' })
    expect([(await ask(body)).cache, (await ask(EMBEDDING, shared)).cache]).toEqual(['hit', 'hit'])
    await started.gateway.cache.clear({ account: TEST_ACCOUNT })
    expect([(await ask(body)).cache, (await ask(EMBEDDING, shared)).cache]).toEqual(['miss', 'hit'])
    await started.gateway.cache.clear()
    expect([(await ask(body)).cache, (await ask(EMBEDDING, shared)).cache]).toEqual(['miss', 'miss'])
  })

  test('is not needed when the row of a model changes', async () => {
    const store = memoryCache()
    const row = { id: 'chat-own', kind: 'chat', vendor: 'openai', limits: { maxOutputTokens: 2000 } } as const
    const seen = []
    for (const upstream of ['gpt-4.1-mini', 'gpt-4.1-mini', 'gpt-4.1']) {
      const models = [{ ...row, upstream }]
      started = await start({ billing: 'off', models, cache: { store, rules: [{ partition: 'gateway' }] } })
      seen.push((await ask(chatBody('chat-own', 'hello', SURE))).cache)
      await started.close()
    }
    started = await start()

    expect(seen).toEqual(['miss', 'hit', 'miss'])
  })
})

describe('a cache that fails', () => {
  const body = chatBody('chat-relayed', 'hello', SURE)
  const broken = (): never => {
    throw new Error('no cache')
  }

  test('is one that has nothing, and the operator is told', async () => {
    const store = { get: broken, set: broken, clear: broken, generation: () => 0 }
    started = await start({ cache: { store } })
    const first = await ask(body)

    expect([first.cache, first.response.status]).toEqual(['miss', 200])
    expect(started.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['internal-error', 'cache-write-failed']),
    )
    await expect(started.gateway.cache.clear()).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  test('is not read or written while its generations are unknown', async () => {
    const kept = memoryCache()
    started = await start({ cache: { store: { ...kept, generation: () => undefined } } })
    await ask(body)

    expect((await ask(body)).cache).toBe('bypass')
    expect(kept.size).toBe(0)
  })

  test.each<[string, (at: number, length: number) => boolean]>([
    ['head', (at) => at > 100 && at < 120],
    ['body', (at, length) => at >= length - 20],
  ])('with entries whose %s is damaged asks the vendor', async (_part, isDamaged) => {
    const damaged = new Map<string, Uint8Array>()
    const store = {
      get: (key: string) => damaged.get(key),
      set: (key: string, entry: Uint8Array) =>
        void damaged.set(
          key,
          entry.map((byte, at) => (isDamaged(at, entry.length) ? ~byte : byte)),
        ),
      clear: () => undefined,
      generation: () => 0,
    }
    started = await start({ cache: { store, callers: 'may-ask' } })
    const long = chatBody('chat-relayed', 'hello '.repeat(1000), SURE)
    const first = await ask(long)
    const only = await ask(long, { 'x-signalbox-cache': 'only' })
    const second = await ask(long)

    // Who wants an answer of the cache or none pays no vendor.
    expect([only.response.status, only.response.headers.get('x-signalbox-error-code')]).toEqual([504, 'cache_miss'])
    expect((await started.account()).held).toBe(0n)

    expect(second.response.status).toBe(200)
    const [one, other] = [first, second].map(({ text }) => withoutIds(text).replace(/"created":\d+/, ''))
    expect(one).toBe(other)
    expect(started.sandbox.requests).toHaveLength(2)
  })
})

describe('options', () => {
  test.each<[unknown, string]>([
    [{ rules: [{ endpoints: ['video'] }] }, 'cache.rules[0].endpoints: "video" is none of chat, messages, responses'],
    [{ rule: [] }, 'createGateway: cache.rule is unknown; did you mean rules?'],
    [{ rules: [{ model: 'x' }] }, 'createGateway: cache.rules[0].model is unknown; did you mean models?'],
    [{ rules: [] }, "callers: 'may-ask'"],
    [{ partition: 'gateway' }, 'cache.partition must be account, key or user'],
    [{ ttlMs: 0 }, 'cache.ttlMs must be a positive number'],
    [{ maxTtlMs: 86_400_001 }, 'cache.maxTtlMs must be a positive number of milliseconds, at most 86400000'],
    [{ ttlMs: 70_000, maxTtlMs: 60_000 }, 'at most 60000'],
    [{ callers: 'all' }, 'cache.callers must be may-ask or ignored'],
    [{ store: {} }, 'cache.store must be a response cache'],
    [true, 'cache must be an object'],
  ])('%j are refused at start', async (cache, message) => {
    started = await start()
    await expect(start({ cache: cache as GatewayOptions['cache'] & object })).rejects.toThrow(message)
  })
})

test('an unknown caller learns nothing from the cache', async () => {
  started = await start({ cache: { rules: [{ partition: 'gateway' }] } })
  await ask(chatBody('chat-relayed', 'hello', SURE))
  const foreign = await ask(chatBody('chat-relayed', 'hello', SURE), { authorization: `Bearer ${TEST_KEY}-no` })

  expect([foreign.response.status, foreign.cache]).toEqual([401, null])
})
