import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryCache } from '../../../src/stores/memory/memory-cache.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway } from '../../support/start-gateway.ts'
import { answeringVendor, json } from '../streams/answering-vendor.ts'
import { askCached, CHAT, EMBEDDING, SURE, startCached } from './cached-gateway.ts'

const ANSWER = {
  ...{ id: 'chatcmpl-0123456789', object: 'chat.completion', created: 1, model: 'chat-relayed' },
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
}

function choiceOf(content: string): object {
  return { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }
}

let started: StartedGateway

afterEach(() => started.close())

const ask = (body: unknown, headers?: Record<string, string>) => askCached(started, body, headers)

/** Returns the text without the ids that the cache generates again. */
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
])('equal requests with %s', (_name, options) => {
  test.each(CALLS)('answers a repeated %s without a vendor', async (_call, path, body) => {
    started = await startCached({ ...options, cache: {} })
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
  started = await startCached()
  const first = await ask(chatBody('chat-relayed', 'hello', SURE))
  await ask(chatBody('chat-relayed', 'hello', SURE))

  expect(first.cache).toBeNull()
  expect(started.sandbox.requests).toHaveLength(2)
  expect(started.gateway.cache.stats()).toEqual({ hits: 0, misses: 0, writes: 0, failedWrites: 0 })
  await started.gateway.cache.clear()
})

test.each([
  ['/v1/chat/completions', chatBody('chat-relayed', 'hello', SURE), /^chatcmpl-/],
  ['/v1/moderations', { input: 'hello' }, /^modr-/],
])('an answer given again has an id of its own, of the same length and kind: %s', async (path, body, kind) => {
  started = await startCached({ cache: {} })
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
    started = await startCached({ cache: {} })
    for (const rest of [{}, { temperature: null }, { temperature: 1 }]) {
      const body = chatBody('chat-relayed', 'hello', rest)
      expect([(await ask(body)).cache, (await ask(body)).cache]).toEqual(['bypass', 'bypass'])
    }

    expect(started.sandbox.requests).toHaveLength(6)
  })

  test('may be any sampling, of some endpoints and models', async () => {
    started = await startCached({ cache: { rules: [{ endpoints: ['chat'], models: ['cl-*'], sampling: 'any' }] } })
    const covered = chatBody('cl-sonnet-4-6', 'hello')

    expect([(await ask(covered)).cache, (await ask(covered)).cache]).toEqual(['miss', 'hit'])
    expect((await ask(chatBody('chat-relayed', 'hello', SURE))).cache).toBe('bypass')
    expect((await ask(EMBEDDING, { path: '/v1/embeddings' })).cache).toBe('bypass')
  })

  test('is asked of a vendor again in time when the clock was set back after an answer was kept', async () => {
    const clock = fakeClock()
    let aheadMs = 86_400_000
    const moved = { ...clock, now: () => clock.now() + aheadMs }
    started = await startCached({ clock: moved, cache: { rules: [{ ttlMs: 60_000 }] } })
    const first = await ask(chatBody('chat-relayed', 'hello', SURE))
    aheadMs = 0
    clock.advance(60_000)
    const second = await ask(chatBody('chat-relayed', 'hello', SURE))
    const third = await ask(chatBody('chat-relayed', 'hello', SURE))

    expect([first.cache, second.cache, third.cache]).toEqual(['miss', 'miss', 'hit'])
  })

  test('is fresh for the time of its rule', async () => {
    const clock = fakeClock()
    started = await startCached({ clock, cache: { rules: [{ ttlMs: 60_000 }] } })
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
    started = await startCached({ billing: 'off', cache: { rules: [{ sampling: 'any' }], callers: 'may-ask' } })
    for (const header of ['use', 'refresh']) await ask({ ...body, ...SURE }, { path, 'x-signalbox-cache': header })
    const { cache } = await ask({ ...body, ...SURE }, { path })

    // An error of the vendor has no such header.
    expect(['bypass', null]).toContain(cache)
    expect(started.gateway.cache.stats()).toMatchObject({ hits: 0, misses: 0, writes: 0 })
  })

  test('failures, and answers that were refused', async () => {
    started = await startCached({ cache: {} })
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
    started = await startCached({ vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], cache: {} })
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
    started = await startCached({ billing: 'off', models, cache: {} })
    const body = chatBody('chat-first', 'hello', SURE)
    started.sandbox.fault({ kind: 'quota', times: 1 })
    const fallback = await ask(body)
    const own = await ask(body)

    expect(JSON.parse(fallback.text)).toMatchObject({ model: 'cl-sonnet-4-6' })
    expect([fallback.cache, own.cache]).toEqual(['miss', 'miss'])
    expect(started.gateway.cache.stats().writes).toBe(0)
  })

  test('an answer that the balance made shorter', async () => {
    started = await startCached({ cache: {} })
    const { id } = await started.gateway.accounts.create()
    await started.gateway.accounts.credit(id, '0.003')
    const { key } = await started.gateway.keys.create({ accountId: id })
    const first = await ask(chatBody('chat-relayed', 'hello', SURE), { authorization: `Bearer ${key}` })

    expect(first.response.headers.get('x-signalbox-max-output-tokens')).not.toBeNull()
    expect(started.gateway.cache.stats().writes).toBe(0)
  })
})

describe('a cache that fails', () => {
  const body = chatBody('chat-relayed', 'hello', SURE)
  const broken = (): never => {
    throw new Error('no cache')
  }

  test('counts as empty, and the operator is notified', async () => {
    const store = { get: broken, set: broken, clear: broken, generation: () => 0 }
    started = await startCached({ cache: { store } })
    const first = await ask(body)

    expect([first.cache, first.response.status]).toEqual(['miss', 200])
    expect(started.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['internal-error', 'cache-write-failed']),
    )
    await expect(started.gateway.cache.clear()).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  test('is not read or written while its generations are unknown', async () => {
    const kept = memoryCache()
    started = await startCached({ cache: { store: { ...kept, generation: () => undefined } } })
    await ask(body)

    expect((await ask(body)).cache).toBe('bypass')
    expect(kept.size).toBe(0)
  })

  test.each<[string, (at: number, length: number) => boolean]>([
    ['head', (at) => at > 100 && at < 120],
    ['body', (at, length) => at >= length - 20],
  ])('calls the vendor if the %s of an entry is damaged', async (_part, isDamaged) => {
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
    started = await startCached({ cache: { store, callers: 'may-ask' } })
    const long = chatBody('chat-relayed', 'hello '.repeat(1000), SURE)
    const first = await ask(long)
    const only = await ask(long, { 'x-signalbox-cache': 'only' })
    const second = await ask(long)

    // A request for a cached answer or none pays no vendor.
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
    [
      { rules: [{ endpoints: ['video'] }] },
      'cache.rules[0].endpoints: "video" must be one of chat, messages, responses',
    ],
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
    started = await startCached()
    await expect(startCached({ cache: cache as GatewayOptions['cache'] & object })).rejects.toThrow(message)
  })
})
