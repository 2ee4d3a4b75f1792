import type { CatalogModel } from '../catalog/model.ts'
import { charge, type Rate } from '../catalog/prices/prices.ts'
import { GatewayError } from '../core/errors.ts'
import type { ClaimResult } from '../stores/idempotency-store.ts'
import type { ReserveResult } from '../stores/ledger.ts'
import { estimateFor } from './estimated-usage.ts'
import type { Admitted, Hold, ReserveOutcome } from './records.ts'
import { spendingLimitsOf } from './spending-limits.ts'
import type { StageContext } from './stage-context.ts'

/**
 * Sets money aside for the dearest model that could answer, and claims the caller's Idempotency-Key in the same step.
 * @throws GatewayError `model_not_priced`, `insufficient_balance`, `idempotency_in_flight`, `idempotency_mismatch`, or
 *   `store_unavailable`: without a hold nothing is dispatched.
 */
export async function reserve(context: StageContext, admitted: Admitted): Promise<ReserveOutcome> {
  if (context.prices === undefined) {
    if (admitted.claim === undefined)
      return { kind: 'reserved', reserved: Object.assign(admitted, { hold: undefined }) }
    const claimed = await guarded(() => context.store.idempotency.claim(admitted.claim!, context.clock.now()))
    return claimed.status === 'claimed'
      ? { kind: 'reserved', reserved: Object.assign(admitted, { hold: undefined }) }
      : replayOrThrow(claimed)
  }
  const hold = priceHold(context, admitted)
  const nowMs = context.clock.now()
  const result: ReserveResult = await guarded(() =>
    context.store.ledger.reserve(
      {
        holdId: hold.id,
        accountId: admitted.principal.accountId,
        keyId: admitted.principal.keyId,
        amount: hold.amount,
        expiresAtMs: nowMs + context.holdTtlMs,
        claim: admitted.claim,
        spendingLimits: spendingLimitsOf(admitted.principal, nowMs),
      },
      nowMs,
    ),
  )
  if (result.status === 'held') return { kind: 'reserved', reserved: Object.assign(admitted, { hold }) }
  if (result.status === 'insufficient_balance') throw new GatewayError('insufficient_balance')
  if (result.status === 'unknown_account')
    throw new GatewayError('insufficient_balance', { message: 'This account has no balance.' })
  if (result.status === 'spending_limit') throw new GatewayError('spending_cap_reached')
  return replayOrThrow(result)
}

function priceHold(context: StageContext, admitted: Admitted): Hold {
  const rates = new Map<string, Rate>()
  let amount = 0n
  for (const model of admitted.chain) {
    const rate = context.prices?.quote(model.id, admitted.billingFields)
    const estimate = estimateFor(context, admitted, model)
    const cost = rate === undefined ? undefined : charge(rate, estimate)
    if (rate === undefined || cost === undefined) throw notPriced(model)
    rates.set(model.id, rate)
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

function replayOrThrow(result: Exclude<ClaimResult, { status: 'claimed' }>): ReserveOutcome {
  if (result.status === 'replay') return { kind: 'replay', answer: result.answer }
  throw new GatewayError(result.status === 'in_flight' ? 'idempotency_in_flight' : 'idempotency_mismatch', {
    retryAfterSeconds: result.status === 'in_flight' ? 1 : undefined,
  })
}

/** Money fails closed: whatever the store throws, the caller gets 503 and no vendor is called. */
async function guarded<Value>(read: () => Value | PromiseLike<Value>): Promise<Value> {
  try {
    return await read()
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}
