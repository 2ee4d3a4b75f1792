import { type Clock, systemClock } from '../../core/clock.ts'
import type { EventListener, GatewayEvent } from '../../core/events.ts'
import { checkGivenMembers, type MemberNames } from '../../core/known-members.ts'
import { type Logger, usableLogger } from '../../core/logger.ts'
import type { ConcurrencyLimiter, RateLimiter } from '../rate-limiter.ts'
import { redisConcurrencyLimiter } from './redis-concurrency-limiter.ts'
import { type RedisClient, redisLink, scriptRunner } from './redis-link.ts'
import { redisRateLimiter } from './redis-rate-limiter.ts'
import { bucketKey, PROBE } from './redis-scripts.ts'

export { type RedisCache, type RedisCacheOptions, redisCache } from './redis-cache.ts'
export type { NamedClient, RedisClient, RowClient } from './redis-link.ts'

/** Options of `redisLimits`. */
export interface RedisLimitsOptions {
  /**
   * Client of ioredis, iovalkey or node-redis (4 and later), or a cluster of these; connected, reconnected and closed by the
   * host. Its reconnect delay determines how soon the limits are shared again after an outage: keep it at a second or less.
   */
  readonly client: RedisClient
  /** Prefix of all keys, without braces, which have a meaning in clusters. Default `signalbox:`. */
  readonly prefix?: string | undefined
  /** Number of processes that share the limits; each enforces its share while the server is unavailable. Default 1. */
  readonly expectedInstances?: number | undefined
  /** Maximum time that a request waits for the server, in milliseconds. Default 50. */
  readonly deadlineMs?: number | undefined
  /** Receives `limits-degraded` and `limits-recovered`. */
  readonly onEvent?: EventListener | undefined
  /** Logger. Default silent. */
  readonly logger?: Logger | undefined
  /** Clock of the deadline and the local limits. Defaults to the machine's. */
  readonly clock?: Clock | undefined
}

const REDIS_LIMITS_OPTIONS = {
  client: true,
  prefix: true,
  expectedInstances: true,
  deadlineMs: true,
  onEvent: true,
  logger: true,
  clock: true,
} satisfies MemberNames<RedisLimitsOptions>

/** Limits that several processes share. */
export interface RedisLimits {
  /** Rate limiter for the option `rateLimiter` of `createGateway`. */
  readonly rateLimiter: RateLimiter
  /** Concurrency limiter for the option `concurrencyLimiter` of `createGateway`. */
  readonly concurrencyLimiter: ConcurrencyLimiter
  /** Stops probing an unavailable server. The client stays open, because it belongs to the host. */
  close(): void
}

// After this time a bucket without debt is full, so lost server state has no effect.
const REMEMBERED_MS = 60_000

/**
 * Creates limits shared by all processes on one server: Redis 5 or later, or a compatible one. Every decision is one script on
 * the server, by the server's clock; the callers' `nowMs` only sets the lifetime of leases.
 *
 * After an error or a missed deadline the server is not used until it answers a probe. Meanwhile each process enforces its share
 * of the limits: nothing waits, and with a correct `expectedInstances` the total stays within the limit.
 *
 * @example
 * const limits = redisLimits({ client: new Redis(process.env.REDIS_URL), expectedInstances: 4 })
 * const gateway = createGateway({
 *   vendors,
 *   prices,
 *   rateLimiter: limits.rateLimiter,
 *   concurrencyLimiter: limits.concurrencyLimiter,
 * })
 *
 * @throws TypeError with the invalid option.
 */
export function redisLimits(options: RedisLimitsOptions): RedisLimits {
  checkGivenMembers(options, REDIS_LIMITS_OPTIONS, 'redisLimits')
  const { client, prefix = 'signalbox:', expectedInstances = 1, deadlineMs = 50, clock = systemClock } = options
  if (/[{}]/.test(prefix)) throw new TypeError('redisLimits: prefix must not contain braces')
  if (!Number.isInteger(expectedInstances) || expectedInstances < 1) {
    throw new TypeError('redisLimits: expectedInstances must be a whole number of at least 1')
  }
  if (!(Number.isFinite(deadlineMs) && deadlineMs > 0)) {
    throw new TypeError('redisLimits: deadlineMs must be a positive number')
  }
  const logger = usableLogger(options.logger)
  const run = scriptRunner(client)
  let wentUpAtMs = Number.NEGATIVE_INFINITY

  function emit(event: GatewayEvent): void {
    try {
      options.onEvent?.(event)
    } catch (error) {
      logger.error('an event listener threw', { type: event.type, error })
    }
  }

  const link = redisLink({
    run,
    deadlineMs,
    clock,
    probe: PROBE,
    probeKey: (failedKey) => bucketKey(prefix, `probe:${tagOf(failedKey)}`),
    onDown({ reason, error }) {
      logger.warn('shared limits are unreachable; this process enforces its own share', { reason, error })
      emit({ type: 'limits-degraded', reason, error })
    },
    beforeUp: (call) => concurrencyLimiter.prepare(call),
    onUp(degradedMs) {
      wentUpAtMs = clock.now()
      // Sent before any request, so that the server counts the requests in progress.
      void concurrencyLimiter.reconcile()
      logger.info('limits are shared again', { degradedMs })
      emit({ type: 'limits-recovered', degradedMs })
    },
  })
  const mayHaveLostBuckets = (): boolean => {
    const nowMs = clock.now()
    // The clock was set back, so a minute from now is long enough.
    wentUpAtMs = Math.min(wentUpAtMs, nowMs)
    return nowMs - wentUpAtMs < REMEMBERED_MS
  }
  const rateLimiter = redisRateLimiter({ link, prefix, expectedInstances, mayHaveLostBuckets })
  const concurrencyLimiter = redisConcurrencyLimiter({ link, prefix, expectedInstances, clock })
  return { rateLimiter, concurrencyLimiter, close: () => link.close() }
}

/** Returns the text between the braces of a key. */
function tagOf(key: string): string {
  return key.slice(key.indexOf('{') + 1, key.indexOf('}'))
}
