import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test } from 'vitest'
import { connectRedis, isReadyInTime } from '../../../src/cli/open-store.ts'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { type RedisLimits, redisLimits } from '../../../src/stores/redis/redis-limits.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { type StartedRedis, startRedis } from '../../support/start-redis.ts'

describe.skipIf(missingProgram('redis') !== undefined)('Redis that takes no changes', () => {
  const undo: (() => unknown)[] = []
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step()
  })

  async function started(): Promise<{ server: StartedRedis; operator: Redis }> {
    const server = await startRedis()
    const operator = new Redis(server.url)
    undo.push(
      () => server.stop(),
      () => operator.disconnect(),
    )
    return { server, operator }
  }

  /** Proxy address that leads to a configurable server, the primary. */
  async function nameOf(first: StartedRedis): Promise<{ url: string; lead(server: StartedRedis): void }> {
    let { port } = first
    const server = createServer((caller) => {
      const callee = connect(port, '127.0.0.1')
      for (const socket of [caller, callee]) {
        socket.on('error', () => undefined)
        socket.on('close', () => [caller, callee].map((each) => each.destroy()))
      }
      caller.pipe(callee).pipe(caller)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    undo.push(() => server.close())
    return {
      url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
      lead(next) {
        port = next.port
      },
    }
  }

  /** Limits as `signalbox serve` shares them. */
  async function limitsAt(
    url: string,
  ): Promise<{ limits: RedisLimits; told(type: GatewayEvent['type']): Promise<unknown> }> {
    const client = await connectRedis(url, () => undefined)
    await isReadyInTime(client)
    const events = new EventTarget()
    let last = ''
    const limits = redisLimits({
      client,
      deadlineMs: 2_000,
      onEvent({ type }) {
        last = type
        events.dispatchEvent(new Event(type))
      },
    })
    undo.push(
      () => client.disconnect(),
      () => limits.close(),
    )
    return {
      limits,
      async told(type) {
        if (last !== type) await once(events, type, { signal: AbortSignal.timeout(10_000) })
      },
    }
  }

  const take = ({ rateLimiter }: RedisLimits, bucket = 'requests:key_1') =>
    rateLimiter.take([{ bucket, amount: 1, perMinute: 2 }], Date.now())

  test('because it became a replica is left for the new primary, without its connections being closed', async () => {
    const [old, next] = [await started(), await started()]
    const name = await nameOf(old.server)
    const { limits, told } = await limitsAt(name.url)
    await take(limits)

    await old.operator.call('REPLICAOF', '127.0.0.1', `${next.server.port}`)
    const meanwhile = [await take(limits), await take(limits)]
    await told('limits-degraded')
    name.lead(next.server)
    await told('limits-recovered')
    await take(limits, 'requests:key_2')

    expect(meanwhile.map(({ allowed }) => allowed)).toEqual([true, false])
    expect(await next.operator.keys('signalbox:*requests:key_2')).toHaveLength(1)
  })

  test('because its memory is full leaves the limits to each process until there is room', async () => {
    const { server, operator } = await started()
    const { limits, told } = await limitsAt(server.url)
    await take(limits)

    await operator.config('SET', 'maxmemory', '1')
    const meanwhile = [await take(limits), await take(limits)]
    await told('limits-degraded')
    await operator.config('SET', 'maxmemory', '0')
    await told('limits-recovered')
    await take(limits, 'requests:key_2')

    expect(meanwhile.map(({ allowed }) => allowed)).toEqual([true, false])
    expect(await operator.keys('signalbox:*requests:key_2')).toHaveLength(1)
  })

  test('because its password changed is used again once the client can sign in', async () => {
    const { server, operator } = await started()
    const { limits, told } = await limitsAt(server.url)
    await take(limits)

    await operator.config('SET', 'requirepass', 'secret')
    await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await take(limits)
    await told('limits-degraded')
    await operator.config('SET', 'requirepass', '')
    await told('limits-recovered')
    await take(limits, 'requests:key_2')

    expect(await operator.keys('signalbox:*requests:key_2')).toHaveLength(1)
  })
})
