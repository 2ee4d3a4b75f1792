import type { MemberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

/** Limits of a key, an account or an end user. For an absent field the gateway's own limit holds, where it has one. */
export interface RateLimits {
  /** Size of the bucket, which refills by a sixtieth of it each second. */
  readonly requestsPerMinute?: number | undefined
  /** Input and output tokens together. */
  readonly tokensPerMinute?: number | undefined
  /** Requests in progress at the same time. */
  readonly concurrency?: number | undefined
}

export const RATE_LIMITS_MEMBERS = {
  requestsPerMinute: true,
  tokensPerMinute: true,
  concurrency: true,
} satisfies MemberNames<RateLimits>

/** One amount to take from one bucket. */
export interface RateTake {
  /** Name of the bucket, such as `requests:key_1`. */
  readonly bucket: string
  /** Requests or tokens. */
  readonly amount: number
  /** What flows back in a minute, evenly. */
  readonly perMinute: number
  /**
   * Size of the bucket: the most that can be taken at once; `perMinute` when absent. In any time of w minutes no more than
   * `burst + perMinute × w` is granted.
   */
  readonly burst?: number | undefined
}

/** State of one bucket after a decision. */
export interface BucketState {
  /** What flows back in a minute: `perMinute` of the take. */
  readonly limit: number
  /** What could be taken right now, rounded down. */
  readonly remaining: number
  /** Milliseconds until the bucket is full again. */
  readonly resetMs: number
}

/** Outcome of taking. */
export interface RateDecision {
  /** False: nothing was taken from any bucket. */
  readonly allowed: boolean
  /** When refused: milliseconds until the same take could succeed. 0 when allowed. */
  readonly retryAfterMs: number
  /** One state a take, in order. */
  readonly buckets: readonly BucketState[]
}

/** Limits per time, by the generic cell rate algorithm. */
export interface RateLimiter {
  /**
   * Takes from all buckets or from none, atomically. An amount above the bucket's size counts as the size, so that one
   * large request can pass when nothing else runs. Then only the size is taken, and later adjustments must start from that.
   */
  take(takes: readonly RateTake[], nowMs: number): MaybePromise<RateDecision>
  /** Gives back (negative) or takes more (positive) after the fact; never refuses. */
  adjust(take: RateTake, nowMs: number): MaybePromise<void>
}

/** A slot for one concurrent request. */
export interface Lease {
  /** Name of what is limited, such as `concurrency:key_1`. */
  readonly bucket: string
  /** Unique to the request. */
  readonly leaseId: string
}

/** Concurrency limits, by leases that expire when their holder dies. */
export interface ConcurrencyLimiter {
  /** True when the lease was given; false when `limit` leases are out. Idempotent by lease id. */
  acquire(lease: Lease & { readonly limit: number; readonly expiresAtMs: number }, nowMs: number): MaybePromise<boolean>
  /** Prolongs a lease; false when it no longer exists. */
  renew(lease: Lease & { readonly expiresAtMs: number }, nowMs: number): MaybePromise<boolean>
  /** Gives a lease back. Harmless when it no longer exists. */
  release(lease: Lease): MaybePromise<void>
}
