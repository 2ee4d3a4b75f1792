import { memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

/** Limits of a key, an account or an end user. An omitted field defaults to the gateway's own limit, if any. */
export interface RateLimits {
  /** Maximum requests per minute: size of the bucket, which refills by a sixtieth of it each second. */
  readonly requestsPerMinute?: number | undefined
  /** Maximum tokens per minute, input and output together. */
  readonly tokensPerMinute?: number | undefined
  /** Maximum number of concurrent requests. */
  readonly concurrency?: number | undefined
}

export const RATE_LIMITS_MEMBERS = memberNames<RateLimits>()('requestsPerMinute tokensPerMinute concurrency')

/** Amount to take from one bucket. */
export interface RateTake {
  /** Name of the bucket, such as `requests:key_1`. */
  readonly bucket: string
  /** Number of requests or tokens. */
  readonly amount: number
  /** Amount that is refilled per minute, evenly. */
  readonly perMinute: number
  /**
   * Size of the bucket: the maximum single take. Default `perMinute`. Within w minutes, at most `burst + perMinute × w` is
   * granted.
   */
  readonly burst?: number | undefined
}

/** State of one bucket after a decision. */
export interface BucketState {
  /** Amount that is refilled per minute: `perMinute` of the take. */
  readonly limit: number
  /** Amount that could be taken right now, rounded down. */
  readonly remaining: number
  /** Milliseconds until the bucket is full again. */
  readonly resetMs: number
}

/** Outcome of a take. */
export interface RateDecision {
  /** Whether the take was granted. If false, nothing was taken from any bucket. */
  readonly allowed: boolean
  /** Milliseconds until a rejected take could succeed; 0 if it was granted. */
  readonly retryAfterMs: number
  /** State per take, in order. */
  readonly buckets: readonly BucketState[]
}

/** Rate limits, by the generic cell rate algorithm. */
export interface RateLimiter {
  /**
   * Takes from all buckets or from none, atomically. An amount above the bucket's size counts as the size, so that one large
   * request can pass when nothing else runs. Then only the size is taken, and later adjustments must start from that.
   */
  take(takes: readonly RateTake[], nowMs: number): MaybePromise<RateDecision>
  /** Returns (negative) or takes (positive) an amount afterwards; never rejects it. */
  adjust(take: RateTake, nowMs: number): MaybePromise<void>
}

/** Slot for one concurrent request. */
export interface Lease {
  /** Name of the limited resource, such as `concurrency:key_1`. */
  readonly bucket: string
  /** Id that is unique to the request. */
  readonly leaseId: string
}

/** Concurrency limits, by leases that expire when their holder dies. */
export interface ConcurrencyLimiter {
  /** Acquires a lease. Returns false if `limit` leases are in use. Idempotent by lease id. */
  acquire(lease: Lease & { readonly limit: number; readonly expiresAtMs: number }, nowMs: number): MaybePromise<boolean>
  /** Extends a lease. Returns false if it no longer exists. */
  renew(lease: Lease & { readonly expiresAtMs: number }, nowMs: number): MaybePromise<boolean>
  /** Releases a lease. Harmless if it no longer exists. */
  release(lease: Lease): MaybePromise<void>
}
