import { TransientMap } from '../../core/maps.ts'
import type { BucketState, ConcurrencyLimiter, RateDecision, RateLimiter, RateTake } from '../rate-limiter.ts'
import { MapCursor } from './account-shares.ts'

/** Options of {@link memoryRateLimiter}. */
export interface MemoryRateLimiterOptions {
  /**
   * Maximum number of buckets. Default 100,000. Full buckets are dropped first, because they contain no information; then those
   * that will be full soonest.
   */
  readonly maxBuckets?: number | undefined
}

/** Limits in this process that can be set from another limiter's state. */
export interface MemoryRateLimiter extends RateLimiter {
  take(takes: readonly RateTake[], nowMs: number): RateDecision
  adjust(take: RateTake, nowMs: number): void
  /** Replaces the state of a bucket: `take.amount` is everything that was taken from it and has not been refilled. */
  assume(take: RateTake, nowMs: number): void
}

interface RateBucket {
  /** Amount that was taken and not refilled yet at `atMs`. */
  level: number
  atMs: number
  /** Time at which the bucket is full again and can be dropped. */
  fullAtMs: number
}

const MINUTE_MS = 60_000
const SWEPT_PER_TAKE = 2
/** Time for which a full bucket is kept, so that it is not created for every request. */
const IDLE_MS = 60_000
const EVICTION_SAMPLE = 8
/** Maximum lead of a bucket's time. A larger lead shows that the clock was set back, and the new time is used. */
const SET_BACK_MS = 5_000
/** Takes are whole numbers, so a millionth is a rounding error of the division by time. */
const TOLERANCE = 1e-6

/**
 * Creates limits in this process, by the generic cell rate algorithm stored as a level that drains; synchronous. Time that runs backwards
 * counts as unchanged for a few seconds; if the clock is set back further, the new time is used. A limit of zero rejects everything.
 */
export function memoryRateLimiter(options: MemoryRateLimiterOptions = {}): MemoryRateLimiter {
  const maxBuckets = options.maxBuckets ?? 100_000
  const buckets = new Map<string, RateBucket>()
  const cursor = new MapCursor(buckets)
  let sweptAtMs = Number.NaN
  let hasGrown = false

  function levelOf(bucket: RateBucket | undefined, perMinute: number, nowMs: number): number {
    if (bucket === undefined) return 0
    if (bucket.atMs - nowMs > SET_BACK_MS) bucket.atMs = nowMs
    const elapsedMs = Math.max(0, nowMs - bucket.atMs)
    return Math.max(0, bucket.level - (elapsedMs * perMinute) / MINUTE_MS)
  }

  function setLevel({ bucket: name, perMinute }: RateTake, level: number, nowMs: number): void {
    const bucket = buckets.get(name)
    if (bucket === undefined && level === 0) return
    const atMs = Math.max(nowMs, bucket?.atMs ?? nowMs)
    const fullAtMs = atMs + (level / perMinute) * MINUTE_MS
    if (bucket === undefined) {
      if (buckets.size >= maxBuckets) evictOne()
      buckets.set(name, { level, atMs, fullAtMs })
      hasGrown = true
    } else {
      bucket.level = level
      bucket.atMs = atMs
      bucket.fullAtMs = fullAtMs
    }
  }

  /** Runs once a millisecond, in which nothing more falls due, and once for each take that created a bucket. */
  function sweep(nowMs: number): void {
    if (nowMs === sweptAtMs && !hasGrown) return
    sweptAtMs = nowMs
    hasGrown = false
    for (let count = 0; count < SWEPT_PER_TAKE; count++) {
      const next = cursor.next()
      if (next !== undefined && next[1].fullAtMs <= nowMs && next[1].atMs + IDLE_MS <= nowMs) buckets.delete(next[0])
    }
  }

  function evictOne(): void {
    let victim = cursor.next()
    for (let count = 1; count < EVICTION_SAMPLE; count++) {
      const next = cursor.next()
      if (next !== undefined && (victim === undefined || next[1].fullAtMs < victim[1].fullAtMs)) victim = next
    }
    if (victim !== undefined) buckets.delete(victim[0])
  }

  return {
    take(takes, nowMs) {
      sweep(nowMs)
      let retryAfterMs = 0
      // Lists of the right size: V8 allocates 17 entries for a growing list, and every request creates these.
      const levels = new Array<number>(takes.length)
      for (let index = 0; index < takes.length; index++) {
        const take = takes[index]!
        const level = levelOf(buckets.get(take.bucket), take.perMinute, nowMs)
        levels[index] = level
        if (!(take.perMinute > 0)) retryAfterMs = Math.max(retryAfterMs, MINUTE_MS)
        const above = level + takenBy(take) - sizeOf(take)
        if (above > TOLERANCE) retryAfterMs = Math.max(retryAfterMs, Math.ceil((above / take.perMinute) * MINUTE_MS))
      }
      const allowed = retryAfterMs === 0
      const states = new Array<BucketState>(takes.length)
      for (let index = 0; index < takes.length; index++) {
        const take = takes[index]!
        const level = levels[index]! + (allowed ? takenBy(take) : 0)
        if (allowed) setLevel(take, level, nowMs)
        states[index] = stateOf(take, level)
      }
      return { allowed, retryAfterMs, buckets: states }
    },

    adjust(take, nowMs) {
      if (!(take.perMinute > 0)) return
      const level = levelOf(buckets.get(take.bucket), take.perMinute, nowMs)
      setLevel(take, Math.max(0, level + take.amount), nowMs)
    },

    assume(take, nowMs) {
      if (take.perMinute > 0) setLevel(take, Math.max(0, take.amount), nowMs)
    },
  }
}

function sizeOf({ burst, perMinute }: RateTake): number {
  return burst ?? perMinute
}

function takenBy(take: RateTake): number {
  return Math.min(take.amount, sizeOf(take))
}

function stateOf(take: RateTake, level: number): BucketState {
  const { perMinute } = take
  return {
    limit: perMinute,
    remaining: Math.max(0, Math.floor(sizeOf(take) - level + TOLERANCE)),
    resetMs: level > TOLERANCE ? Math.ceil((level / perMinute) * MINUTE_MS - TOLERANCE) : 0,
  }
}

interface LeaseBucket {
  /** Expiry of each lease, by lease id. */
  readonly leases: TransientMap<string, number>
  /** Time before which no lease of the bucket expires, so no earlier search is needed. */
  earliestExpiryMs: number
  usedAtMs: number
}

/** Leases in this process; synchronous. */
export function memoryConcurrencyLimiter(): ConcurrencyLimiter {
  const buckets = new Map<string, LeaseBucket>()
  const cursor = new MapCursor(buckets)
  let sweptAtMs = Number.NaN
  let hasGrown = false

  function dropExpired(bucket: LeaseBucket, nowMs: number): void {
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

  function bucketOf(name: string, nowMs: number): LeaseBucket {
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

  function setLease(bucket: LeaseBucket, leaseId: string, expiresAtMs: number): void {
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
