import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import { type Clock, systemClock } from '../../core/clock.ts'
import type { EventListener, GatewayEvent } from '../../core/events.ts'
import { checkGivenMembers, memberNames } from '../../core/known-members.ts'
import { type Logger, usableLogger } from '../../core/logger.ts'
import { RecentMap } from '../../core/maps.ts'
import { isPending } from '../../core/maybe-promise.ts'
import { memoryCache } from '../memory/memory-cache.ts'
import type { ConcurrencyLimiter, RateLimiter } from '../rate-limiter.ts'
import { MAX_CACHE_KEEP_MS, type ResponseCache } from '../response-cache.ts'
import { redisConcurrencyLimiter, redisRateLimiter } from './redis-limiters.ts'
import { type RedisClient, redisLink, replyRunner, scriptRunner } from './redis-link.ts'
import { bucketKey, PROBE, script } from './redis-scripts.ts'

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

const REDIS_LIMITS_OPTIONS = memberNames<RedisLimitsOptions>()(
  'client prefix expectedInstances deadlineMs onEvent logger clock',
)

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
    // A cluster chooses the node by the text between the braces of a key.
    probeKey: (key) => bucketKey(prefix, `probe:${key.slice(key.indexOf('{') + 1, key.indexOf('}'))}`),
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

/** Options of `redisCache`. */
export interface RedisCacheOptions {
  /** Client of ioredis, iovalkey or node-redis, or a cluster of these, as for `redisLimits`. The host connects and closes it. */
  readonly client: RedisClient
  /** Prefix of all keys. Default `signalbox:`. */
  readonly prefix?: string | undefined
  /** Secret for hashing keys, so that readers of the server cannot test guesses of prompts; at least 24 characters. Default none. */
  readonly secret?: string | undefined
  /** Cache in this process that is checked before the server, or false for none. Default `memoryCache({ maxBytes: 16 MiB })`. */
  readonly local?: ResponseCache | false | undefined
  /** Maximum time that a request waits for the server, in milliseconds. Default 50. */
  readonly deadlineMs?: number | undefined
  /** Logger. Default silent. */
  readonly logger?: Logger | undefined
  /** Clock of the deadline. Defaults to the machine's. */
  readonly clock?: Clock | undefined
}

const REDIS_CACHE_OPTIONS = memberNames<RedisCacheOptions>()('client prefix secret local deadlineMs logger clock')

/** Cache that several processes share. */
export interface RedisCache extends ResponseCache {
  /** Stops probing an unavailable server. The client stays open, because it belongs to the host. */
  close(): void
}

const DEFAULT_LOCAL_BYTES = 16 * 1024 * 1024
const MIN_SECRET = 24

/** Time for which this process uses a generation that another one may have raised. */
const GENERATION_MS = 1_000
const MAX_GENERATIONS = 10_000

// Clients return strings, so bytes are base64 there.
const READ = script(`
local value = redis.call('GET', KEYS[1])
if not value then return {} end
return {value, redis.call('PTTL', KEYS[1])}`)
const WRITE = script(`redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return {}`)
const READ_GENERATION = script(`return {redis.call('GET', KEYS[1]) or '0'}`)
// No entry outlives a generation that was dropped.
const RAISE_GENERATION = script(`
local generation = redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ${MAX_CACHE_KEEP_MS * 2})
return {generation}`)

/**
 * Creates a response cache that all processes share on one server: Redis 5 or later, or a compatible one, with a local cache in
 * each process. After an error or a missed deadline the server is not used until it answers a probe; requests then call their
 * vendors. Configure a limit on the server (`maxmemory` with `allkeys-lru`), because entries live until they expire.
 * @throws TypeError with the invalid option.
 */
export function redisCache(options: RedisCacheOptions): RedisCache {
  checkGivenMembers(options, REDIS_CACHE_OPTIONS, 'redisCache')
  const { client, prefix = 'signalbox:', secret, deadlineMs = 50, clock = systemClock } = options
  const { local = memoryCache({ maxBytes: DEFAULT_LOCAL_BYTES }) } = options
  if (/[{}]/.test(prefix)) throw new TypeError('redisCache: prefix must not contain braces')
  if (secret !== undefined && !(secret.length >= MIN_SECRET))
    throw new TypeError(`redisCache: secret must have at least ${MIN_SECRET} characters`)
  if (!(Number.isFinite(deadlineMs) && deadlineMs > 0))
    throw new TypeError('redisCache: deadlineMs must be a positive number')
  const logger = usableLogger(options.logger)
  const link = redisLink({
    run: replyRunner(client, (reply) => (Array.isArray(reply) ? (reply as unknown[]) : [reply])),
    deadlineMs,
    clock,
    probe: PROBE,
    probeKey: () => `${prefix}cache:probe`,
    onDown: ({ reason, error }) =>
      logger.warn('the shared cache is unreachable; requests call their vendors', { reason, error }),
    onUp: (degradedMs) => logger.info('the cache is shared again', { degradedMs }),
  })
  const generations = new RecentMap<number>(MAX_GENERATIONS)

  const placeOf = (key: string): string =>
    `${prefix}cache:${secret === undefined ? key : createHmac('sha256', secret).update(key).digest('base64url')}`
  const generationKey = (scope: string): string => `${prefix}cache-generation:${scope}`

  function remember(scope: string, generation: number): number {
    generations.set(scope, generation, clock.now(), GENERATION_MS)
    return generation
  }

  async function readShared(key: string, nowMs: number): Promise<Uint8Array | undefined> {
    const [value, leftMs] = (await link.call(READ, [placeOf(key)], [])) ?? []
    if (typeof value !== 'string') return undefined
    const entry = new Uint8Array(Buffer.from(value, 'base64'))
    if (local !== false) await local.set(key, entry, Number(leftMs), nowMs)
    return entry
  }

  async function readGeneration(scope: string): Promise<number | undefined> {
    const [generation] = (await link.call(READ_GENERATION, [generationKey(scope)], [])) ?? []
    return generation === undefined ? undefined : remember(scope, Number(generation))
  }

  return {
    get(key, nowMs) {
      if (local === false) return readShared(key, nowMs)
      const entry = local.get(key, nowMs)
      if (isPending(entry)) return entry.then((known) => known ?? readShared(key, nowMs))
      return entry ?? readShared(key, nowMs)
    },

    async set(key, entry, keepMs, nowMs) {
      if (local !== false) await local.set(key, entry, keepMs, nowMs)
      const value = Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength).toString('base64')
      const keptMs = Math.min(Math.ceil(keepMs), MAX_CACHE_KEEP_MS)
      const reply = await link.call(WRITE, [placeOf(key)], [value, `${keptMs}`])
      if (reply === undefined) throw new Error('the shared cache is unreachable')
    },

    generation(scope) {
      return generations.get(scope, clock.now()) ?? readGeneration(scope)
    },

    async clear(scope) {
      const [generation] = (await link.call(RAISE_GENERATION, [generationKey(scope)], [])) ?? []
      if (generation === undefined) throw new Error('the shared cache is unreachable')
      remember(scope, Number(generation))
    },

    close: () => link.close(),
  }
}
