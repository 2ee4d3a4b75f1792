import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RateLimiter, RateTake } from '../../../src/stores/rate-limiter.ts'
import { type RedisClient, type RedisLimits, redisLimits } from '../../../src/stores/redis/redis-limits.ts'
import { describeConcurrencyLimiter, describeRateLimiter } from '../../../src/testing/contracts/limiter-contracts.ts'
import { realServer } from '../../support/real-servers.ts'
import { type ConnectedClient, REDIS_CLIENTS } from './support/redis-clients.ts'
import { type ServerClock, serverClock } from './support/server-clock.ts'

const runner = { describe, it, expect }
const server = await realServer('redis')
// Long enough for a busy machine, because this file tests decisions of the server.
const DEADLINE_MS = 10_000
/** Server's reply for the lifetime of a key without one. */
const WITHOUT_EXPIRY = -1
const CALLERS = 8

describe.skipIf(server.missing !== undefined).each(Object.keys(REDIS_CLIENTS))('limits on Redis by %s', (name) => {
  let connected: ConnectedClient
  let prefix = ''
  let serverTime: ServerClock
  const clock = {
    now: () => Date.now(),
    advance: (milliseconds: number) => serverTime.advance(milliseconds),
  }

  beforeAll(async () => {
    connected = await REDIS_CLIENTS[name as keyof typeof REDIS_CLIENTS](server.url)
    serverTime = serverClock(server.url, () => prefix)
  })
  afterAll(() => {
    connected.disconnect()
    serverTime.redis.disconnect()
  })

  function freshLimits(): RedisLimits {
    prefix = `test:${randomUUID()}:`
    return redisLimits({ client: connected.client, prefix, deadlineMs: DEADLINE_MS })
  }

  describeRateLimiter(runner, { create: () => freshLimits().rateLimiter, clock })
  describeConcurrencyLimiter(runner, { create: () => freshLimits().concurrencyLimiter, clock })

  it('sends a script again when the server has lost it', async () => {
    const { rateLimiter } = freshLimits()
    await rateLimiter.take([requests()], Date.now())
    await serverTime.redis.script('FLUSH')

    const decision = await rateLimiter.take([requests()], Date.now())

    expect(decision).toMatchObject({ allowed: true, buckets: [{ remaining: 4 }] })
    expect(await serverTime.keys()).toHaveLength(1)
  })
})

describe.skipIf(server.missing !== undefined)('limits on Redis', () => {
  let connected: ConnectedClient
  let prefix = ''
  let serverTime: ServerClock

  beforeAll(async () => {
    connected = await REDIS_CLIENTS.ioredis(server.url)
    serverTime = serverClock(server.url, () => prefix)
  })
  afterAll(() => {
    connected.disconnect()
    serverTime.redis.disconnect()
  })

  function freshLimits(): RedisLimits {
    prefix = `test:${randomUUID()}:`
    return redisLimits({ client: connected.client, prefix, deadlineMs: DEADLINE_MS })
  }

  it('grants exactly a burst of 997, one by one, at a limit that does not divide a minute', async () => {
    const { rateLimiter } = freshLimits()
    const take = { bucket: 'requests:key_1', amount: 1, perMinute: 7, burst: 997 }

    const decisions = await Promise.all(Array.from({ length: 1_100 }, () => rateLimiter.take([take], Date.now())))

    // One more flows back in eight and a half seconds.
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(997)
  })

  it('uses the clock of the server, so that callers with wrong clocks still share a limit', async () => {
    const { rateLimiter } = freshLimits()
    const wrongClocks = [0, Date.now() - 86_400_000, Date.now(), Date.now() + 86_400_000]

    for (let count = 0; count < 6; count++) await rateLimiter.take([requests()], wrongClocks[count % 4]!)

    for (const nowMs of wrongClocks) {
      expect((await rateLimiter.take([requests()], nowMs)).allowed).toBe(false)
    }
  })

  it('leaves no key on the server that does not expire by itself', async () => {
    const { rateLimiter, concurrencyLimiter } = freshLimits()
    const nowMs = Date.now()
    await rateLimiter.take([requests(), { bucket: 'tokens:key_1', amount: 50, perMinute: 60 }], nowMs)
    await rateLimiter.adjust({ bucket: 'tokens:key_2', amount: 30, perMinute: 60 }, nowMs)
    await concurrencyLimiter.acquire(lease('lease_1', nowMs + 5_000), nowMs)
    await concurrencyLimiter.acquire(lease('lease_2', nowMs - 5_000), nowMs)

    const keys = await serverTime.keys()
    const lifetimes = await Promise.all(keys.map((key) => serverTime.redis.pttl(key)))

    expect(keys.length).toBeGreaterThanOrEqual(4)
    expect(lifetimes).not.toContain(WITHOUT_EXPIRY)
    expect(Math.max(...lifetimes)).toBeLessThanOrEqual(61_000)
  })

  it('forgets a bucket that is full again', async () => {
    const { rateLimiter } = freshLimits()
    await rateLimiter.take([requests()], Date.now())
    await rateLimiter.adjust({ ...requests(), amount: -1 }, Date.now())

    expect(await serverTime.keys()).toEqual([])
  })

  it.each(['key_1', 'a:b', '}', 'a}b', '{x}', ''])(
    'keeps the buckets of the key %j in one cluster slot',
    async (keyId) => {
      const { rateLimiter } = freshLimits()
      const takes = ['requests', 'tokens'].map((kind) => ({ ...requests(), bucket: `${kind}:${keyId}` }))
      await rateLimiter.take(takes, Date.now())

      const keys = await serverTime.keys()

      expect(keys).toHaveLength(2)
      expect(hashTag(keys[0]!)).toBe(hashTag(keys[1]!))
      expect(hashTag(keys[0]!)).not.toBe('')
    },
  )

  it('never lets more than 200 through in any second at 100 a second with a burst of 100', async () => {
    const { rateLimiter } = freshLimits()
    const grants: number[] = []
    const endMs = Date.now() + 2_500
    const caller = async (): Promise<void> => {
      while (Date.now() < endMs) await takeAndNote(rateLimiter, grants)
    }

    await Promise.all(Array.from({ length: CALLERS }, caller))

    const most = Math.max(
      ...grants.map((startMs) => grants.filter((at) => at >= startMs && at < startMs + 1_000).length),
    )
    // Granted by the server before it is noted here: each caller may carry one grant into a later second.
    expect(most).toBeLessThanOrEqual(200 + CALLERS)
    expect(grants.length).toBeGreaterThan(200)
  })

  it.each([
    [{ client: {} as RedisClient }, 'client must be one of ioredis, iovalkey or node-redis'],
    [{ prefix: 'a{b}' }, 'prefix must not contain braces'],
    [{ expectedInstances: 0 }, 'expectedInstances'],
    [{ expectedInstances: 1.5 }, 'expectedInstances'],
    [{ deadlineMs: 0 }, 'deadlineMs'],
    [{ deadlineMs: Number.NaN }, 'deadlineMs'],
  ])('refuses options that cannot work: %j', (options, message) => {
    expect(() => redisLimits({ client: connected.client, ...options })).toThrow(message)
  })
})

async function takeAndNote(rateLimiter: RateLimiter, grants: number[]): Promise<void> {
  const take = { bucket: 'requests:key_1', amount: 1, perMinute: 6_000, burst: 100 }
  const { allowed } = await rateLimiter.take([take], Date.now())
  if (allowed) grants.push(Date.now())
}

function requests(): RateTake {
  return { bucket: 'requests:key_1', amount: 1, perMinute: 6 }
}

function lease(leaseId: string, expiresAtMs: number) {
  return { bucket: `concurrency:${leaseId}`, leaseId, limit: 2, expiresAtMs }
}

/** Part of a key that a cluster hashes: the text between the first opening brace and the first closing one after it. */
function hashTag(key: string): string {
  const start = key.indexOf('{')
  return key.slice(start + 1, key.indexOf('}', start))
}
