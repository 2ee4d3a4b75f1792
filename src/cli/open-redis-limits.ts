import type { EventListener } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import type { ConcurrencyLimiter, RateLimiter } from '../stores/rate-limiter.ts'
import { type RedisClient, redisLimits } from '../stores/redis/redis-limits.ts'
import { describeUrl, loadOptionalPackage } from './open-store.ts'

/** How long the start waits for Redis, in milliseconds. After that, each process counts separately until Redis answers. */
const START_WAIT_MS = 2_000

/** Maximum delay between attempts to reconnect, in milliseconds. */
const LONGEST_RETRY_MS = 1_000

/** Limits that several gateways share. */
export interface SharedLimits {
  readonly rateLimiter: RateLimiter
  readonly concurrencyLimiter: ConcurrencyLimiter
  close(): Promise<void>
}

/** Used part of the package `ioredis`. */
interface IoredisClient {
  readonly status: string
  on(event: 'error' | 'ready', listener: (error: Error) => void): unknown
  disconnect(): void
}

type IoredisConstructor = new (url: string, options: Readonly<Record<string, unknown>>) => IoredisClient & RedisClient

/**
 * Connects to Redis and keeps the limits there. The start succeeds while Redis is down; limits are local until it answers.
 * @param expectedInstances Number of processes that share the limits; each grants its share while Redis is down. Default 1.
 * @throws SettingError if the package `ioredis` is missing.
 */
export async function openRedisLimits(
  url: string,
  expectedInstances: number | undefined,
  logger: Logger,
  onEvent?: EventListener,
): Promise<SharedLimits> {
  // The limits log when they are shared and when they are not.
  const client = await connectRedis(url, () => undefined)
  if (!(await isReadyInTime(client)))
    logger.warn('Redis does not answer; this process enforces limits by itself until it does', {
      url: describeUrl(url),
    })
  const limits = redisLimits({
    client,
    logger,
    ...(expectedInstances === undefined ? {} : { expectedInstances }),
    ...(onEvent === undefined ? {} : { onEvent }),
  })
  return {
    rateLimiter: limits.rateLimiter,
    concurrencyLimiter: limits.concurrencyLimiter,
    async close() {
      limits.close()
      client.disconnect()
    },
  }
}

/**
 * Starts to connect.
 * @param onError Called for each failed attempt; without a listener an error would end the process.
 * @throws SettingError if the package `ioredis` is missing.
 */
export async function connectRedis(url: string, onError: (error: Error) => void): Promise<IoredisClient & RedisClient> {
  const loaded = await loadOptionalPackage('ioredis', 'REDIS_URL')
  const Redis = (loaded['Redis'] ?? loaded['default']) as IoredisConstructor
  const client = new Redis(url, {
    // A command that waits for a connection would arrive too late.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: START_WAIT_MS,
    retryStrategy: (attempt: number) => Math.min(attempt * 100, LONGEST_RETRY_MS),
    // A primary that became a replica keeps its connections; a new connection may find the new primary.
    reconnectOnError: ({ message }: Error) => message.includes('READONLY'),
  })
  client.on('error', onError)
  return client
}

/** Waits until the server has answered, for up to two seconds. Returns whether it did. */
export function isReadyInTime(client: IoredisClient): Promise<boolean> {
  return new Promise((resolve) => {
    if (client.status === 'ready') return resolve(true)
    // Uses its own timer: the timers of the shared clock do not keep the process alive, and nothing else may do so yet.
    const timer = setTimeout(() => resolve(false), START_WAIT_MS)
    client.on('ready', () => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
