import { TransientMap } from '../../core/transient-map.ts'
import type { ConcurrencyLimiter } from '../rate-limiter.ts'
import { MapCursor } from './map-scans.ts'

interface Bucket {
  /** Expiry of each lease, by lease id. */
  readonly leases: TransientMap<string, number>
  /** Time before which no lease of the bucket expires, so no earlier search is needed. */
  earliestExpiryMs: number
  usedAtMs: number
}

/** Time for which an empty bucket is kept, because creating it for each request costs more. */
const IDLE_MS = 60_000

/** Leases in this process; synchronous. */
export function memoryConcurrencyLimiter(): ConcurrencyLimiter {
  const buckets = new Map<string, Bucket>()
  const cursor = new MapCursor(buckets)
  let sweptAtMs = Number.NaN
  let hasGrown = false

  function dropExpired(bucket: Bucket, nowMs: number): void {
    if (bucket.earliestExpiryMs > nowMs) return
    bucket.earliestExpiryMs = Number.POSITIVE_INFINITY
    for (const [leaseId, expiresAtMs] of bucket.leases) {
      if (expiresAtMs <= nowMs) bucket.leases.delete(leaseId)
      else bucket.earliestExpiryMs = Math.min(bucket.earliestExpiryMs, expiresAtMs)
    }
  }

  /** Runs once a millisecond, in which nothing more falls due, and once for each new bucket. */
  function sweepOne(nowMs: number): void {
    if (nowMs === sweptAtMs && !hasGrown) return
    sweptAtMs = nowMs
    hasGrown = false
    const swept = cursor.next()
    if (swept === undefined) return
    const [name, bucket] = swept
    dropExpired(bucket, nowMs)
    if (bucket.leases.size === 0 && bucket.usedAtMs + IDLE_MS <= nowMs) buckets.delete(name)
  }

  function bucketOf(name: string, nowMs: number): Bucket {
    const bucket = buckets.get(name)
    if (bucket !== undefined) return bucket
    const created = {
      leases: new TransientMap<string, number>(),
      earliestExpiryMs: Number.POSITIVE_INFINITY,
      usedAtMs: nowMs,
    }
    buckets.set(name, created)
    hasGrown = true
    return created
  }

  function setLease(bucket: Bucket, leaseId: string, expiresAtMs: number): void {
    bucket.leases.set(leaseId, expiresAtMs)
    bucket.earliestExpiryMs = Math.min(bucket.earliestExpiryMs, expiresAtMs)
  }

  return {
    acquire({ bucket: name, leaseId, limit, expiresAtMs }, nowMs) {
      sweepOne(nowMs)
      const bucket = bucketOf(name, nowMs)
      bucket.usedAtMs = nowMs
      dropExpired(bucket, nowMs)
      if (bucket.leases.size >= limit && !bucket.leases.has(leaseId)) return false
      setLease(bucket, leaseId, expiresAtMs)
      return true
    },

    renew({ bucket: name, leaseId, expiresAtMs }, nowMs) {
      const bucket = buckets.get(name)
      const held = bucket?.leases.get(leaseId)
      if (bucket === undefined || held === undefined || held <= nowMs) return false
      setLease(bucket, leaseId, expiresAtMs)
      return true
    },

    release({ bucket, leaseId }) {
      buckets.get(bucket)?.leases.delete(leaseId)
    },
  }
}
