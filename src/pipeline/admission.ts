import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { BucketState, Lease, RateDecision, RateLimits, RateTake } from '../stores/rate-limiter.ts'
import type { Admitted, Parsed } from './call-record.ts'
import { endUserDigest, endUserOf } from './end-user.ts'
import { estimateFor, usualInputTokens } from './estimate.ts'
import { limitsOf } from './limits.ts'
import { type LimitSet, type PipelineContext, reportFault } from './pipeline-context.ts'

/** Limits of a key, account or end user that a request counts against. */
interface Limited {
  readonly limits: RateLimits
  readonly names: BucketNames
}

/**
 * Applies the limits of key, account and end user: requests and tokens per minute, and concurrent requests. Estimated tokens are
 * taken before anything is sent, and corrected at the end.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass, `account_frozen`, or
 *   `plan_not_configured`.
 */
export function admit(context: PipelineContext, parsed: Parsed): MaybePromise<Admitted> {
  if (parsed.principal.isFrozen === true) throw new GatewayError('account_frozen')
  // The host's own estimator may throw, so it runs before anything is taken.
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  const limits = limitsOf(context, parsed.principal)
  return isPending(limits)
    ? admitLater(context, parsed, estimate, limits)
    : admitWithin(context, parsed, estimate, limits)
}

/** Admits a request that counts against no limit, because it is part of work that was already admitted. */
export function admitUnlimited(context: PipelineContext, parsed: Parsed): Admitted {
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  return parsed.admitted({
    estimate,
    leases: [],
    tokenTakes: [],
    requestBucket: undefined,
    tokenBucket: undefined,
  })
}

function admitLater(
  context: PipelineContext,
  parsed: Parsed,
  estimate: Usage,
  limits: PromiseLike<LimitSet>,
): PromiseLike<Admitted> {
  return limits.then((known) => admitWithin(context, parsed, estimate, known))
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
    ? takeRatesLater(context, parsed, leases, { estimate, limited })
    : takeRates(context, parsed, { estimate, limited, leases })
}

function takeRatesLater(
  context: PipelineContext,
  parsed: Parsed,
  leases: PromiseLike<readonly Lease[]>,
  { estimate, limited }: Omit<Counted, 'leases'>,
): PromiseLike<Admitted> {
  return leases.then((held) => takeRates(context, parsed, { estimate, limited, leases: held }))
}

const NOBODY: readonly Limited[] = []

/** Returns the limits that a request counts against: those of its key, its account and its end user, if any. */
function limitedBy({ principal, body }: Parsed, { perKey, perAccount, perEndUser }: LimitSet): readonly Limited[] {
  const { accountId, keyId } = principal
  let limited = NOBODY
  if (hasLimits(perKey)) limited = withItem(limited, { limits: perKey, names: bucketNames(accountId, 'key', keyId) })
  if (hasLimits(perAccount))
    limited = withItem(limited, { limits: perAccount, names: bucketNames(accountId, 'account', accountId) })
  if (!hasLimits(perEndUser)) return limited
  const endUser = endUserOf(principal, body)
  return endUser === undefined
    ? limited
    : withItem(limited, { limits: perEndUser, names: bucketNames(accountId, 'user', endUserDigest(endUser)) })
}

/** Appends an item. V8 allocates 17 entries for a growing list, but most requests need a list of one. */
function withItem<Item>(list: readonly Item[], item: Item): readonly Item[] {
  return list.length === 0 ? [item] : [...list, item]
}

function hasLimits({ requestsPerMinute, tokensPerMinute, concurrency }: RateLimits): boolean {
  return requestsPerMinute !== undefined || tokensPerMinute !== undefined || concurrency !== undefined
}

const NO_LEASES: readonly WantedLease[] = []

function wantedLeases(
  { clock, timeouts, disconnects }: PipelineContext,
  parsed: Parsed,
  limited: readonly Limited[],
): readonly WantedLease[] {
  if (isDeferred(parsed)) return NO_LEASES
  const { requestId: leaseId } = parsed
  // A lease outlives the longest request, so it needs no renewal and still expires if the process dies.
  const expiresAtMs = clock.now() + timeouts.totalMs + disconnects.drainMs + 60_000
  let wanted = NO_LEASES
  for (let index = 0; index < limited.length; index++) {
    const { limits, names } = limited[index]!
    const { concurrency: limit } = limits
    if (limit !== undefined) wanted = withItem(wanted, { bucket: names.concurrency, leaseId, limit, expiresAtMs })
  }
  return wanted
}

/** Rates taken for a request: request limits first, then token limits. */
interface Taken {
  readonly estimate: Usage
  readonly leases: readonly Lease[]
  readonly takes: readonly RateTake[]
  readonly requestCount: number
}

function takeRates(context: PipelineContext, parsed: Parsed, counted: Counted): MaybePromise<Admitted> {
  const { estimate, leases } = counted
  const tokens = isDeferred(parsed) ? undefined : usualInputTokens(estimate, parsed) + (estimate.outputTokens ?? 0)
  const taken = takenFor(counted, { request: parsed.answerId === undefined, tokens })
  const { takes } = taken
  if (takes.length === 0)
    return parsed.admitted({ estimate, leases, tokenTakes: takes, requestBucket: undefined, tokenBucket: undefined })
  let decision: MaybePromise<RateDecision>
  try {
    decision = context.rateLimiter.take(takes, context.clock.now())
  } catch (error) {
    return releaseAndThrow(context, parsed.requestId, leases, error)
  }
  return isPending(decision)
    ? decidedLater(context, parsed, taken, decision)
    : decided(context, parsed, taken, decision)
}

/** Counts of a request before its rates are taken. */
interface Counted {
  readonly estimate: Usage
  readonly limited: readonly Limited[]
  readonly leases: readonly Lease[]
}

/** Whether the request is only accepted now and run later. It takes its tokens and its lease then. */
function isDeferred({ endpoint, body, answerId }: Parsed): boolean {
  return endpoint.deferral !== undefined && answerId === undefined && endpoint.deferral.applies(body)
}

/** @param counts Counted units: the request of a deferred answer when it is accepted, and its tokens when it runs. */
function takenFor(
  { estimate, limited, leases }: Counted,
  counts: { readonly request: boolean; readonly tokens: number | undefined },
): Taken {
  let requestCount = 0
  let tokenCount = 0
  for (let index = 0; index < limited.length; index++) {
    const { requestsPerMinute, tokensPerMinute } = limited[index]!.limits
    if (requestsPerMinute !== undefined && counts.request) requestCount += 1
    if (tokensPerMinute !== undefined && counts.tokens !== undefined) tokenCount += 1
  }
  const takes = new Array<RateTake>(requestCount + tokenCount)
  let request = 0
  let token = requestCount
  for (let index = 0; index < limited.length; index++) {
    const { limits, names } = limited[index]!
    const { requestsPerMinute, tokensPerMinute } = limits
    if (requestsPerMinute !== undefined && counts.request)
      takes[request++] = { bucket: names.requests, amount: 1, perMinute: requestsPerMinute }
    // At most the whole bucket can be taken, so no more may be returned later either.
    if (tokensPerMinute !== undefined && counts.tokens !== undefined) {
      const amount = Math.min(counts.tokens, tokensPerMinute)
      takes[token++] = { bucket: names.tokens, amount, perMinute: tokensPerMinute }
    }
  }
  return { estimate, leases, takes, requestCount }
}

/**
 * Counts a request for an estimate against the request limits, not against tokens or concurrent requests.
 * @throws GatewayError under the conditions of {@link admit}.
 */
export async function admitEstimate(context: PipelineContext, parsed: Parsed): Promise<Admitted> {
  if (parsed.principal.isFrozen === true) throw new GatewayError('account_frozen')
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  const limited = limitedBy(parsed, await limitsOf(context, parsed.principal))
  const taken = takenFor({ estimate, limited, leases: [] }, { request: true, tokens: undefined })
  const { leases, takes } = taken
  if (takes.length > 0)
    return decided(context, parsed, taken, await context.rateLimiter.take(takes, context.clock.now()))
  return parsed.admitted({ estimate, leases, tokenTakes: takes, requestBucket: undefined, tokenBucket: undefined })
}

// Separate from `takeRates`, because a function that may create closures allocates for them in every call.
function decidedLater(
  context: PipelineContext,
  parsed: Parsed,
  taken: Taken,
  decision: PromiseLike<RateDecision>,
): PromiseLike<Admitted> {
  return decision.then(
    (known) => decided(context, parsed, taken, known),
    (error) => releaseAndThrow(context, parsed.requestId, taken.leases, error),
  )
}

function decided(
  context: PipelineContext,
  parsed: Parsed,
  { estimate, leases, takes, requestCount }: Taken,
  { allowed, buckets, retryAfterMs }: RateDecision,
): MaybePromise<Admitted> {
  // The caller of a rejected request gets headers with the same limits.
  const admitted = parsed.admitted({
    estimate,
    leases,
    tokenTakes: takes.slice(requestCount),
    requestBucket: tightest(buckets, 0, requestCount),
    tokenBucket: tightest(buckets, requestCount, buckets.length),
  })
  if (allowed) return admitted
  const error = new GatewayError('rate_limited', { retryAfterSeconds: retryAfterMs / 1000 })
  return releaseAndThrow(context, parsed.requestId, leases, error)
}

/** Returns the bucket that is exhausted first, among those from `start` to `end`. */
function tightest(buckets: readonly BucketState[], start: number, end: number): BucketState | undefined {
  let least: BucketState | undefined
  for (let index = start; index < end; index++) {
    const bucket = buckets[index]!
    if (least === undefined || bucket.remaining < least.remaining) least = bucket
  }
  return least
}

/**
 * Releases the caller's leases and corrects the token limits to the real usage. Called once for every admitted request. Never
 * fails, because a limiter failure must not withhold an answer. The host then gets an `internal-error` event, and the lease
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
  return eachReported(context, requestId, tokenTakes, correctTake, tokensUsed)
}

function correctTake(
  { rateLimiter, clock }: PipelineContext,
  { bucket, perMinute, amount }: RateTake,
  tokensUsed: number,
): MaybePromise<void> {
  if (amount === tokensUsed) return undefined
  return rateLimiter.adjust({ bucket, perMinute, amount: tokensUsed - amount }, clock.now())
}

/** Names of one caller's limits in the limiters. */
interface BucketNames {
  readonly requests: string
  readonly tokens: string
  readonly concurrency: string
}

/** Owner of limits. */
export type LimitOwner = 'key' | 'account' | 'user'

/** Maximum number of cached names per kind of owner; the same as in `keyAuthentication`. */
export const MAX_KEPT_NAMES = 10_000

interface KeptNames {
  readonly accountId: string
  readonly names: BucketNames
}

/** A name that is joined for each request would be copied and hashed by each limiter. */
const kept: Readonly<Record<LimitOwner, Map<string, KeptNames>>> = {
  key: new Map(),
  account: new Map(),
  user: new Map(),
}

/**
 * Returns the names for a key, an account or an end user. All names of an account have the same prefix up to the first slash, so
 * that shared limiters keep them together and take from all of them in one step.
 *
 * @param id Id of the key or the account, or a digest of the end user's name.
 */
export function bucketNames(accountId: string, owner: LimitOwner, id: string): BucketNames {
  const known = kept[owner].get(id)
  if (known?.accountId === accountId) return known.names
  const account = accountId.replaceAll('%', '%25').replaceAll('/', '%2F')
  const owned = owner === 'account' ? `${account}/account` : `${account}/${owner}:${id}`
  const names = { requests: `requests:${owned}`, tokens: `tokens:${owned}`, concurrency: `concurrency:${owned}` }
  if (kept[owner].size >= MAX_KEPT_NAMES) kept[owner].clear()
  kept[owner].set(id, { accountId, names })
  return names
}

/** Lease to acquire. */
interface WantedLease extends Lease {
  readonly limit: number
  readonly expiresAtMs: number
}

/**
 * Acquires all leases, or none.
 * @param taken Number of leases that are already acquired.
 * @throws GatewayError `rate_limited`, or the errors of the limiter.
 */
function acquireLeases(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  taken = 0,
): MaybePromise<readonly Lease[]> {
  for (let index = taken; index < wanted.length; index++) {
    let acquired: MaybePromise<boolean>
    try {
      acquired = context.concurrency.acquire(wanted[index]!, context.clock.now())
    } catch (error) {
      return giveUp(context, wanted, index, error)
    }
    if (isPending(acquired)) return acquireLater(context, wanted, index, acquired)
    if (!acquired) return giveUp(context, wanted, index, tooMany())
  }
  return wanted
}

function acquireLater(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  index: number,
  acquired: PromiseLike<boolean>,
): PromiseLike<readonly Lease[]> {
  return acquired.then(
    (isAcquired) =>
      isAcquired ? acquireLeases(context, wanted, index + 1) : giveUp(context, wanted, index, tooMany()),
    (error) => giveUp(context, wanted, index, error),
  )
}

function tooMany(): GatewayError {
  return new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
}

/** Releases the leases before `index` if that one is taken. */
function giveUp(
  context: PipelineContext,
  wanted: readonly WantedLease[],
  index: number,
  error: unknown,
): MaybePromise<never> {
  return releaseAndThrow(context, wanted[index]!.leaseId, wanted.slice(0, index), error)
}

/** Releases leases, then throws. */
function releaseAndThrow(
  context: PipelineContext,
  requestId: string,
  leases: readonly Lease[],
  error: unknown,
): MaybePromise<never> {
  const released = releaseLeases(context, requestId, leases)
  if (!isPending(released)) throw error
  return released.then(() => {
    throw error
  })
}

/** Releases leases. Never fails: the host gets an `internal-error` event, and the lease expires. */
function releaseLeases(context: PipelineContext, requestId: string, leases: readonly Lease[]): MaybePromise<void> {
  return eachReported(context, requestId, leases, releaseLease, undefined)
}

function releaseLease({ concurrency }: PipelineContext, lease: Lease): MaybePromise<void> {
  return concurrency.release(lease)
}

/**
 * Runs a function for each item of a list, and reports errors instead of throwing, because they must not fail a request.
 * @param value Passed to each run, so that no closure is needed.
 */
function eachReported<Item, Value>(
  context: PipelineContext,
  requestId: string,
  items: readonly Item[],
  run: (context: PipelineContext, item: Item, value: Value) => MaybePromise<unknown>,
  value: Value,
): MaybePromise<void> {
  let pending: Promise<unknown>[] | undefined
  for (let index = 0; index < items.length; index++) {
    try {
      const done = run(context, items[index]!, value)
      if (isPending(done)) {
        pending ??= []
        pending.push(reportedLater(context, requestId, done))
      }
    } catch (error) {
      reportFault(context, requestId, 'limits', error)
    }
  }
  return pending === undefined ? undefined : Promise.all(pending).then(() => undefined)
}

// Separate from its caller, because a function that may create closures allocates for them in every call.
function reportedLater(context: PipelineContext, requestId: string, done: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(done).then(
    () => undefined,
    (error) => reportFault(context, requestId, 'limits', error),
  )
}
