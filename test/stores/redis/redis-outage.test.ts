import { EventEmitter, once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { type RedisLimits, type RedisLimitsOptions, redisLimits } from '../../../src/stores/redis/redis-limits.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { type StartedRedis, startRedis } from '../../support/start-redis.ts'
import { blackHole } from './support/black-hole.ts'
import { type ConnectedClient, REDIS_CLIENTS } from './support/redis-clients.ts'
import { steadyLoad } from './support/steady-load.ts'

const PER_MINUTE = 6_000
const BURST = 100

/** Another process on the machine only adds to a wait, so one of three runs must keep its bound. */
const TIMED = { retry: 2 }

// Most of the time is waiting, so the clients wait at the same time: each has a server of its own.
describe.skipIf(missingProgram('redis') !== undefined).concurrent.each(Object.keys(REDIS_CLIENTS))(
  'an outage of Redis behind %s',
  (name) => {
    let server: StartedRedis
    let connected: ConnectedClient
    let told: EventEmitter
    let events: GatewayEvent[]
    const undo: (() => unknown)[] = []

    beforeEach(async () => {
      server = await startRedis()
      connected = await REDIS_CLIENTS[name as keyof typeof REDIS_CLIENTS](server.url)
      told = new EventEmitter()
      events = []
    })
    afterEach(async () => {
      for (const step of undo.splice(0).reverse()) await step()
      connected.disconnect()
      await server.stop()
    })

    function limitsUnderTest(options: Partial<RedisLimitsOptions> = {}): RedisLimits {
      const onEvent = (event: GatewayEvent): void => {
        events.push(event)
        told.emit('event')
      }
      const limits = redisLimits({ client: connected.client, onEvent, ...options })
      undo.push(() => limits.close())
      return limits
    }

    /** Milliseconds from the end of `act` until the last thing told is of that type. */
    async function timeUntil(type: GatewayEvent['type'], act: () => Promise<unknown>): Promise<number> {
      const signal = AbortSignal.timeout(10_000)
      await act()
      const startMs = performance.now()
      while (events.at(-1)?.type !== type) await once(told, 'event', { signal })
      return performance.now() - startMs
    }

    const kill = (): Promise<void> => server.kill()
    const swallow = async (): Promise<void> => {
      await server.kill()
      const hole = await blackHole(server.port)
      undo.push(() => hole.close())
    }

    it.sequential.each([
      ['killed', kill],
      ['replaced by a black hole', swallow],
    ])(
      'adds little waiting, hangs nothing and keeps the limit when it is %s under load',
      TIMED,
      async (_, breakServer) => {
        const limits = limitsUnderTest()
        const calm = steadyLoad(limits, { perMinute: PER_MINUTE, burst: BURST, perTick: 1 })
        await pause(1_000)
        const before = await calm.stop()

        const load = steadyLoad(limits, { perMinute: PER_MINUTE, burst: BURST, perTick: 1 })
        await pause(1_000)
        await timeUntil('limits-degraded', breakServer)
        await pause(2_000)
        const during = await load.stop()

        const durationMs = before.durationMs + during.durationMs
        expect(before.hung + during.hung).toBe(0)
        expect(during.p99Ms - before.p99Ms).toBeLessThanOrEqual(60)
        expect(before.admitted + during.admitted).toBeLessThanOrEqual(
          1.2 * (BURST + (durationMs * PER_MINUTE) / 60_000),
        )
        // On a busy machine the load asks for less than the limit grants.
        const grantable = Math.min(during.asked, (during.durationMs * PER_MINUTE) / 60_000)
        expect(during.admitted).toBeGreaterThan(0.5 * grantable)
        expect(events.at(-1)?.type).toBe('limits-degraded')
      },
    )

    it.sequential(
      'shares the limits again within two seconds after a killed server is back, and grants no second burst',
      TIMED,
      async () => {
        const limits = limitsUnderTest()
        const slow = { bucket: 'requests:key_1', amount: 90, perMinute: 100 }
        await limits.rateLimiter.take([slow], Date.now())
        await kill()
        // Commands that a client queues during the outage reach the server afterwards. Here they concern another bucket.
        await limits.rateLimiter.take([{ ...slow, bucket: 'requests:key_2' }], Date.now())
        const meanwhile = await limits.rateLimiter.take([slow], Date.now())

        const recoveryMs = await timeUntil('limits-recovered', () => server.resume())
        const afterwards = await limits.rateLimiter.take([slow], Date.now())

        expect(meanwhile.allowed).toBe(false)
        expect(recoveryMs).toBeLessThanOrEqual(2_000)
        expect(afterwards.allowed).toBe(false)
        expect(events.slice(-2)).toMatchObject([{ type: 'limits-degraded' }, { type: 'limits-recovered' }])
      },
    )

    it.sequential('shares the limits again within two seconds after a black hole is gone', TIMED, async () => {
      const limits = limitsUnderTest()
      await server.kill()
      const hole = await blackHole(server.port)
      await limits.rateLimiter.take([{ bucket: 'requests:key_1', amount: 1, perMinute: 60 }], Date.now())

      const recoveryMs = await timeUntil('limits-recovered', async () => {
        await hole.close()
        await server.resume()
      })

      expect(recoveryMs).toBeLessThanOrEqual(2_000)
    })

    it.sequential('keeps its part of the limit by itself, rounded down, at least one', async () => {
      const limits = limitsUnderTest({ expectedInstances: 4 })
      await kill()
      const grants = async (perMinute: number): Promise<number> => {
        const take = { bucket: `requests:key_${perMinute}`, amount: 1, perMinute }
        let count = 0
        while ((await limits.rateLimiter.take([take], Date.now())).allowed) count += 1
        return count
      }

      expect([await grants(27), await grants(4), await grants(2)]).toEqual([6, 1, 1])
    })

    it.sequential('counts leases across the outage: none is freed by it, none is kept after it', async () => {
      const { concurrencyLimiter } = limitsUnderTest()
      const nowMs = Date.now()
      const acquire = async (leaseId: string): Promise<boolean> =>
        concurrencyLimiter.acquire(
          { bucket: 'concurrency:key_1', leaseId, limit: 2, expiresAtMs: nowMs + 60_000 },
          nowMs,
        )
      const release = async (leaseId: string): Promise<void> =>
        concurrencyLimiter.release({ bucket: 'concurrency:key_1', leaseId })

      expect(await acquire('shared')).toBe(true)
      await kill()
      expect(await acquire('local')).toBe(true)
      expect(await acquire('third')).toBe(false)
      await timeUntil('limits-recovered', () => server.resume())
      expect(await acquire('third')).toBe(false)
      await release('shared')
      await release('local')
      expect([await acquire('fourth'), await acquire('fifth'), await acquire('sixth')]).toEqual([true, true, false])
    })

    it.sequential('gives a lease back on the server that was released while the server did not answer', async () => {
      const { concurrencyLimiter } = limitsUnderTest()
      const nowMs = Date.now()
      const leaseOf = (leaseId: string, limit: number) => ({
        bucket: 'concurrency:key_1',
        leaseId,
        limit,
        expiresAtMs: nowMs + 60_000,
      })
      await concurrencyLimiter.acquire(leaseOf('lease_1', 2), nowMs)
      await concurrencyLimiter.acquire(leaseOf('lease_2', 2), nowMs)
      process.kill(server.pid, 'SIGSTOP')
      await timeUntil('limits-degraded', async () => void concurrencyLimiter.release(leaseOf('lease_1', 2)))
      await concurrencyLimiter.release(leaseOf('lease_2', 2))

      await timeUntil('limits-recovered', async () => process.kill(server.pid, 'SIGCONT'))

      expect(await concurrencyLimiter.acquire(leaseOf('lease_3', 1), nowMs)).toBe(true)
    })
  },
)

/** Lets a load run for a while. */
function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
