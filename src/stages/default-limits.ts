import type { Principal } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'

/**
 * A caller with the gateway's own limits for whatever its key does not limit itself. The very same one where the key has no
 * limits at all, for which the gateway's hold anyway, or has all of them.
 */
export function withDefaultLimits(principal: Principal, defaults: RateLimits): Principal {
  const own = principal.limits
  if (own === undefined) return principal
  const { requestsPerMinute, tokensPerMinute, concurrency } = own
  if (requestsPerMinute !== undefined && tokensPerMinute !== undefined && concurrency !== undefined) return principal
  return {
    ...principal,
    limits: {
      requestsPerMinute: requestsPerMinute ?? defaults.requestsPerMinute,
      tokensPerMinute: tokensPerMinute ?? defaults.tokensPerMinute,
      concurrency: concurrency ?? defaults.concurrency,
    },
  }
}
