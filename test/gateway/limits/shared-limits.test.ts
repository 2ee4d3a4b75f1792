import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { redisLimits } from '../../../src/stores/redis/redis-limits.ts'
import { missingProgram, realServer } from '../../support/real-servers.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { startRedis } from '../../support/start-redis.ts'

const server = await realServer('redis')
const undo: (() => unknown)[] = []

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

/** Starts a gateway like a separate process: with its own connection. */
async function gatewayOn(url: string, prefix: string, options: Partial<GatewayOptions>): Promise<StartedGateway> {
  const client = new Redis(url, { retryStrategy: () => 100 })
  client.on('error', () => undefined)
  await once(client, 'ready')
  const { rateLimiter, concurrencyLimiter, close } = redisLimits({ client, prefix, deadlineMs: 1_000 })
  const started = await startGateway({ billing: 'off', rateLimiter, concurrencyLimiter, ...options })
  undo.push(async () => {
    await started.close()
    close()
    client.disconnect()
  })
  return started
}

function chat(gateway: StartedGateway): Promise<Response> {
  return gateway.post('/v1/chat/completions', chatBody('chat-relayed', 'One lamp or two?'))
}

describe.skipIf(server.missing !== undefined)('two gateways on one Redis', () => {
  test('share one limit of requests', async () => {
    const prefix = `test:${randomUUID()}:`
    const limits = { requestsPerMinute: 7 }
    const gateways = [await gatewayOn(server.url, prefix, { limits }), await gatewayOn(server.url, prefix, { limits })]

    const statuses: number[] = []
    for (let count = 0; count < 10; count++) statuses.push((await chat(gateways[count % 2]!)).status)

    expect(statuses.filter((status) => status === 200)).toHaveLength(7)
    expect(statuses.filter((status) => status === 429)).toHaveLength(3)
  })

  test('share the places among requests under way, and give them back', async () => {
    const prefix = `test:${randomUUID()}:`
    const limits = { concurrency: 1 }
    const first = await gatewayOn(server.url, prefix, { limits })
    const second = await gatewayOn(server.url, prefix, { limits })

    const together = await Promise.all(Array.from({ length: 12 }, (_, index) => chat(index % 2 === 0 ? first : second)))
    const afterwards = await chat(second)

    expect(together.map(({ status }) => status)).toContain(429)
    expect(new Set(together.map(({ status }) => status))).toEqual(new Set([200, 429]))
    expect(afterwards.status).toBe(200)
  })

  test('share one limit of tokens, corrected to what was used', async () => {
    const prefix = `test:${randomUUID()}:`
    const limits = { tokensPerMinute: 2_500 }
    const first = await gatewayOn(server.url, prefix, { limits })
    const second = await gatewayOn(server.url, prefix, { limits })

    // Each is estimated at more than 2,000 tokens, so that two pass only because the first gave most of them back.
    const statuses = [(await chat(first)).status, (await chat(second)).status]

    expect(statuses).toEqual([200, 200])
  })
})

describe.skipIf(missingProgram('redis') !== undefined)('a gateway whose Redis dies', () => {
  test('goes on answering by the limits that it keeps itself, which know what was taken before', async () => {
    const ownServer = await startRedis()
    undo.push(() => ownServer.stop())
    const limits = { requestsPerMinute: 5, concurrency: 3 }
    const gateway = await gatewayOn(ownServer.url, 'test:', { limits })
    expect((await chat(gateway)).status).toBe(200)
    await ownServer.kill()

    const statuses: number[] = []
    for (let count = 0; count < 6; count++) statuses.push((await chat(gateway)).status)

    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
  })
})
