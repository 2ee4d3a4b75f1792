import { GatewayError } from '../core/errors.ts'
import { andThen, type MaybePromise, settled } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { BucketState, Lease, RateLimits, RateTake } from '../stores/rate-limiter.ts'
import { estimateFor } from './estimated-usage.ts'
import type { Admitted, Parsed } from './records.ts'
import { reportFault, type StageContext } from './stage-context.ts'

/**
 * Applies the caller's limits: requests and tokens per minute, requests at once. Tokens are taken by the estimate, before
 * anything is sent, and corrected at the end.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass.
 */
export function admit(context: StageContext, parsed: Parsed): MaybePromise<Admitted> {
  const limits = parsed.principal.limits ?? context.limits
  const nowMs = context.clock.now()
  // The host's own estimator may throw: nothing is taken before that is known.
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  return andThen(acquireLease(context, limits, parsed, nowMs), (lease) =>
    takeRates(context, limits, { parsed, estimate, lease, nowMs }),
  )
}

/** A request that has its place, if it needed one. */
interface Entering {
  readonly parsed: Parsed
  readonly estimate: Usage
  readonly lease: Lease | undefined
  readonly nowMs: number
}

function takeRates(context: StageContext, limits: RateLimits, entering: Entering): MaybePromise<Admitted> {
  const { parsed, estimate, lease, nowMs } = entering
  const { keyId } = parsed.principal
  const requestTake = takeOf(`requests:${keyId}`, 1, limits.requestsPerMinute)
  const estimated = (estimate.inputTokens ?? 0) + (estimate.outputTokens ?? 0)
  // More than the whole bucket cannot be taken, so more must not be given back later either.
  const tokens = Math.min(estimated, limits.tokensPerMinute ?? estimated)
  const tokenTake = takeOf(`tokens:${keyId}`, tokens, limits.tokensPerMinute)

  const admitted = (buckets: readonly BucketState[]): Admitted => {
    const requestBucket = requestTake === undefined ? undefined : buckets[0]
    const tokenBucket = tokenTake === undefined ? undefined : buckets.at(-1)
    return Object.assign(parsed, { estimate, lease, tokenTake, requestBucket, tokenBucket })
  }
  const takes = listed(requestTake, tokenTake)
  if (takes.length === 0) return admitted([])
  return settled(
    () => context.rateLimiter.take(takes, nowMs),
    (decision) => {
      // The caller of a refused request reads the same limits in its headers.
      const record = admitted(decision.buckets)
      if (decision.allowed) return record
      const retryAfterSeconds = decision.retryAfterMs / 1000
      return releaseAndThrow(context, record, new GatewayError('rate_limited', { retryAfterSeconds }))
    },
    (error) => releaseAndThrow(context, { requestId: parsed.requestId, lease }, error),
  )
}

type Place = Pick<Admitted, 'requestId' | 'lease'>

function releaseAndThrow(context: StageContext, place: Place, error: unknown): MaybePromise<never> {
  return andThen(release(context, place), () => {
    throw error
  })
}

function release(context: StageContext, { requestId, lease }: Place): MaybePromise<void> {
  if (lease === undefined) return undefined
  return settled(
    () => context.concurrency.release(lease),
    () => undefined,
    (error) => reportFault(context, requestId, 'limits', error),
  )
}

function listed(first: RateTake | undefined, second: RateTake | undefined): readonly RateTake[] {
  if (first === undefined) return second === undefined ? [] : [second]
  return second === undefined ? [first] : [first, second]
}

/**
 * Gives the caller's place back and corrects the token limit to what was used. Called once for every admitted request.
 * Never fails, because no answer is withheld for a limiter that is down: the host gets an `internal-error` event, and the
 * lease ends when it expires.
 */
export function leave(context: StageContext, admitted: Admitted, tokensUsed: number): MaybePromise<void> {
  return andThen(release(context, admitted), () => correctTokens(context, admitted, tokensUsed))
}

function correctTokens(
  context: StageContext,
  { requestId, tokenTake }: Admitted,
  tokensUsed: number,
): MaybePromise<void> {
  if (tokenTake === undefined || tokensUsed === tokenTake.amount) return
  const { bucket, perMinute, amount } = tokenTake
  return settled(
    () => context.rateLimiter.adjust({ bucket, perMinute, amount: tokensUsed - amount }, context.clock.now()),
    () => undefined,
    (error) => reportFault(context, requestId, 'limits', error),
  )
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
  return andThen(context.concurrency.acquire(lease, nowMs), (isAcquired) => {
    if (!isAcquired) throw new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
    return lease
  })
}
