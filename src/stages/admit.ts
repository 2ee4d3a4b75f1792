import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
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

  const acquired = acquireLease(context, limits, parsed, nowMs)
  const lease = isPending(acquired) ? await acquired : acquired
  const { keyId } = principal
  const requestTake = takeOf(`requests:${keyId}`, 1, limits.requestsPerMinute)
  const estimated = (estimate.inputTokens ?? 0) + (estimate.outputTokens ?? 0)
  // More than the whole bucket cannot be taken, so more must not be given back later either.
  const tokens = Math.min(estimated, limits.tokensPerMinute ?? estimated)
  const tokenTake = takeOf(`tokens:${keyId}`, tokens, limits.tokensPerMinute)
  let buckets: readonly BucketState[] = []
  const takes = listed(requestTake, tokenTake)
  if (takes.length > 0) {
    try {
      const taken = context.rateLimiter.take(takes, nowMs)
      const decision = isPending(taken) ? await taken : taken
      buckets = decision.buckets
      if (!decision.allowed) throw new GatewayError('rate_limited', { retryAfterSeconds: decision.retryAfterMs / 1000 })
    } catch (error) {
      // The caller of a refused request reads the same limits in its headers.
      Object.assign(parsed, statesOf(requestTake, tokenTake, buckets))
      if (lease !== undefined) await context.concurrency.release(lease)
      throw error
    }
  }
  const { requestBucket, tokenBucket } = statesOf(requestTake, tokenTake, buckets)
  return Object.assign(parsed, { estimate, lease, tokenTake, requestBucket, tokenBucket })
}

function listed(first: RateTake | undefined, second: RateTake | undefined): readonly RateTake[] {
  if (first === undefined) return second === undefined ? [] : [second]
  return second === undefined ? [first] : [first, second]
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
  if (lease !== undefined) {
    const released = context.concurrency.release(lease)
    if (isPending(released)) await released
  }
  if (tokenTake !== undefined && tokensUsed !== tokenTake.amount) {
    const { bucket, perMinute, amount } = tokenTake
    const adjusted = context.rateLimiter.adjust({ bucket, perMinute, amount: tokensUsed - amount }, context.clock.now())
    if (isPending(adjusted)) await adjusted
  }
}

function takeOf(bucket: string, amount: number, perMinute: number | undefined): RateTake | undefined {
  return perMinute === undefined ? undefined : { bucket, amount, perMinute }
}

function acquireLease(
  context: StageContext,
  limits: RateLimits,
  parsed: Parsed,
  nowMs: number,
): MaybePromise<Lease | undefined> {
  const { concurrency } = limits
  if (concurrency === undefined) return undefined
  const lease = {
    bucket: `concurrency:${parsed.principal.keyId}`,
    leaseId: parsed.requestId,
    limit: concurrency,
    // A lease outlives the longest request, so it never needs renewing and still ends by itself when the process dies.
    expiresAtMs: nowMs + context.timeouts.totalMs + context.disconnects.drainMs + 60_000,
  }
  const given = (isAcquired: boolean): Lease => {
    if (!isAcquired) throw new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
    return lease
  }
  const acquired = context.concurrency.acquire(lease, nowMs)
  return isPending(acquired) ? acquired.then(given) : given(acquired)
}
