import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import { type Clock, systemClock } from '../../core/clock.ts'
import type { EventListener, GatewayEvent } from '../../core/events.ts'
import { checkGivenMembers, type MemberNames } from '../../core/known-members.ts'
import { type Logger, usableLogger } from '../../core/logger.ts'
import { RecentMap } from '../../core/maps.ts'
import { isPending } from '../../core/maybe-promise.ts'
import { MapCursor } from '../memory/account-shares.ts'
import { memoryCache } from '../memory/memory-cache.ts'
import { memoryConcurrencyLimiter, memoryRateLimiter } from '../memory/memory-limiters.ts'
import type { BucketState, ConcurrencyLimiter, Lease, RateLimiter, RateTake } from '../rate-limiter.ts'
import { LONGEST_CACHE_KEEP_MS, type ResponseCache } from '../response-cache.ts'
import { type RedisClient, type RedisLink, redisLink, replyRunner, scriptRunner } from './redis-link.ts'
import { ACQUIRE, ADJUST, bucketKey, ENTER, PROBE, RELEASE, RENEW, script, TAKE } from './redis-scripts.ts'

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

const REDIS_CACHE_OPTIONS = {
  client: true,
  prefix: true,
  secret: true,
  local: true,
  deadlineMs: true,
  logger: true,
  clock: true,
} satisfies MemberNames<RedisCacheOptions>

/** Cache that several processes share. */
export interface RedisCache extends ResponseCache {
  /** Stops probing an unavailable server. The client stays open, because it belongs to the host. */
  close(): void
}

const DEFAULT_LOCAL_BYTES = 16 * 1024 * 1024
const SHORTEST_SECRET = 24

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
redis.call('PEXPIRE', KEYS[1], ${LONGEST_CACHE_KEEP_MS * 2})
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
  if (secret !== undefined && !(secret.length >= SHORTEST_SECRET))
    throw new TypeError(`redisCache: secret must have at least ${SHORTEST_SECRET} characters`)
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
      const keptMs = Math.min(Math.ceil(keepMs), LONGEST_CACHE_KEEP_MS)
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

/** Parts of the concurrency limiter. */
export interface RedisConcurrencyLimiterOptions {
  readonly link: RedisLink
  readonly prefix: string
  readonly expectedInstances: number
  readonly clock: Clock
}

/** Limiter that synchronizes the server after an outage. */
export interface RedisConcurrencyLimiter extends ConcurrencyLimiter {
  /**
   * Reports to a recovered server, by `call`, which leases this process holds and which it has released meanwhile, until few are
   * left, because more in one call would miss the deadline. Returns false if the server does not answer.
   */
  prepare(call: RedisLink['call']): Promise<boolean>
  /** Reports the remaining leases to the server. */
  reconcile(): Promise<void>
}

interface KnownLease extends Lease {
  /** Expiry by the local clock. */
  expiresAtMs: number
}

/** Maximum number of leases per report. */
const SYNC_BATCH_SIZE = 200

// Leases expire anyway, so dropping those beyond this number only delays their end.
const MAX_OWED = 10_000

/**
 * Leases shared through the server. Each process also counts its own leases. A server outage or restart therefore neither frees
 * the slots of running requests nor keeps those of finished ones.
 */
function redisConcurrencyLimiter(options: RedisConcurrencyLimiterOptions): RedisConcurrencyLimiter {
  const { link, prefix, expectedInstances, clock } = options
  const local = memoryConcurrencyLimiter()
  const held = new Map<string, KnownLease>()
  const heldCursor = new MapCursor(held)
  /** Leases released while the server was unavailable, which may still count there. */
  const owed = new Map<string, KnownLease>()
  /** Leases of {@link held} that were reported to the server since its last outage. */
  let entered = new WeakSet<KnownLease>()

  const idOf = ({ bucket, leaseId }: Lease): string => `${leaseId} ${bucket}`
  const keysOf = ({ bucket }: Lease): string[] => [bucketKey(prefix, bucket)]

  function noteHeld(lease: Lease, lifetimeMs: number): void {
    const oldest = heldCursor.next()
    if (oldest !== undefined && oldest[1].expiresAtMs <= clock.now()) held.delete(oldest[0])
    const { bucket, leaseId } = lease
    held.set(idOf(lease), { bucket, leaseId, expiresAtMs: clock.now() + lifetimeMs })
    owed.delete(idOf(lease))
  }

  function noteOwed(lease: KnownLease): void {
    owed.set(idOf(lease), lease)
    if (owed.size <= MAX_OWED) return
    for (const oldest of owed.keys()) {
      owed.delete(oldest)
      return
    }
  }

  async function giveBack(lease: KnownLease): Promise<void> {
    if (!link.isUp || !(await takeOut(lease, link.call))) noteOwed(lease)
  }

  async function takeOut(lease: KnownLease, call: RedisLink['call']): Promise<boolean> {
    const isTold = (await call(RELEASE, keysOf(lease), [lease.leaseId])) !== undefined
    if (isTold) owed.delete(idOf(lease))
    return isTold
  }

  /** Returns the leases that the server must receive, without expired ones. */
  function untold(): KnownLease[] {
    for (const [id, lease] of owed) if (lease.expiresAtMs <= clock.now()) owed.delete(id)
    const alive = [...held.values()].filter((lease) => lease.expiresAtMs > clock.now() && !entered.has(lease))
    return [...alive, ...owed.values()]
  }

  /** Returns false if the server did not answer. */
  async function tell(lease: KnownLease, call: RedisLink['call']): Promise<boolean> {
    const id = idOf(lease)
    if (owed.get(id) === lease) return takeOut(lease, call)
    // The lease was released since.
    if (held.get(id) !== lease) return true
    entered.add(lease)
    const lifetimeMs = Math.max(1, Math.ceil(lease.expiresAtMs - clock.now()))
    return (await call(ENTER, keysOf(lease), [lease.leaseId, `${lifetimeMs}`])) !== undefined
  }

  return {
    async acquire(request, nowMs) {
      const { leaseId, limit, expiresAtMs } = request
      const lifetimeMs = Math.ceil(expiresAtMs - nowMs)
      const isAsked = link.isUp
      const reply = isAsked
        ? await link.call(ACQUIRE, keysOf(request), [leaseId, `${limit}`, `${lifetimeMs}`])
        : undefined
      const isGiven =
        reply === undefined
          ? await local.acquire({ ...request, limit: localShare(limit, expectedInstances) }, nowMs)
          : reply[0] === 1
      if (isGiven) {
        if (reply !== undefined) await local.acquire({ ...request, limit: Number.POSITIVE_INFINITY }, nowMs)
        noteHeld(request, lifetimeMs)
      } else if (isAsked && reply === undefined) {
        // The server may still execute the call that it did not answer in time.
        void giveBack({ bucket: request.bucket, leaseId, expiresAtMs: clock.now() + lifetimeMs })
      }
      return isGiven
    },

    async renew(renewal, nowMs) {
      const lifetimeMs = Math.ceil(renewal.expiresAtMs - nowMs)
      const reply = link.isUp ? await link.call(RENEW, keysOf(renewal), [renewal.leaseId, `${lifetimeMs}`]) : undefined
      const isHeldHere = await local.renew(renewal, nowMs)
      const isRenewed = reply === undefined ? isHeldHere : reply[0] === 1
      if (isRenewed) noteHeld(renewal, lifetimeMs)
      return isRenewed
    },

    async release(lease) {
      await local.release(lease)
      const known = held.get(idOf(lease))
      held.delete(idOf(lease))
      await giveBack(known ?? { ...lease, expiresAtMs: Number.POSITIVE_INFINITY })
    },

    async prepare(call) {
      entered = new WeakSet()
      for (let left = untold(); left.length > SYNC_BATCH_SIZE; left = untold()) {
        for (let start = 0; start < left.length; start += SYNC_BATCH_SIZE) {
          const told = left.slice(start, start + SYNC_BATCH_SIZE).map((lease) => tell(lease, call))
          if ((await Promise.all(told)).includes(false)) return false
        }
      }
      return true
    },

    async reconcile() {
      await Promise.all(untold().map((lease) => tell(lease, link.call)))
    },
  }
}

/** Parts of the rate limiter. */
export interface RedisRateLimiterOptions {
  readonly link: RedisLink
  readonly prefix: string
  readonly expectedInstances: number
  /** Returns true for a while after the server recovered, because it may have lost its buckets. */
  readonly mayHaveLostBuckets: () => boolean
}

const MINUTE_MS = 60_000

/**
 * Creates limits shared through the server, with a local share for outages. Each process mirrors the bucket levels in its share,
 * so an outage grants no second burst. If the server returns without data, it is restored from the local share.
 */
function redisRateLimiter(options: RedisRateLimiterOptions): RateLimiter {
  const { link, prefix, expectedInstances } = options
  const local = memoryRateLimiter()
  const shareOf = (take: RateTake): RateTake => localTake(take, expectedInstances)

  /** Sets the local bucket to the same relative level as the shared one. */
  function assume(take: RateTake, resetMs: number, nowMs: number): void {
    const share = shareOf(take)
    local.assume({ ...share, amount: (resetMs / MINUTE_MS) * share.perMinute }, nowMs)
  }

  function knownLevel(take: RateTake, nowMs: number): number {
    if (!options.mayHaveLostBuckets()) return 0
    const resetMs = local.take([{ ...shareOf(take), amount: 0 }], nowMs).buckets[0]?.resetMs ?? 0
    return (resetMs / MINUTE_MS) * take.perMinute
  }

  return {
    async take(takes, nowMs) {
      if (link.isUp && takes.length > 0) {
        const keys = takes.map((take) => bucketKey(prefix, take.bucket))
        const args = takes.flatMap((take) => [
          `${take.amount}`,
          `${take.perMinute}`,
          `${take.burst ?? take.perMinute}`,
          `${knownLevel(take, nowMs)}`,
        ])
        const reply = await link.call(TAKE, keys, args)
        if (reply !== undefined) {
          const buckets = takes.map(
            (take, index): BucketState => ({
              limit: take.perMinute,
              remaining: reply[1 + index * 2] ?? 0,
              resetMs: reply[2 + index * 2] ?? 0,
            }),
          )
          takes.forEach((take, index) => {
            assume(take, buckets[index]!.resetMs, nowMs)
          })
          const retryAfterMs = reply[0] ?? 0
          return { allowed: retryAfterMs === 0, retryAfterMs, buckets }
        }
      }
      return local.take(takes.map(shareOf), nowMs)
    },

    async adjust(take, nowMs) {
      if (!(take.perMinute > 0)) return
      const key = bucketKey(prefix, take.bucket)
      const reply = link.isUp ? await link.call(ADJUST, [key], [`${take.amount}`, `${take.perMinute}`]) : undefined
      if (reply === undefined) local.adjust(shareOf(take), nowMs)
      else assume(take, reply[0] ?? 0, nowMs)
    },
  }
}

/** Returns the share of a limit that one of several processes may grant: an even part, rounded down, at least one. */
function localShare(limit: number, expectedInstances: number): number {
  const share = limit / expectedInstances
  return share >= 1 ? Math.floor(share) : Math.min(limit, 1)
}

/** Returns the take in the local share of one process. */
function localTake(take: RateTake, expectedInstances: number): RateTake {
  return {
    ...take,
    perMinute: localShare(take.perMinute, expectedInstances),
    burst: localShare(take.burst ?? take.perMinute, expectedInstances),
  }
}
