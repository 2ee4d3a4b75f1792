import type { Clock } from '../../core/clock.ts'
import { MapCursor } from '../memory/account-shares.ts'
import { memoryConcurrencyLimiter, memoryRateLimiter } from '../memory/memory-limiters.ts'
import type { BucketState, ConcurrencyLimiter, Lease, RateLimiter, RateTake } from '../rate-limiter.ts'
import type { RedisLink } from './redis-link.ts'
import { ACQUIRE, ADJUST, bucketKey, ENTER, RELEASE, RENEW, TAKE } from './redis-scripts.ts'

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
export function redisConcurrencyLimiter(options: RedisConcurrencyLimiterOptions): RedisConcurrencyLimiter {
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
export function redisRateLimiter(options: RedisRateLimiterOptions): RateLimiter {
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
