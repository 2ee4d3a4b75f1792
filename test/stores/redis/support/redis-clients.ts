import { Redis as IoRedis } from 'ioredis'
import { Redis as IoValkey } from 'iovalkey'
import { createClient } from 'redis'
import type { RedisClient } from '../../../../src/stores/redis/redis-limits.ts'

/** A client as a host would make it, and how the host ends it. */
export interface ConnectedClient {
  readonly client: RedisClient
  disconnect(): void
}

// Tests of outages wait for the reconnect, so it is tried often.
const RECONNECT_MS = 100

/** Connected clients of every library that the driver promises to work with. */
export const REDIS_CLIENTS = {
  ioredis: (url: string) => rowClient(new IoRedis(url, { retryStrategy: () => RECONNECT_MS })),
  iovalkey: (url: string) => rowClient(new IoValkey(url, { retryStrategy: () => RECONNECT_MS })),
  'node-redis': namedClient,
} as const satisfies Record<string, (url: string) => Promise<ConnectedClient>>

async function rowClient(client: IoRedis | IoValkey): Promise<ConnectedClient> {
  // Without a listener the libraries write to the console; what goes wrong shows in the calls.
  client.on('error', () => undefined)
  await client.ping()
  return { client, disconnect: () => client.disconnect() }
}

async function namedClient(url: string): Promise<ConnectedClient> {
  const client = createClient({ url, socket: { reconnectStrategy: () => RECONNECT_MS } })
  client.on('error', () => undefined)
  await client.connect()
  return { client, disconnect: () => client.destroy() }
}
