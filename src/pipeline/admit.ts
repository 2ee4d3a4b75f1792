import { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { BucketState, Lease, RateLimits, RateTake } from '../stores/rate-limiter.ts'
import { bucketNames } from './bucket-names.ts'
import type { Admission, Admitted, Parsed } from './call-record.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { estimateFor } from './usage-estimate.ts'

/**
 * Applies the caller's limits: requests and tokens per minute, requests at once. Tokens are taken by the estimate, before
 * anything is sent, and corrected at the end.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass.
 */
export async function admit(context: PipelineContext, parsed: Parsed): Promise<Admitted> {
  const limits = parsed.principal.limits ?? context.limits
  const nowMs = context.clock.now()
  // The host's own estimator may throw, so it runs before anything is taken.
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  const lease = await acquireLease(context, limits, parsed, nowMs)
  const names = bucketNames(parsed.principal.keyId)
  const requestTake = takeOf(names.requests, 1, limits.requestsPerMinute)
  const tokenTake = tokenTakeOf(names.tokens, estimate, limits)
  const takes = listed(requestTake, tokenTake)
  if (takes.length === 0) return parsed.admitted(admission(estimate, lease, undefined, NO_BUCKETS))
  try {
    const decision = await context.rateLimiter.take(takes, nowMs)
    // The caller of a refused request reads the same limits in its headers.
    const admitted = parsed.admitted(admission(estimate, lease, tokenTake, decision.buckets, requestTake))
    if (decision.allowed) return admitted
    throw new GatewayError('rate_limited', { retryAfterSeconds: decision.retryAfterMs / 1000 })
  } catch (error) {
    await releaseLease(context, parsed.requestId, lease)
    throw error
  }
}

const NO_BUCKETS: readonly BucketState[] = []

function admission(
  estimate: Usage,
  lease: Lease | undefined,
  tokenTake: RateTake | undefined,
  buckets: readonly BucketState[],
  requestTake?: RateTake,
): Admission {
  return {
    estimate,
    lease,
    tokenTake,
    requestBucket: requestTake === undefined ? undefined : buckets[0],
    tokenBucket: tokenTake === undefined ? undefined : buckets.at(-1),
  }
}

function tokenTakeOf(bucket: string, estimate: Usage, { tokensPerMinute }: RateLimits): RateTake | undefined {
  const estimated = (estimate.inputTokens ?? 0) + (estimate.outputTokens ?? 0)
  // More than the whole bucket cannot be taken, so more must not be given back later either.
  const tokens = Math.min(estimated, tokensPerMinute ?? estimated)
  return takeOf(bucket, tokens, tokensPerMinute)
}

function takeOf(bucket: string, amount: number, perMinute: number | undefined): RateTake | undefined {
  return perMinute === undefined ? undefined : { bucket, amount, perMinute }
}

function listed(first: RateTake | undefined, second: RateTake | undefined): readonly RateTake[] {
  if (first === undefined) return second === undefined ? [] : [second]
  return second === undefined ? [first] : [first, second]
}

async function acquireLease(
  context: PipelineContext,
  { concurrency }: RateLimits,
  parsed: Parsed,
  nowMs: number,
): Promise<Lease | undefined> {
  if (concurrency === undefined) return undefined
  const lease = {
    bucket: bucketNames(parsed.principal.keyId).concurrency,
    leaseId: parsed.requestId,
    limit: concurrency,
    // A lease outlives the longest request, so it never needs renewing and still ends by itself when the process dies.
    expiresAtMs: nowMs + context.timeouts.totalMs + context.disconnects.drainMs + 60_000,
  }
  if (await context.concurrency.acquire(lease, nowMs)) return lease
  throw new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
}

/**
 * Releases the caller's lease and corrects the token limit to the real usage. Called once for every admitted request. Never
 * fails: a limiter that is down must not withhold an answer. The host then gets an `internal-error` event, and the lease
 * expires.
 */
export async function release(context: PipelineContext, admitted: Admitted, tokensUsed: number): Promise<void> {
  const { requestId, lease, tokenTake } = admitted
  await releaseLease(context, requestId, lease)
  if (tokenTake === undefined || tokensUsed === tokenTake.amount) return
  const { bucket, perMinute, amount } = tokenTake
  try {
    await context.rateLimiter.adjust({ bucket, perMinute, amount: tokensUsed - amount }, context.clock.now())
  } catch (error) {
    reportFault(context, requestId, 'limits', error)
  }
}

async function releaseLease(context: PipelineContext, requestId: string, lease: Lease | undefined): Promise<void> {
  if (lease === undefined) return
  try {
    await context.concurrency.release(lease)
  } catch (error) {
    reportFault(context, requestId, 'limits', error)
  }
}
