import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { BucketState, Lease, RateDecision, RateLimits, RateTake } from '../stores/rate-limiter.ts'
import { bucketNames } from './bucket-names.ts'
import type { Admission, Admitted, Parsed } from './call-record.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { estimateFor } from './usage-estimate.ts'

/**
 * Applies the caller's limits: requests and tokens per minute, requests at once. Tokens are taken by the estimate, before
 * anything is sent, and corrected at the end.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass.
 */
export function admit(context: PipelineContext, parsed: Parsed): MaybePromise<Admitted> {
  const limits = parsed.principal.limits ?? context.limits
  const nowMs = context.clock.now()
  // The host's own estimator may throw, so it runs before anything is taken.
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  const lease = acquireLease(context, limits, parsed, nowMs)
  return isPending(lease)
    ? lease.then((held) => takeRates(context, parsed, estimate, held))
    : takeRates(context, parsed, estimate, lease)
}

function takeRates(
  context: PipelineContext,
  parsed: Parsed,
  estimate: Usage,
  lease: Lease | undefined,
): MaybePromise<Admitted> {
  const limits = parsed.principal.limits ?? context.limits
  const names = bucketNames(parsed.principal.keyId)
  const requestTake = takeOf(names.requests, 1, limits.requestsPerMinute)
  const tokenTake = tokenTakeOf(names.tokens, estimate, limits)
  const takes = listed(requestTake, tokenTake)
  if (takes.length === 0) return parsed.admitted(admission(estimate, lease, undefined, NO_BUCKETS))
  const taking: Taking = { estimate, lease, tokenTake, requestTake }
  let decision: MaybePromise<RateDecision>
  try {
    decision = context.rateLimiter.take(takes, context.clock.now())
  } catch (error) {
    return refuse(context, parsed, lease, error)
  }
  return isPending(decision)
    ? decidedLater(context, parsed, taking, decision)
    : decided(context, parsed, taking, decision)
}

/** What a request holds and takes while its rates are decided. */
interface Taking extends Pick<Admission, 'estimate' | 'lease' | 'tokenTake'> {
  readonly requestTake: RateTake | undefined
}

function decidedLater(
  context: PipelineContext,
  parsed: Parsed,
  taking: Taking,
  decision: PromiseLike<RateDecision>,
): PromiseLike<Admitted> {
  return decision.then(
    (told) => decided(context, parsed, taking, told),
    (error) => refuse(context, parsed, taking.lease, error),
  )
}

function decided(
  context: PipelineContext,
  parsed: Parsed,
  { estimate, lease, tokenTake, requestTake }: Taking,
  { allowed, buckets, retryAfterMs }: RateDecision,
): MaybePromise<Admitted> {
  // The caller of a refused request reads the same limits in its headers.
  const admitted = parsed.admitted(admission(estimate, lease, tokenTake, buckets, requestTake))
  if (allowed) return admitted
  const error = new GatewayError('rate_limited', { retryAfterSeconds: retryAfterMs / 1000 })
  return refuse(context, parsed, lease, error)
}

function refuse(
  context: PipelineContext,
  { requestId }: Parsed,
  lease: Lease | undefined,
  error: unknown,
): MaybePromise<never> {
  const released = releaseLease(context, requestId, lease)
  if (!isPending(released)) throw error
  return released.then(() => {
    throw error
  })
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

function acquireLease(
  context: PipelineContext,
  { concurrency }: RateLimits,
  parsed: Parsed,
  nowMs: number,
): MaybePromise<Lease | undefined> {
  if (concurrency === undefined) return undefined
  const lease = {
    bucket: bucketNames(parsed.principal.keyId).concurrency,
    leaseId: parsed.requestId,
    limit: concurrency,
    // A lease outlives the longest request, so it never needs renewing and still ends by itself when the process dies.
    expiresAtMs: nowMs + context.timeouts.totalMs + context.disconnects.drainMs + 60_000,
  }
  const acquired = context.concurrency.acquire(lease, nowMs)
  return isPending(acquired) ? acquired.then((isAcquired) => granted(lease, isAcquired)) : granted(lease, acquired)
}

function granted(lease: Lease, isAcquired: boolean): Lease {
  if (isAcquired) return lease
  throw new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
}

/**
 * Releases the caller's lease and corrects the token limit to the real usage. Called once for every admitted request. Never
 * fails: a limiter that is down must not withhold an answer. The host then gets an `internal-error` event, and the lease
 * expires.
 */
export function release(context: PipelineContext, admitted: Admitted, tokensUsed: number): MaybePromise<void> {
  const released = releaseLease(context, admitted.requestId, admitted.lease)
  return isPending(released)
    ? released.then(() => correctTokens(context, admitted, tokensUsed))
    : correctTokens(context, admitted, tokensUsed)
}

function correctTokens(
  context: PipelineContext,
  { requestId, tokenTake }: Admitted,
  tokensUsed: number,
): MaybePromise<void> {
  if (tokenTake === undefined || tokensUsed === tokenTake.amount) return undefined
  const { bucket, perMinute, amount } = tokenTake
  return reported(context, requestId, () =>
    context.rateLimiter.adjust({ bucket, perMinute, amount: tokensUsed - amount }, context.clock.now()),
  )
}

function releaseLease(context: PipelineContext, requestId: string, lease: Lease | undefined): MaybePromise<void> {
  return lease === undefined ? undefined : reported(context, requestId, () => context.concurrency.release(lease))
}

/** Runs what must not fail a request; a fault is reported instead. */
function reported(context: PipelineContext, requestId: string, run: () => MaybePromise<unknown>): MaybePromise<void> {
  const onFault = (error: unknown): void => reportFault(context, requestId, 'limits', error)
  try {
    const done = run()
    return isPending(done) ? done.then(() => undefined, onFault) : undefined
  } catch (error) {
    return onFault(error)
  }
}
