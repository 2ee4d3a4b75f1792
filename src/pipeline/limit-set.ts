import type { RateLimits } from '../stores/rate-limiter.ts'

/** Limits by whom they count for. */
export interface LimitSet {
  readonly perKey: RateLimits
  /** All keys of an account together. */
  readonly perAccount: RateLimits
  /** Each end user of an account, whatever the key. */
  readonly perEndUser: RateLimits
}

/** Limits with the defaults for everything that they leave open. */
export function withDefaults(own: RateLimits, defaults: RateLimits): RateLimits {
  return {
    requestsPerMinute: own.requestsPerMinute ?? defaults.requestsPerMinute,
    tokensPerMinute: own.tokensPerMinute ?? defaults.tokensPerMinute,
    concurrency: own.concurrency ?? defaults.concurrency,
  }
}
