import type { RateLimits } from '../stores/rate-limiter.ts'

/** Limits by owner. */
export interface LimitSet {
  readonly perKey: RateLimits
  /** Limits of all keys of an account together. */
  readonly perAccount: RateLimits
  /** Limits of each end user of an account, whatever the key. */
  readonly perEndUser: RateLimits
}

/** Returns limits with defaults for omitted members. */
export function withDefaults(own: RateLimits, defaults: RateLimits): RateLimits {
  return {
    requestsPerMinute: own.requestsPerMinute ?? defaults.requestsPerMinute,
    tokensPerMinute: own.tokensPerMinute ?? defaults.tokensPerMinute,
    concurrency: own.concurrency ?? defaults.concurrency,
  }
}
