import { charge, highestCharge } from '../../catalog/prices/prices.ts'
import { GatewayError } from '../../core/errors.ts'
import { readExactCallerJson } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import { isPending, type MaybePromise } from '../../core/maybe-promise.ts'
import { type Usage, withHookUnits } from '../../core/usage.ts'
import { MAX_REPLY_CHARACTERS, type SecondTry } from '../../hooks/hook-table.ts'
import type { Admitted, Parsed, Reserved } from '../call-record.ts'
import { settledUsage } from '../charge.ts'
import { dispatch, route } from '../dispatch.ts'
import { chargeableUsage, estimateFor, reportBounds } from '../estimate.ts'
import { outputFit, unboundedRequest } from '../output-bound.ts'
import { reparse } from '../parse.ts'
import { type PipelineContext, reportFault } from '../pipeline-context.ts'
import { type PricedRequest, priceRequest } from '../pricing.ts'
import { type ReserveOutcome, reserve, reserveIfCovered, StoredReplay } from '../reserve.ts'
import { emitUnbilledEnding } from '../usage-after-failure.ts'
import type { FailedResponse, JsonResponse } from '../vendor-response.ts'
import { screeningOf } from './shown-answer.ts'

/**
 * Reserves a request. If a hook may retry its answer, money for both calls is reserved; if the balance or a cap does not cover
 * both, only the first call is possible.
 * @throws GatewayError of `reserve`.
 */
export function reserveForTries(context: PipelineContext, admitted: Admitted): MaybePromise<ReserveOutcome> {
  if (!mayAskAgain(context, admitted)) return reserve(context, admitted)
  const single = priceRequest(context, admitted, admitted.estimate)
  if (single === undefined) return allowed(reserve(context, admitted, undefined, single))
  const bounded = unboundedRequest(context, admitted, single)?.usual
  const covered = reserveIfCovered(context, admitted, forBoth(bounded?.priced ?? single))
  const decided = (outcome: ReserveOutcome | undefined): MaybePromise<ReserveOutcome> => {
    if (outcome === undefined) return reserve(context, admitted, undefined, single)
    if (bounded !== undefined && !(outcome instanceof StoredReplay)) admitted.fitted(outputFit(admitted, bounded))
    return allowed(outcome)
  }
  return isPending(covered) ? covered.then(decided) : decided(covered)
}

/** Prices a request, including a second call if a retry is possible; see `priceRequest`. */
export function priceForTries(context: PipelineContext, parsed: Parsed, estimate: Usage): PricedRequest | undefined {
  const single = priceRequest(context, parsed, estimate)
  return single !== undefined && mayAskAgain(context, parsed) ? forBoth(single) : single
}

function forBoth(single: PricedRequest): PricedRequest {
  let amount = 0n
  for (const [index, rate] of single.rates.entries()) {
    const estimate = single.estimates[index]!
    const second = highestCharge(rate, secondEstimate(estimate))
    const both = (highestCharge(rate, estimate) ?? single.amount) + (second ?? single.amount)
    if (both > amount) amount = both
  }
  return { ...single, amount }
}

function allowed(reserving: MaybePromise<ReserveOutcome>): MaybePromise<ReserveOutcome> {
  if (isPending(reserving)) return reserving.then((outcome) => allowed(outcome) as ReserveOutcome)
  if ('allowSecondTry' in reserving) reserving.allowSecondTry()
  return reserving
}

/** Only a whole answer to a self-contained request can be retried, because a history may end with its vendor. */
function mayAskAgain(context: PipelineContext, parsed: Parsed): boolean {
  const { endpoint, isStream, continued, chain, body } = parsed
  const hooks = context.hooks?.of(endpoint)?.answer
  if (isStream || hooks?.some(({ asksAgain }) => asksAgain) !== true) return false
  if (continued?.previous !== undefined || continued?.recalled?.original !== undefined) return false
  if (endpoint.deferral?.applies(body as never) === true) return false
  if (endpoint.texts?.continued?.({ ...body }, '', '') === undefined) return false
  const asked = screeningOf(context, parsed, chain[0]?.id ?? body.model)?.hooks
  return asked?.some(({ asksAgain }) => asksAgain) === true
}

/** Returns the upper estimate of the second call, whose prompt also contains the first answer and the reply. */
function secondEstimate({ hookUnits: _hookUnits, ...estimate }: Usage): Usage {
  const { inputTokens = 0, outputTokens = 0, cacheWriteTokens } = estimate
  const more = outputTokens + MAX_REPLY_CHARACTERS
  return {
    ...estimate,
    inputTokens: inputTokens + more,
    ...(cacheWriteTokens !== undefined && { cacheWriteTokens: cacheWriteTokens + more }),
  }
}

/**
 * Calls the model again with its answer and the fault in it, within the request's time limit and its hold. Both calls are
 * charged. Returns `undefined` if there is no second answer, so that the first one stays.
 */
export async function askAgain(
  context: PipelineContext,
  reserved: Reserved,
  first: JsonResponse,
  second: SecondTry,
): Promise<JsonResponse | undefined> {
  const { candidate, body } = first
  if (!reserved.mayTryAgain || reserved.caller.isDisconnected || body.isRefusal === true) return undefined
  const remainingMs = reserved.startedAtMs + context.timeouts.totalMs - context.clock.now()
  const again = remainingMs > 0 ? requestAgain(context, reserved, second) : undefined
  if (again === undefined) return undefined
  const { body: asked, bytes, textBytes, denseTokens, media, chain, billingFields, estimate } = reserved
  const before = { body: asked, bytes, textBytes, denseTokens, media, chain, billingFields, estimate }
  // Only the model that has answered has known prices and bounds.
  const pinned = { ...again, chain: chain.filter(({ id }) => id === candidate.model.id), estimate }
  reserved.replaced(pinned)
  const ahead = estimateFor(context, reserved, pinned.chain[0] ?? chain[0]!)
  if (!isCovered(reserved, first, before.estimate, ahead)) {
    reserved.replaced(before)
    return undefined
  }
  reserved.replaced({ ...pinned, estimate: ahead })
  const response = await dispatched(context, reserved, remainingMs)
  const isAnswered = response?.kind === 'json'
  // A second call that broke, or was abandoned, may have to be paid in addition to the first one.
  if (response !== undefined && !isAnswered) follow(context, reserved, response)
  reserved.replaced(before)
  if (!isAnswered) return undefined
  follow(context, reserved, first)
  reserved.replaced({ ...before, estimate: ahead })
  return response
}

/** Never rejects, because the first call was answered and is charged, whatever happens to the second one. */
async function dispatched(
  context: PipelineContext,
  reserved: Reserved,
  remainingMs: number,
): Promise<JsonResponse | FailedResponse | undefined> {
  try {
    const response = await dispatch(context, route(context, reserved), remainingMs)
    if (response.kind === 'stream') throw new TypeError('a whole answer was requested, but a stream arrived')
    return response
  } catch (error) {
    reportFault(context, reserved.requestId, 'a second try', error)
    return undefined
  }
}

/** Charges another call together with the one whose answer is sent. */
function follow(
  context: PipelineContext,
  reserved: Reserved,
  { ending, candidate }: JsonResponse | FailedResponse,
): void {
  if (candidate === undefined) return
  const usage = settledUsage(context, reserved, { ending, candidate })
  if (usage !== undefined) reserved.follows({ candidate, usage, isCharged: true })
  emitUnbilledEnding(context, reserved, candidate, ending)
}

/** Returns the request of the retry, or `undefined` if it is impossible, for example because the body would be too long. */
function requestAgain(
  context: PipelineContext,
  reserved: Reserved,
  { answer, reply }: SecondTry,
): ReturnType<typeof reparse> | undefined {
  const { endpoint, body, bytes, requestId } = reserved
  const written: unknown = bytes === undefined ? body : readExactCallerJson(bytes, endpoint.exactMembers).value
  const value = isJsonObject(written) ? endpoint.texts?.continued?.(written, answer, reply) : undefined
  if (value === undefined) return undefined
  try {
    return reparse(context, reserved, { value })
  } catch (error) {
    if (!GatewayError.isInstance(error)) reportFault(context, requestId, 'a second try', error)
    return undefined
  }
}

/** Whether the hold covers the cost of the first call plus the maximum cost of the second. */
function isCovered(reserved: Reserved, { candidate, ending }: JsonResponse, held: Usage, ahead: Usage): boolean {
  const { hold, hookUnits, endpoint, body } = reserved
  if (hold === undefined) return true
  const rate = hold.rates.find(({ model }) => model === candidate.model.id)
  if (rate === undefined) return false
  const { usage: reported, estimatedUsage: estimated = {} } = ending
  const bounds = reportBounds({ endpoint, body, estimate: held }, candidate.model)
  const used = reported === undefined ? estimated : chargeableUsage(reported, bounds, estimated).usage
  const spent = charge(rate, withHookUnits(used, hookUnits))
  const most = highestCharge(rate, ahead)
  return spent !== undefined && most !== undefined && spent + most <= hold.amount
}
