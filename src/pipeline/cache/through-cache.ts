import { GatewayError } from '../../core/errors.ts'
import { release } from '../admission.ts'
import type { Admitted } from '../call-record.ts'
import { type PipelineContext, reportFault } from '../pipeline-context.ts'
import type { Unfinished } from '../vendor-response.ts'
import type { AnswerCache, CacheWish } from './answer-cache.ts'
import { CachePlan, type Flight, type FlightOutcome } from './cache-plan.ts'
import { type CachedAnswer, decodeAnswer, serveHit } from './serve-cached.ts'

/** Next stage if the cache has no answer: it reserves money and calls a vendor. */
export interface NextStage<Completion> {
  readonly completion: Completion
  /** Resolves with the rest of the answer, or `undefined` if there is none. */
  proceed(context: PipelineContext, admitted: Admitted, completion: Completion): Promise<Unfinished | undefined>
}

/**
 * Only place where a request meets the response cache: after its limits and before its hold. The request is answered from the
 * cache, waits for an equal request, or proceeds, and its answer is then stored. Each path releases the admission once.
 * @param isImmediate Whether the request is answered on its own connection. Others bypass the cache.
 * @throws GatewayError `cache_miss` if the caller accepts only a cached answer, `invalid_request` for a header with an unknown
 *   value, and all errors of `proceed`.
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
    // A request that is rejected here has used nothing.
    await release(context, admitted, 0)
    throw error
  }
  if (outcome !== 'proceed' && (await serveHit(context, cache, admitted, outcome))) return undefined
  // An unusable entry counts as a miss.
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

/** Finds the answer to a request, or plans what happens to the answer that it will get. */
async function lookUp(
  context: PipelineContext,
  cache: AnswerCache,
  admitted: Admitted,
  plan: CachePlan,
): Promise<CachedAnswer | 'proceed'> {
  const wish = cache.wishOf(admitted)
  const key = wish && (await keyOf(context, cache, admitted, wish))
  // Also applies to requests that are never looked up, because their vendor would be paid.
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
  const entry = await read(context, cache, admitted, key)
  const answer = entry && decodeAnswer(entry)
  if (answer !== undefined && isFresh(answer, context.clock.now())) return answer
  if (isOnly) throw new GatewayError('cache_miss')
  cache.stats.misses += 1
  if (!cache.settings.collapse || admitted.isStream) return 'proceed'
  const underWay = cache.flightOf(key)
  if (underWay !== undefined) return collapse(context, admitted, plan, underWay)
  plan.flight = cache.takeOff(key)
  return 'proceed'
}

/** An entry from the future, beyond the clock differences of processes, shows that the clock was set back. */
function isFresh({ storedAtMs, staleFromMs }: CachedAnswer, nowMs: number): boolean {
  return nowMs < staleFromMs && storedAtMs - nowMs < staleFromMs - storedAtMs
}

/** Returns the key, or `undefined` if the current generations are unknown. */
async function keyOf(
  context: PipelineContext,
  cache: AnswerCache,
  admitted: Admitted,
  wish: CacheWish,
): Promise<string | undefined> {
  const { store } = cache.settings
  const nowMs = context.clock.now()
  try {
    const [ofAll, ofAccount] = await Promise.all([
      store.generation(ALL_ACCOUNTS, nowMs),
      wish.isOfAccount ? store.generation(admitted.principal.accountId, nowMs) : 0,
    ])
    if (ofAll === undefined || ofAccount === undefined) return undefined
    return cache.keyOf(admitted, wish, [ofAll, ofAccount], context.vendors)
  } catch (error) {
    reportFault(context, admitted.requestId, 'cache', error)
    return undefined
  }
}

/** Scope of all entries. No account has this id. */
export const ALL_ACCOUNTS = ''

/** Treats a failing cache as an empty one. */
async function read(
  context: PipelineContext,
  cache: AnswerCache,
  { requestId }: Admitted,
  key: string,
): Promise<Uint8Array | undefined> {
  try {
    return await cache.settings.store.get(key, context.clock.now())
  } catch (error) {
    reportFault(context, requestId, 'cache', error)
    return undefined
  }
}

/** Waits for an equal request in flight, and replaces it if it fails. */
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
 * Waits within the request's own time limit.
 * @throws GatewayError `upstream_timeout`, `client_closed_request` if the caller disconnects, `gateway_closing`.
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
