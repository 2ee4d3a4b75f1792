import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { BucketState, Lease, RateDecision, RateLimits, RateTake } from '../stores/rate-limiter.ts'
import { type BucketNames, bucketNames } from './bucket-names.ts'
import type { Admission, Admitted, Parsed } from './call-record.ts'
import { endUserDigest, endUserOf } from './end-user.ts'
import { acquireLeases, eachReported, releaseLeases } from './leases.ts'
import type { LimitSet } from './limit-set.ts'
import { limitsOf } from './limits.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { estimateFor } from './usage-estimate.ts'

/** Limits of a key, an account or an end user that a request counts against. */
interface Limited {
  readonly limits: RateLimits
  readonly names: BucketNames
}

/**
 * Applies the limits of key, account and end user: requests and tokens per minute, requests at once. Tokens are taken by the
 * estimate, before anything is sent, and corrected at the end.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass, `account_frozen`, or
 *   `plan_not_configured`.
 */
export function admit(context: PipelineContext, parsed: Parsed): MaybePromise<Admitted> {
  if (parsed.principal.isFrozen === true) throw new GatewayError('account_frozen')
  // The host's own estimator may throw, so it runs before anything is taken.
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  const limits = limitsOf(context, parsed.principal)
  return isPending(limits)
    ? limits.then((known) => admitWithin(context, parsed, estimate, known))
    : admitWithin(context, parsed, estimate, limits)
}

function admitWithin(
  context: PipelineContext,
  parsed: Parsed,
  estimate: Usage,
  limits: LimitSet,
): MaybePromise<Admitted> {
  const limited = limitedBy(parsed, limits)
  const leases = acquireLeases(context, wantedLeases(context, parsed, limited))
  return isPending(leases)
    ? leases.then((held) => takeRates(context, parsed, { estimate, limited, leases: held }))
    : takeRates(context, parsed, { estimate, limited, leases })
}

/** Whose limits a request counts against: those of its key, its account and its end user, where they have any. */
function limitedBy({ principal, body }: Parsed, { perKey, perAccount, perEndUser }: LimitSet): readonly Limited[] {
  const { accountId, keyId } = principal
  const limited: Limited[] = []
  if (hasLimits(perKey)) limited.push({ limits: perKey, names: bucketNames(accountId, 'key', keyId) })
  if (hasLimits(perAccount)) limited.push({ limits: perAccount, names: bucketNames(accountId, 'account', accountId) })
  if (!hasLimits(perEndUser)) return limited
  const endUser = endUserOf(principal, body)
  if (endUser !== undefined)
    limited.push({ limits: perEndUser, names: bucketNames(accountId, 'user', endUserDigest(endUser)) })
  return limited
}

function hasLimits({ requestsPerMinute, tokensPerMinute, concurrency }: RateLimits): boolean {
  return requestsPerMinute !== undefined || tokensPerMinute !== undefined || concurrency !== undefined
}

function wantedLeases({ clock, timeouts, disconnects }: PipelineContext, parsed: Parsed, limited: readonly Limited[]) {
  // A lease outlives the longest request, so it never needs renewing and still ends by itself when the process dies.
  const expiresAtMs = clock.now() + timeouts.totalMs + disconnects.drainMs + 60_000
  return limited.flatMap(({ limits: { concurrency: limit }, names }) =>
    limit === undefined ? [] : [{ bucket: names.concurrency, leaseId: parsed.requestId, limit, expiresAtMs }],
  )
}

/** What is known of a request before its rates are taken. */
interface Counted {
  readonly estimate: Usage
  readonly limited: readonly Limited[]
  readonly leases: readonly Lease[]
}

function takeRates(
  context: PipelineContext,
  parsed: Parsed,
  { estimate, limited, leases }: Counted,
): MaybePromise<Admitted> {
  const requestTakes: RateTake[] = []
  const tokenTakes: RateTake[] = []
  const estimated = (estimate.inputTokens ?? 0) + (estimate.outputTokens ?? 0)
  for (const { limits, names } of limited) {
    const { requestsPerMinute, tokensPerMinute } = limits
    if (requestsPerMinute !== undefined)
      requestTakes.push({ bucket: names.requests, amount: 1, perMinute: requestsPerMinute })
    // More than the whole bucket cannot be taken, so more must not be given back later either.
    if (tokensPerMinute !== undefined)
      tokenTakes.push({
        bucket: names.tokens,
        amount: Math.min(estimated, tokensPerMinute),
        perMinute: tokensPerMinute,
      })
  }
  const admission = { estimate, leases, tokenTakes, requestBucket: undefined, tokenBucket: undefined }
  if (requestTakes.length + tokenTakes.length === 0) return parsed.admitted(admission)
  const decided = ({ allowed, buckets, retryAfterMs }: RateDecision): MaybePromise<Admitted> => {
    // The caller of a refused request reads the same limits in its headers.
    const admitted = parsed.admitted({
      ...admission,
      requestBucket: tightest(buckets.slice(0, requestTakes.length)),
      tokenBucket: tightest(buckets.slice(requestTakes.length)),
    } satisfies Admission)
    if (allowed) return admitted
    return refuse(new GatewayError('rate_limited', { retryAfterSeconds: retryAfterMs / 1000 }))
  }
  const refuse = (error: unknown): MaybePromise<never> => {
    const released = releaseLeases(context, parsed.requestId, leases)
    if (!isPending(released)) throw error
    return released.then(() => {
      throw error
    })
  }
  let decision: MaybePromise<RateDecision>
  try {
    decision = context.rateLimiter.take([...requestTakes, ...tokenTakes], context.clock.now())
  } catch (error) {
    return refuse(error)
  }
  return isPending(decision) ? decision.then(decided, refuse) : decided(decision)
}

/** The limit that the caller meets first. */
function tightest(buckets: readonly BucketState[]): BucketState | undefined {
  return buckets.reduce<BucketState | undefined>(
    (least, bucket) => (least === undefined || bucket.remaining < least.remaining ? bucket : least),
    undefined,
  )
}

/**
 * Releases the caller's leases and corrects the token limits to the real usage. Called once for every admitted request. Never
 * fails: a limiter that is down must not withhold an answer. The host then gets an `internal-error` event, and the lease
 * expires.
 */
export function release(context: PipelineContext, admitted: Admitted, tokensUsed: number): MaybePromise<void> {
  const released = releaseLeases(context, admitted.requestId, admitted.leases)
  return isPending(released)
    ? released.then(() => correctTokens(context, admitted, tokensUsed))
    : correctTokens(context, admitted, tokensUsed)
}

function correctTokens(
  context: PipelineContext,
  { requestId, tokenTakes }: Admitted,
  tokensUsed: number,
): MaybePromise<void> {
  const wrong = tokenTakes.filter(({ amount }) => amount !== tokensUsed)
  return eachReported(context, requestId, wrong, ({ bucket, perMinute, amount }) =>
    context.rateLimiter.adjust({ bucket, perMinute, amount: tokensUsed - amount }, context.clock.now()),
  )
}
