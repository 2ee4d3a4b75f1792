import { GatewayError } from '../core/errors.ts'
import type { BucketState, Lease, RateLimits, RateTake } from '../stores/rate-limiter.ts'
import { estimateFor } from './estimated-usage.ts'
import type { Admitted, Parsed } from './records.ts'
import type { StageContext } from './stage-context.ts'

/**
 * Applies the caller's limits: requests and tokens per minute, requests at once. Tokens are taken by the estimate, before
 * anything is sent, and corrected at the end.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass.
 */
export async function admit(context: StageContext, parsed: Parsed): Promise<Admitted> {
  const { principal } = parsed
  const limits = principal.limits ?? context.limits
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  const nowMs = context.clock.now()

  const lease = await acquireLease(context, limits, principal.keyId, parsed.requestId, nowMs)
  const requestTake = takeOf(`requests:${principal.keyId}`, 1, limits.requestsPerMinute)
  const estimated = (estimate.inputTokens ?? 0) + (estimate.outputTokens ?? 0)
  // More than the whole bucket cannot be taken, so more must not be given back later either.
  const tokens = Math.min(estimated, limits.tokensPerMinute ?? estimated)
  const tokenTake = takeOf(`tokens:${principal.keyId}`, tokens, limits.tokensPerMinute)
  const takes = [requestTake, tokenTake].filter((take) => take !== undefined)
  let buckets: readonly BucketState[] = []
  if (takes.length > 0) {
    try {
      const decision = await context.rateLimiter.take(takes, nowMs)
      buckets = decision.buckets
      if (!decision.allowed) throw new GatewayError('rate_limited', { retryAfterSeconds: decision.retryAfterMs / 1000 })
    } catch (error) {
      // The caller of a refused request reads the same limits in its headers.
      Object.assign(parsed, statesOf(requestTake, tokenTake, buckets))
      if (lease !== undefined) await context.concurrency.release(lease)
      throw error
    }
  }
  return Object.assign(parsed, { estimate, lease, tokenTake, ...statesOf(requestTake, tokenTake, buckets) })
}

function statesOf(
  requestTake: RateTake | undefined,
  tokenTake: RateTake | undefined,
  buckets: readonly BucketState[],
): Pick<Admitted, 'requestBucket' | 'tokenBucket'> {
  return {
    requestBucket: requestTake === undefined ? undefined : buckets[0],
    tokenBucket: tokenTake === undefined ? undefined : buckets.at(-1),
  }
}

/** Gives the caller's place back and corrects the token limit to what was used. Called once for every admitted request. */
export async function leave(context: StageContext, admitted: Admitted, tokensUsed: number): Promise<void> {
  const { lease, tokenTake } = admitted
  if (lease !== undefined) await context.concurrency.release(lease)
  if (tokenTake !== undefined && tokensUsed !== tokenTake.amount) {
    await context.rateLimiter.adjust({ ...tokenTake, amount: tokensUsed - tokenTake.amount }, context.clock.now())
  }
}

function takeOf(bucket: string, amount: number, perMinute: number | undefined): RateTake | undefined {
  return perMinute === undefined ? undefined : { bucket, amount, perMinute }
}

async function acquireLease(
  context: StageContext,
  limits: RateLimits,
  keyId: string,
  leaseId: string,
  nowMs: number,
): Promise<Lease | undefined> {
  if (limits.concurrency === undefined) return undefined
  const lease = { bucket: `concurrency:${keyId}`, leaseId }
  // A lease outlives the longest request, so it never needs renewing and still ends by itself when the process dies.
  const expiresAtMs = nowMs + context.timeouts.totalMs + context.disconnects.drainMs + 60_000
  const acquired = await context.concurrency.acquire({ ...lease, limit: limits.concurrency, expiresAtMs }, nowMs)
  if (!acquired) throw new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
  return lease
}
