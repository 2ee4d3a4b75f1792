import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisCacheOptions, type RedisClient, redisCache } from '../../../src/stores/redis/redis-limits.ts'
import { describeResponseCache } from '../../../src/testing/contracts/limiter-contracts.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { realServer } from '../../support/real-servers.ts'
import { chatBody, startGateway, TEST_ACCOUNT, TEST_MODELS } from '../../support/start-gateway.ts'
import { freePort } from '../../support/started-process.ts'
import { blackHole } from './support/black-hole.ts'
import { type ConnectedClient, REDIS_CLIENTS } from './support/redis-clients.ts'

const server = await realServer('redis')
// Long enough for a busy machine, because this file tests decisions of the server.
const DEADLINE_MS = 10_000
const CHAT = '/v1/chat/completions'
const BODY = chatBody('chat-relayed', 'a secret question', { temperature: 0 })
const PLAIN = {
  ...{ id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini' },
  limits: { maxOutputTokens: 2000 },
} as const
const MODELS = [...TEST_MODELS, PLAIN]

describe.skipIf(server.missing !== undefined).each(Object.keys(REDIS_CLIENTS))('the cache on Redis by %s', (name) => {
  let connected: ConnectedClient
  let redis: Redis
  let prefix = ''

  beforeAll(async () => {
    connected = await REDIS_CLIENTS[name as keyof typeof REDIS_CLIENTS](server.url)
    redis = new Redis(server.url)
  })
  afterAll(() => {
    connected.disconnect()
    redis.disconnect()
  })

  function freshCache(options: Partial<RedisCacheOptions> = {}) {
    prefix = `test:${randomUUID()}:`
    return redisCache({ client: connected.client, prefix, deadlineMs: DEADLINE_MS, local: false, ...options })
  }

  /** Ages the keys on the server, as if its clock had been advanced. */
  const clock = {
    now: () => Date.now(),
    async advance(milliseconds: number) {
      for (const key of await redis.keys(`${prefix}*`)) {
        const leftMs = await redis.pttl(key)
        if (leftMs > 0) await redis.pexpire(key, Math.max(0, leftMs - milliseconds))
      }
    },
  }

  describeResponseCache({ describe, it, expect }, { create: () => freshCache(), clock })

  it('keeps nothing on the server without an end', async () => {
    const cache = freshCache()
    await cache.set('key_1', Uint8Array.of(1), 1000, Date.now())
    await cache.clear('acct_1', Date.now())
    const keys = await redis.keys(`${prefix}*`)

    expect(keys).toHaveLength(2)
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0)
  })
})

describe.skipIf(server.missing !== undefined)('the cache on Redis', () => {
  let connected: ConnectedClient
  let redis: Redis

  beforeAll(async () => {
    connected = await REDIS_CLIENTS.ioredis(server.url)
    redis = new Redis(server.url)
  })
  afterAll(() => {
    connected.disconnect()
    redis.disconnect()
  })

  it('is shared by gateways, each with a part of its own, and cleared for all of them', async () => {
    const prefix = `test:${randomUUID()}:`
    const clocks = [fakeClock(), fakeClock()]
    const gateways = await Promise.all(
      clocks.map((clock) => {
        const store = redisCache({ client: connected.client, prefix, deadlineMs: DEADLINE_MS, clock })
        return startGateway({ models: MODELS, billing: 'off', clock, cache: { store } })
      }),
    )
    const [one, two] = gateways as [(typeof gateways)[0], (typeof gateways)[0]]
    const ask = async (started: typeof one): Promise<string | null> => {
      const response = await started.post(CHAT, BODY)
      await response.text()
      return response.headers.get('x-signalbox-cache')
    }
    expect(await ask(one)).toBe('miss')
    await expect.poll(() => one.gateway.cache.stats().writes).toBe(1)
    expect(await ask(two)).toBe('hit')
    await one.gateway.cache.clear({ account: TEST_ACCOUNT })
    expect(await ask(one)).toBe('miss')
    for (const clock of clocks) clock.advance(1_000)
    await expect.poll(() => one.gateway.cache.stats().writes).toBe(2)
    // Entries that the second one stored locally belong to the old generation.
    expect(await ask(two)).toBe('hit')
    expect(two.sandbox.requests).toHaveLength(0)
    await Promise.all(gateways.map((started) => started.close()))
  })

  it('shows neither prompts nor keys that could be guessed when it has a secret', async () => {
    const places = []
    for (const secret of ['a'.repeat(24), 'b'.repeat(24), undefined]) {
      const prefix = `test:${randomUUID()}:`
      const cache = redisCache({ client: connected.client, prefix, deadlineMs: DEADLINE_MS, secret })
      await cache.set('key_1', Uint8Array.of(1), 60_000, Date.now())
      places.push((await redis.keys(`${prefix}*`))[0]?.slice(prefix.length))
    }

    expect(new Set(places).size).toBe(3)
    expect(places[2]).toBe('cache:key_1')
  })

  it('fails no request if it never answers, and costs one deadline', async () => {
    const port = await freePort()
    const hole = await blackHole(port)
    const client = new Redis(`redis://127.0.0.1:${port}`, { lazyConnect: true, enableReadyCheck: false })
    client.on('error', () => undefined)
    const store = redisCache({ client: client as RedisClient, deadlineMs: 1_000 })
    const started = await startGateway({ models: MODELS, billing: 'off', cache: { store } })
    const statuses = []
    const seen = []
    const startedAtMs = performance.now()
    for (let count = 0; count < 20; count++) {
      const response = await started.post(CHAT, BODY)
      await response.text()
      statuses.push(response.status)
      seen.push(response.headers.get('x-signalbox-cache'))
    }
    const tookMs = performance.now() - startedAtMs
    await expect(started.gateway.cache.clear()).rejects.toMatchObject({ code: 'store_unavailable' })
    store.close()
    client.disconnect()
    await started.close()
    await hole.close()

    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(new Set(seen)).toEqual(new Set(['bypass']))
    expect(tookMs).toBeLessThan(5_000)
  })
})

it('checks its options', () => {
  const client = { evalsha: async () => 1, eval: async () => 1 }

  expect(() => redisCache({ client, prefix: 'a{b}' })).toThrow('redisCache: prefix must not contain braces')
  expect(() => redisCache({ client, secret: 'short' })).toThrow('redisCache: secret must have at least 24 characters')
  expect(() => redisCache({ client, deadlineMs: 0 })).toThrow('redisCache: deadlineMs must be a positive number')
})
