import type { Logger } from '../core/logger.ts'
import type { ConcurrencyLimiter, RateLimiter } from '../stores/rate-limiter.ts'
import { type RedisClient, redisLimits } from '../stores/redis/redis-limits.ts'
import { loadOptionalPackage } from './optional-package.ts'
import { describeUrl } from './store-setting.ts'

/** How long the start waits for Redis. Without it, every process counts for itself until Redis is there. */
const START_WAIT_MS = 2_000

/** Redis must be found again within two seconds of its return. */
const LONGEST_RETRY_MS = 1_000

/** Limits that several gateways share. */
export interface SharedLimits {
  readonly rateLimiter: RateLimiter
  readonly concurrencyLimiter: ConcurrencyLimiter
  close(): Promise<void>
}

/** What is used of the package `ioredis`. */
interface IoredisClient {
  readonly status: string
  on(event: 'error' | 'ready', listener: (error: Error) => void): unknown
  disconnect(): void
}

type IoredisConstructor = new (url: string, options: Readonly<Record<string, unknown>>) => IoredisClient & RedisClient

/**
 * Connects to Redis and keeps the limits there. Redis that is down does not stop the start: limits are local meanwhile.
 * @param expectedInstances how many processes share them, each of which grants its part while Redis is down; one when undefined.
 * @throws SettingError when the package `ioredis` is missing.
 */
export async function openRedisLimits(
  url: string,
  expectedInstances: number | undefined,
  logger: Logger,
): Promise<SharedLimits> {
  const loaded = await loadOptionalPackage('ioredis', 'REDIS_URL')
  const Redis = (loaded['Redis'] ?? loaded['default']) as IoredisConstructor
  const client = new Redis(url, {
    // A command that waits for a connection would be late anyway.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: START_WAIT_MS,
    retryStrategy: (attempt: number) => Math.min(attempt * 100, LONGEST_RETRY_MS),
  })
  // Without a listener an error would end the process; the limits themselves say when they are shared and when not.
  client.on('error', () => undefined)
  if (!(await isReadyInTime(client)))
    logger.warn('Redis does not answer; limits are kept by this process until it does', { url: describeUrl(url) })
  const limits = redisLimits({ client, logger, ...(expectedInstances === undefined ? {} : { expectedInstances }) })
  return {
    rateLimiter: limits.rateLimiter,
    concurrencyLimiter: limits.concurrencyLimiter,
    async close() {
      limits.close()
      client.disconnect()
    },
  }
}

function isReadyInTime(client: IoredisClient): Promise<boolean> {
  return new Promise((resolve) => {
    if (client.status === 'ready') return resolve(true)
    // Not the shared clock: its timers let the process end, and nothing else may be under way yet.
    const timer = setTimeout(() => resolve(false), START_WAIT_MS)
    client.on('ready', () => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
