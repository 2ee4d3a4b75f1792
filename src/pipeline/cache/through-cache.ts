import { GatewayError } from '../../core/errors.ts'
import { isPending, type MaybePromise } from '../../core/maybe-promise.ts'
import { release } from '../admit.ts'
import type { Admitted } from '../call-record.ts'
import { type PipelineContext, reportFault } from '../pipeline-context.ts'
import type { Unfinished } from '../vendor-response.ts'
import type { AnswerCache, CacheWish } from './answer-cache.ts'
import { CachePlan } from './cache-plan.ts'
import { type CachedAnswer, decodeAnswer } from './cached-answer.ts'
import type { Flight, FlightOutcome } from './flight.ts'
import { serveHit } from './serve-cached.ts'

/** What follows where the cache has no answer: money is held, and a vendor is asked. */
export interface NextStage<Completion> {
  readonly completion: Completion
  /** Resolves with what is left of the answer; undefined: nothing. */
  proceed(context: PipelineContext, admitted: Admitted, completion: Completion): MaybePromise<Unfinished | undefined>
}

/**
 * The one place where a request meets the response cache: after its limits, before its money. It is answered from the cache, waits
 * for an equal request, or proceeds, and its answer is then kept. The admission is released once on each way.
 * @param isImmediate Is the request answered on its own connection? Others go past the cache.
 * @throws GatewayError `cache_miss` where the caller wants nothing else, `invalid_request` for a header that says nothing known,
 *   and everything that `proceed` throws.
 */
export async function throughCache<Completion>(
  context: PipelineContext,
  admitted: Admitted,
  isImmediate: boolean,
  { completion, proceed }: NextStage<Completion>,
): Promise<Unfinished | undefined> {
  const { cache } = context
  if (cache === undefined || admitted.endpoint.cached === undefined || !isImmediate) {
    if (cache?.wantsOnly(admitted.request) !== true) return proceed(context, admitted, completion)
    await release(context, admitted, 0)
    throw new GatewayError('cache_miss')
  }
  const plan = new CachePlan()
  admitted.planned(plan)
  let outcome: CachedAnswer | 'proceed'
  try {
    outcome = await lookUp(context, cache, admitted, plan)
  } catch (error) {
    // A request that is refused here has used nothing.
    await release(context, admitted, 0)
    throw error
  }
  if (outcome !== 'proceed' && (await serveHit(context, cache, admitted, outcome))) return undefined
  // An entry that cannot be used is none.
  if (plan.isOnly) {
    await release(context, admitted, 0)
    throw new GatewayError('cache_miss')
  }
  const { flight } = plan
  if (flight === undefined) return proceed(context, admitted, completion)
  try {
    const rest = await proceed(context, admitted, completion)
    await rest?.end
    return undefined
  } finally {
    if (plan.kept !== undefined) await plan.kept
    flight.leaderOver()
  }
}

/** Finds the answer to a request, or says what is to be done with the one that it will get. */
async function lookUp(
  context: PipelineContext,
  cache: AnswerCache,
  admitted: Admitted,
  plan: CachePlan,
): Promise<CachedAnswer | 'proceed'> {
  const wish = cache.wishOf(admitted)
  const keying = wish && keyOf(context, cache, admitted, wish)
  const key = isPending(keying) ? await keying : keying
  // Also of a request that is never looked up: its vendor would be paid.
  const isOnly = cache.wantsOnly(admitted.request)
  plan.isOnly = isOnly
  if (wish === undefined || key === undefined) {
    if (isOnly) throw new GatewayError('cache_miss')
    return 'proceed'
  }
  plan.key = key
  plan.ttlMs = wish.ttlMs
  plan.model = admitted.chain[0]!.id
  plan.status = wish.mode === 'refresh' ? 'refresh' : 'miss'
  if (wish.mode === 'refresh') return 'proceed'
  const reading = read(context, cache, admitted, key)
  const entry = isPending(reading) ? await reading : reading
  const answer = entry && decodeAnswer(entry)
  if (answer !== undefined && isFresh(answer, context.clock.now())) return answer
  if (answer !== undefined) plan.stale = entry
  if (isOnly) throw new GatewayError('cache_miss')
  cache.stats.misses += 1
  if (!cache.settings.collapse || admitted.isStream) return 'proceed'
  const underWay = cache.flightOf(key)
  if (underWay !== undefined) return collapse(context, admitted, plan, underWay)
  plan.flight = cache.takeOff(key)
  return 'proceed'
}

/** An answer that was kept in the future, by more than clocks of processes differ, shows that the clock was set back. */
function isFresh({ storedAtMs, staleFromMs }: CachedAnswer, nowMs: number): boolean {
  return nowMs < staleFromMs && storedAtMs - nowMs < staleFromMs - storedAtMs
}

/** Undefined: it is not known at present which entries count. */
function keyOf(
  context: PipelineContext,
  cache: AnswerCache,
  admitted: Admitted,
  wish: CacheWish,
): MaybePromise<string | undefined> {
  const { store } = cache.settings
  const nowMs = context.clock.now()
  const keyIn = (ofAll: number | undefined, ofAccount: number | undefined): string | undefined =>
    ofAll === undefined || ofAccount === undefined
      ? undefined
      : cache.keyOf(admitted, wish, [ofAll, ofAccount], context.vendors)
  const failed = (error: unknown): undefined => {
    reportFault(context, admitted.requestId, 'cache', error)
    return undefined
  }
  try {
    const ofAll = store.generation(ALL_ACCOUNTS, nowMs)
    const ofAccount = wish.isOfAccount ? store.generation(admitted.principal.accountId, nowMs) : 0
    if (!isPending(ofAll) && !isPending(ofAccount)) return keyIn(ofAll, ofAccount)
    return Promise.all([ofAll, ofAccount])
      .then(([first, second]) => keyIn(first, second))
      .catch(failed)
  } catch (error) {
    return failed(error)
  }
}

/** The scope of everything. No account has this id. */
export const ALL_ACCOUNTS = ''

/** A cache that fails is one that has nothing. */
function read(
  context: PipelineContext,
  cache: AnswerCache,
  { requestId }: Admitted,
  key: string,
): MaybePromise<Uint8Array | undefined> {
  const failed = (error: unknown): undefined => {
    reportFault(context, requestId, 'cache', error)
    return undefined
  }
  try {
    const entry = cache.settings.store.get(key, context.clock.now())
    return isPending(entry) ? entry.then(undefined, failed) : entry
  } catch (error) {
    return failed(error)
  }
}

/** Waits for an equal request that is under way, and takes its place if it fails. */
async function collapse(
  context: PipelineContext,
  admitted: Admitted,
  plan: CachePlan,
  underWay: Flight,
): Promise<CachedAnswer | 'proceed'> {
  const outcome = await waitFor(context, admitted, underWay)
  if (outcome === 'lead') plan.flight = underWay
  return typeof outcome === 'string' ? 'proceed' : (decodeAnswer(outcome) ?? 'proceed')
}

/**
 * Waits within the request's own time.
 * @throws GatewayError `upstream_timeout`, `client_closed_request` when the caller leaves, `gateway_closing`.
 */
function waitFor(context: PipelineContext, { caller, calls }: Admitted, flight: Flight): Promise<FlightOutcome> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      leave()
      deadline.cancel()
      calls.delete(waiting)
      caller.onDisconnect(undefined)
    }
    const fail = (code: 'upstream_timeout' | 'client_closed_request' | 'gateway_closing'): void => {
      end()
      reject(calls.refusal ?? new GatewayError(code))
    }
    const waiting = { abort: () => fail('gateway_closing') }
    const leave = flight.join((outcome) => {
      end()
      resolve(outcome)
    })
    const deadline = context.deadlines.add(() => fail('upstream_timeout'))
    if (!calls.add(waiting)) return fail('gateway_closing')
    caller.onDisconnect(() => fail('client_closed_request'))
  })
}
