import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { Principal } from '../../../src/stores/principal.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody, type StartedGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { askCached, CHAT, SURE, startCached } from './cached-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const ask = (body: unknown, headers?: Record<string, string>) => askCached(started, body, headers)

describe('headers of callers', () => {
  const body = chatBody('chat-relayed', 'hello')

  test('do nothing unless the operator lets them', async () => {
    started = await startCached({ cache: {} })
    for (let count = 0; count < 2; count++)
      expect((await ask(body, { 'x-signalbox-cache': 'use', 'x-signalbox-cache-ttl': 'x' })).cache).toBe('bypass')
  })

  test('ask for the cache, for a new answer, for none of it, and for nothing else', async () => {
    started = await startCached({ cache: { rules: [], callers: 'may-ask' } })
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

  test.each<[string, string, object]>([
    ['is stored', CHAT, chatBody('chat-relayed', 'hello', { ...SURE, store: true })],
    ['runs in the background', '/v1/responses', { model: 'chat-relayed', input: 'hello', background: true }],
    ['is for a picture', '/v1/images/generations', { model: 'gp-image-2', prompt: 'a boat', size: '1024x1024' }],
  ])('ask for nothing else where a request that %s is never cached', async (_what, path, uncached) => {
    started = await startCached({ cache: { callers: 'may-ask' } })
    const before = await started.account()
    const { response } = await ask(uncached, { path, 'x-signalbox-cache': 'only' })

    expect([response.status, response.headers.get('x-signalbox-error-code')]).toEqual([504, 'cache_miss'])
    expect(started.sandbox.requests).toHaveLength(0)
    expect(await started.account()).toEqual(before)
  })

  test("set how long an answer is fresh, up to the operator's longest", async () => {
    const clock = fakeClock()
    started = await startCached({ clock, cache: { callers: 'may-ask', maxTtlMs: 60_000 } })
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
  ])('get 400 when %s contains %s', async (name, value) => {
    started = await startCached({ cache: { callers: 'may-ask' } })
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
      started = await startCached({ billing: 'off', authenticate, cache: { rules: [{ partition }] } })
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
    started = await startCached({ billing: 'off', authenticate, cache: {} })
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

test('an unknown caller learns nothing from the cache', async () => {
  started = await startCached({ cache: { rules: [{ partition: 'gateway' }] } })
  await ask(chatBody('chat-relayed', 'hello', SURE))
  const foreign = await ask(chatBody('chat-relayed', 'hello', SURE), { authorization: `Bearer ${TEST_KEY}-no` })

  expect([foreign.response.status, foreign.cache]).toEqual([401, null])
})
