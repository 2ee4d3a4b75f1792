import type { ConcurrencyLimiter } from '../rate-limiter.ts'
import { MapCursor } from './map-cursor.ts'

interface Bucket {
  /** Expiry of each lease, by lease id. */
  readonly leases: Map<string, number>
  /** No lease of the bucket expires before this, so nothing need be looked for earlier. */
  earliestExpiryMs: number
}

/** Leases in this process; answers at once. */
export function memoryConcurrencyLimiter(): ConcurrencyLimiter {
  const buckets = new Map<string, Bucket>()
  const cursor = new MapCursor(buckets)

  function dropExpired(name: string, bucket: Bucket, nowMs: number): void {
    if (bucket.earliestExpiryMs > nowMs) return
    bucket.earliestExpiryMs = Number.POSITIVE_INFINITY
    for (const [leaseId, expiresAtMs] of bucket.leases) {
      if (expiresAtMs <= nowMs) bucket.leases.delete(leaseId)
      else bucket.earliestExpiryMs = Math.min(bucket.earliestExpiryMs, expiresAtMs)
    }
    if (bucket.leases.size === 0) buckets.delete(name)
  }

  function setLease(name: string, leaseId: string, expiresAtMs: number): void {
    const bucket = buckets.get(name)
    if (bucket === undefined) {
      buckets.set(name, { leases: new Map([[leaseId, expiresAtMs]]), earliestExpiryMs: expiresAtMs })
      return
    }
    bucket.leases.set(leaseId, expiresAtMs)
    bucket.earliestExpiryMs = Math.min(bucket.earliestExpiryMs, expiresAtMs)
  }

  return {
    acquire({ bucket: name, leaseId, limit, expiresAtMs }, nowMs) {
      const swept = cursor.next()
      if (swept !== undefined) dropExpired(swept[0], swept[1], nowMs)
      const bucket = buckets.get(name)
      if (bucket !== undefined) dropExpired(name, bucket, nowMs)

      const leases = buckets.get(name)?.leases
      if (leases?.has(leaseId) !== true && (leases?.size ?? 0) >= limit) return false
      setLease(name, leaseId, expiresAtMs)
      return true
    },

    renew({ bucket: name, leaseId, expiresAtMs }, nowMs) {
      const held = buckets.get(name)?.leases.get(leaseId)
      if (held === undefined || held <= nowMs) return false
      setLease(name, leaseId, expiresAtMs)
      return true
    },

    release({ bucket: name, leaseId }) {
      const bucket = buckets.get(name)
      if (bucket?.leases.delete(leaseId) === true && bucket.leases.size === 0) buckets.delete(name)
    },
  }
}
