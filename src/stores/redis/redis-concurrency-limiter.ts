import type { Clock } from '../../core/clock.ts'
import { MapCursor } from '../memory/map-scans.ts'
import { memoryConcurrencyLimiter } from '../memory/memory-concurrency-limiter.ts'
import type { ConcurrencyLimiter, Lease } from '../rate-limiter.ts'
import type { RedisLink } from './redis-link.ts'
import { localShare } from './redis-rate-limiter.ts'
import { ACQUIRE, bucketKey, ENTER, RELEASE, RENEW } from './redis-scripts.ts'

/** The parts of the concurrency limiter. */
export interface RedisConcurrencyLimiterOptions {
  readonly link: RedisLink
  readonly prefix: string
  readonly expectedInstances: number
  readonly clock: Clock
}

/** A limiter that puts the server right after it was away. */
export interface RedisConcurrencyLimiter extends ConcurrencyLimiter {
  /** Enters the leases held here, and takes out those that were given back meanwhile. */
  reconcile(): Promise<void>
}

interface KnownLease extends Lease {
  /** By our own clock. */
  expiresAtMs: number
}

// Leases end by themselves, so what is dropped beyond this number is only late.
const MAX_OWED = 10_000

/**
 * Leases shared through the server. Each process also counts its own leases. A server outage or restart therefore neither
 * frees the slots of running requests nor keeps those of finished ones.
 */
export function redisConcurrencyLimiter(options: RedisConcurrencyLimiterOptions): RedisConcurrencyLimiter {
  const { link, prefix, expectedInstances, clock } = options
  const local = memoryConcurrencyLimiter()
  const held = new Map<string, KnownLease>()
  const heldCursor = new MapCursor(held)
  /** Given back while the server was away, and perhaps still counted there. */
  const owed = new Map<string, KnownLease>()

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
    const reply = link.isUp ? await link.call(RELEASE, keysOf(lease), [lease.leaseId]) : undefined
    if (reply === undefined) noteOwed(lease)
    else owed.delete(idOf(lease))
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
        // The server may yet carry out what it did not answer in time.
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

    async reconcile() {
      const entered = [...held.values()].map((lease) => {
        const lifetimeMs = Math.ceil(lease.expiresAtMs - clock.now())
        return lifetimeMs > 0 ? link.call(ENTER, keysOf(lease), [lease.leaseId, `${lifetimeMs}`]) : undefined
      })
      const returned = [...owed.values()].map((lease) => {
        if (lease.expiresAtMs > clock.now()) return giveBack(lease)
        owed.delete(idOf(lease))
        return undefined
      })
      await Promise.all([...entered, ...returned])
    },
  }
}
