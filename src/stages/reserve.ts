import type { CatalogModel } from '../catalog/model.ts'
import { highestCharge, type Prices, type Rate } from '../catalog/prices/prices.ts'
import { GatewayError } from '../core/errors.ts'
import { type MaybePromise, settled } from '../core/maybe-promise.ts'
import type { ClaimResult } from '../stores/idempotency-store.ts'
import type { Reservation, ReserveResult } from '../stores/ledger.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { chargedFields } from './charged-fields.ts'
import { estimateFor } from './estimated-usage.ts'
import type { Admitted, Hold, ReserveOutcome } from './records.ts'
import { spendingLimitsOf } from './spending-limits.ts'
import type { StageContext } from './stage-context.ts'
import { StoredReplay } from './stored-replay.ts'

/**
 * Sets money aside for the dearest model that could answer, and claims the caller's Idempotency-Key in the same step.
 * @throws GatewayError `model_not_priced`, `insufficient_balance`, `idempotency_in_flight`, `idempotency_mismatch`, or
 *   `store_unavailable`: without a hold nothing is dispatched, whatever it is
 *   that the store throws.
 */
export function reserve(context: StageContext, admitted: Admitted, plan?: TaskPlan): MaybePromise<ReserveOutcome> {
  const isFree = context.prices === undefined || admitted.endpoint.isFree === true
  const hold = isFree ? undefined : priceHold(context, context.prices, admitted)
  return settled(
    () => claimed(context, admitted, hold, plan),
    (result) => outcomeOf(result, admitted, hold),
    (cause) => {
      throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
    },
  )
}

/** A task to be written down together with its hold. */
export interface TaskPlan {
  readonly task: TaskRecord
  /** Unix milliseconds; the hold outlives the request. */
  readonly holdExpiresAtMs: number
}

const NOTHING_TO_CLAIM: ClaimResult = { status: 'claimed' }

function claimed(
  context: StageContext,
  admitted: Admitted,
  hold: Hold | undefined,
  plan: TaskPlan | undefined,
): MaybePromise<ReserveResult | ClaimResult> {
  const nowMs = context.clock.now()
  const { claim, principal } = admitted
  if (hold === undefined) return claim === undefined ? NOTHING_TO_CLAIM : context.store.idempotency.claim(claim, nowMs)
  const reservation: Reservation = {
    holdId: hold.id,
    accountId: principal.accountId,
    keyId: principal.keyId,
    amount: hold.amount,
    expiresAtMs: plan?.holdExpiresAtMs ?? nowMs + context.holdTtlMs,
    claim,
    spendingLimits: spendingLimitsOf(principal, nowMs),
    ...(plan === undefined ? {} : { task: plan.task }),
  }
  return context.store.ledger.reserve(reservation, nowMs)
}

function outcomeOf(result: ReserveResult | ClaimResult, admitted: Admitted, hold: Hold | undefined): ReserveOutcome {
  switch (result.status) {
    case 'held':
    case 'claimed':
      return Object.assign(admitted, { hold })
    case 'replay':
      return new StoredReplay(result.answer)
    case 'insufficient_balance':
      throw new GatewayError('insufficient_balance')
    case 'unknown_account':
      throw new GatewayError('insufficient_balance', { message: 'This account has no balance.' })
    case 'spending_limit':
      throw new GatewayError('spending_cap_reached')
    case 'in_flight':
      throw new GatewayError('idempotency_in_flight', { retryAfterSeconds: 1 })
    case 'mismatch':
      throw new GatewayError('idempotency_mismatch')
  }
}

function priceHold(context: StageContext, prices: Prices, admitted: Admitted): Hold {
  const rates: Rate[] = []
  let amount = 0n
  for (const model of admitted.chain) {
    const rate = prices.quote(model.id, chargedFields(context, admitted, model))
    const estimate = rates.length === 0 ? admitted.estimate : estimateFor(context, admitted, model)
    const cost = rate === undefined ? undefined : highestCharge(rate, estimate)
    if (rate === undefined || cost === undefined) throw notPriced(model)
    rates.push(rate)
    if (cost > amount) amount = cost
  }
  return { id: admitted.requestId, amount, rates }
}

function notPriced(model: CatalogModel): GatewayError {
  return new GatewayError('model_not_priced', {
    message: `There is no price for this use of the model ${JSON.stringify(model.id)}, and billing is on.`,
    param: 'model',
  })
}
