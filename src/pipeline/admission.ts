import { hash } from 'node:crypto'
import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import { endUserOf, type Principal } from '../stores/principal.ts'
import type { BucketState, Lease, RateDecision, RateLimits, RateTake } from '../stores/rate-limiter.ts'
import type { Admitted, Parsed } from './call-record.ts'
import { estimateFor, usualInputTokens } from './estimate.ts'
import { type LimitSet, type PipelineContext, reportFault, withDefaults } from './pipeline-context.ts'

/** Limits of a key, account or end user that a request counts against. */
interface Limited {
  readonly limits: RateLimits
  readonly names: BucketNames
}

/**
 * Applies the limits of key, account and end user: requests and tokens per minute, and concurrent requests. Estimated tokens are
 * taken before anything is sent, and corrected at the end.
 * @param runsNow Whether the request takes its tokens and its leases. A deferred answer takes them when it runs, and an estimate never.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass, `account_frozen`, or
 *   `plan_not_configured`.
 */
export async function admit(
  context: PipelineContext,
  parsed: Parsed,
  runsNow = !isOnlyAccepted(parsed),
): Promise<Admitted> {
  const { rateLimiter, concurrency, clock, timeouts, disconnects } = context
  const { principal, requestId: leaseId } = parsed
  if (principal.isFrozen === true) throw new GatewayError('account_frozen')
  // The host's own estimator may throw, so it runs before anything is taken.
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  const limits = limitsOf(context, principal)
  const limited = limitedBy(parsed, isPending(limits) ? await limits : limits)
  const nowMs = clock.now()
  // A lease outlives the longest request, so it needs no renewal and still expires if the process dies.
  const expiresAtMs = nowMs + timeouts.totalMs + disconnects.drainMs + 60_000
  let leases: readonly Lease[] = []
  try {
    if (runsNow)
      for (const { limits, names } of limited) {
        if (limits.concurrency === undefined) continue
        const lease = { bucket: names.concurrency, leaseId, limit: limits.concurrency, expiresAtMs }
        const acquired = concurrency.acquire(lease, nowMs)
        if (!(isPending(acquired) ? await acquired : acquired))
          throw new GatewayError('rate_limited', { message: 'Too many requests at the same time.' })
        leases = withItem(leases, lease)
      }
    const requests = parsed.answerId === undefined ? requestTakes(limited) : NO_TAKES
    const tokenTakes = runsNow ? tokenTakesOf(parsed, estimate, limited) : NO_TAKES
    const takes = [...requests, ...tokenTakes]
    const decision = takes.length === 0 ? UNLIMITED : rateLimiter.take(takes, nowMs)
    const { allowed, buckets, retryAfterMs } = isPending(decision) ? await decision : decision
    // The caller of a rejected request gets headers with the same limits.
    const requestBucket = tightest(buckets, 0, requests.length)
    const tokenBucket = tightest(buckets, requests.length, buckets.length)
    const admitted = parsed.admitted({ estimate, leases, tokenTakes, requestBucket, tokenBucket })
    if (!allowed) throw new GatewayError('rate_limited', { retryAfterSeconds: retryAfterMs / 1000 })
    return admitted
  } catch (error) {
    await eachReported(context, leaseId, leases, releaseLease)
    throw error
  }
}

const NO_TAKES: readonly RateTake[] = []
const UNLIMITED: RateDecision = { allowed: true, buckets: [], retryAfterMs: 0 }

function requestTakes(limited: readonly Limited[]): readonly RateTake[] {
  let takes = NO_TAKES
  for (const { limits, names } of limited)
    if (limits.requestsPerMinute !== undefined)
      takes = withItem(takes, { bucket: names.requests, amount: 1, perMinute: limits.requestsPerMinute })
  return takes
}

function tokenTakesOf(parsed: Parsed, estimate: Usage, limited: readonly Limited[]): readonly RateTake[] {
  let takes = NO_TAKES
  const tokens = usualInputTokens(estimate, parsed) + (estimate.outputTokens ?? 0)
  for (const { limits, names } of limited) {
    if (limits.tokensPerMinute === undefined) continue
    // At most the whole bucket can be taken, so no more may be returned later either.
    const amount = Math.min(tokens, limits.tokensPerMinute)
    takes = withItem(takes, { bucket: names.tokens, amount, perMinute: limits.tokensPerMinute })
  }
  return takes
}

/** Admits a request that counts against no limit, because it is part of work that was already admitted. */
export function admitUnlimited(context: PipelineContext, parsed: Parsed): Admitted {
  const estimate = estimateFor(context, parsed, parsed.chain[0]!)
  return parsed.admitted({
    estimate,
    leases: [],
    tokenTakes: NO_TAKES,
    requestBucket: undefined,
    tokenBucket: undefined,
  })
}

/** Whether the request is only accepted now and run later. */
function isOnlyAccepted({ endpoint, body, answerId }: Parsed): boolean {
  return endpoint.deferral !== undefined && answerId === undefined && endpoint.deferral.applies(body)
}

/**
 * Returns the limits of a caller: those of its key, then of its account's plan, then of the gateway.
 * @throws GatewayError `plan_not_configured`, and `store_unavailable` if the plan cannot be read.
 */
export function limitsOf(context: LimitContext, principal: Principal): MaybePromise<LimitSet> {
  const { plans, accountPlans } = context
  return principal.plan === undefined && plans.size > 0
    ? accountPlans.planOf(principal.accountId).then((plan) => limitsIn(context, principal, plan))
    : limitsIn(context, principal, principal.plan)
}

type LimitContext = Pick<PipelineContext, 'limits' | 'plans' | 'accountPlans'>

function limitsIn({ limits, plans }: LimitContext, { limits: own }: Principal, plan: Principal['plan']): LimitSet {
  const set = plan == null ? limits : plans.get(plan)
  if (set === undefined) {
    const cause = new Error(`createGateway({ plans }) has no plan ${JSON.stringify(plan)}`)
    throw new GatewayError('plan_not_configured', { cause })
  }
  return own === undefined ? set : { ...set, perKey: withDefaults(own, set.perKey) }
}

/** Returns the limits that a request counts against: those of its key, its account and its end user, if any. */
function limitedBy({ principal, body }: Parsed, { perKey, perAccount, perEndUser }: LimitSet): readonly Limited[] {
  const { accountId, keyId } = principal
  let limited: readonly Limited[] = []
  if (hasLimits(perKey)) limited = [{ limits: perKey, names: bucketNames(accountId, 'key', keyId) }]
  if (hasLimits(perAccount))
    limited = withItem(limited, { limits: perAccount, names: bucketNames(accountId, 'account', accountId) })
  const endUser = hasLimits(perEndUser) ? endUserOf(principal, body) : undefined
  if (endUser !== undefined) {
    // Names of end users may be e-mail addresses and of any length.
    const digest = hash('sha256', endUser).slice(0, DIGEST_CHARACTERS)
    limited = withItem(limited, { limits: perEndUser, names: bucketNames(accountId, 'user', digest) })
  }
  return limited
}

const DIGEST_CHARACTERS = 32

/** Appends an item. V8 allocates 17 entries for a growing list, but most requests need a list of one. */
function withItem<Item>(list: readonly Item[], item: Item): readonly Item[] {
  return list.length === 0 ? [item] : [...list, item]
}

function hasLimits({ requestsPerMinute, tokensPerMinute, concurrency }: RateLimits): boolean {
  return requestsPerMinute !== undefined || tokensPerMinute !== undefined || concurrency !== undefined
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
export function release(
  context: PipelineContext,
  { requestId, leases, tokenTakes }: Admitted,
  tokensUsed: number,
): MaybePromise<void> {
  const released = eachReported(context, requestId, leases, releaseLease)
  const changes = tokenTakes.map((take) => ({ ...take, amount: tokensUsed - take.amount }))
  const corrected = eachReported(context, requestId, changes, correct)
  return isPending(released) ? released.then(() => corrected) : corrected
}

function releaseLease({ concurrency }: PipelineContext, lease: Lease): MaybePromise<void> {
  return concurrency.release(lease)
}

function correct({ rateLimiter, clock }: PipelineContext, change: RateTake): MaybePromise<void> {
  return change.amount === 0 ? undefined : rateLimiter.adjust(change, clock.now())
}

/** Runs a function for all items concurrently. Reports errors instead of throwing, because they must not fail a request. */
function eachReported<Item>(
  context: PipelineContext,
  requestId: string,
  items: readonly Item[],
  run: (context: PipelineContext, item: Item) => MaybePromise<void>,
): MaybePromise<void> {
  const pending: PromiseLike<void>[] = []
  const failed = (error: unknown): void => reportFault(context, requestId, 'limits', error)
  for (const item of items)
    try {
      const done = run(context, item)
      if (isPending(done)) pending.push(done.then(undefined, failed))
    } catch (error) {
      failed(error)
    }
  return pending.length === 0 ? undefined : Promise.all(pending).then(() => undefined)
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
