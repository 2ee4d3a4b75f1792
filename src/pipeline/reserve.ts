import { GatewayError } from '../core/errors.ts'
import type { ClaimResult, StoredAnswer } from '../stores/idempotency-store.ts'
import type { Reservation, ReserveResult, SpendingLimit } from '../stores/ledger.ts'
import type { Principal, SpendingCap } from '../stores/principal.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { Admitted, Hold, Reserved } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { priceRequest } from './pricing.ts'
import { settleLater } from './settle.ts'

/** Outcome of reserving: either money is held, or the same request was answered before. */
export type ReserveOutcome = Reserved | StoredReplay

/** The same request was answered before, under the same Idempotency-Key: its answer is given again. */
export class StoredReplay {
  readonly answer: StoredAnswer

  constructor(answer: StoredAnswer) {
    this.answer = answer
  }
}

/** A task to be written down together with its hold. */
export interface TaskPlan {
  readonly task: TaskRecord
  /** Unix milliseconds; the hold outlives the request. */
  readonly holdExpiresAtMs: number
}

/**
 * Sets money aside for the dearest model that could answer, and claims the caller's Idempotency-Key in the same step.
 * @throws GatewayError `model_not_priced`, `insufficient_balance`, `account_in_arrears`, `spending_cap_reached`, `idempotency_in_flight`,
 *   `idempotency_mismatch`, or `store_unavailable`: without a hold nothing is dispatched, whatever the store throws.
 */
export async function reserve(context: PipelineContext, admitted: Admitted, plan?: TaskPlan): Promise<ReserveOutcome> {
  const priced = priceRequest(context, admitted, admitted.estimate)
  const hold = priced && { id: admitted.requestId, ...priced }
  let result: ReserveResult | ClaimResult
  try {
    result = await claim(context, admitted, hold, plan)
  } catch (cause) {
    if (GatewayError.isInstance(cause)) throw cause
    // The hold of a task ends with its task.
    if (hold !== undefined && plan === undefined && context.settlementRetries.size < MAX_UNDOING)
      undoLater(context, admitted, hold, cause)
    throw new GatewayError('store_unavailable', { cause })
  }
  switch (result.status) {
    case 'held':
    case 'claimed':
      return admitted.reserved(hold)
    case 'replay':
      return new StoredReplay(result.answer)
    case 'in_arrears':
      throw new GatewayError('account_in_arrears')
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

/** Beyond so many that wait, the sweep ends holds that may have been placed: charges must find a place in the queue. */
const MAX_UNDOING = 1_000

/**
 * A store that failed may have reserved all the same, or may do it after the gateway has stopped waiting. Nothing was sent to a
 * vendor, so money and Idempotency-Key are freed as soon as the store answers. Reserving the same id again comes first: it gives
 * the first outcome, or decides it, so that nothing is undone before it is done.
 */
function undoLater(context: PipelineContext, admitted: Admitted, hold: Hold, cause: unknown): void {
  const { requestId, principal } = admitted
  const { accountId, keyId } = principal
  let isKnown = false
  const run = async (): Promise<void> => {
    if (!isKnown) await claim(context, admitted, hold, undefined)
    isKnown = true
    await context.store.ledger.void(hold.id, context.clock.now())
  }
  const unsettled = { requestId, holdId: hold.id, taskId: undefined, accountId, keyId, amountNanoDollars: 0n }
  settleLater(context, unsettled, { run, untilMs: context.clock.now() + context.holdTtlMs, error: cause })
}

const NOTHING_TO_CLAIM: ClaimResult = { status: 'claimed' }

async function claim(
  context: PipelineContext,
  { claim, principal }: Admitted,
  hold: Hold | undefined,
  plan: TaskPlan | undefined,
): Promise<ReserveResult | ClaimResult> {
  const nowMs = context.clock.now()
  if (hold === undefined)
    return claim === undefined ? NOTHING_TO_CLAIM : await context.store.idempotency.claim(claim, nowMs)
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
  return await context.store.ledger.reserve(reservation, nowMs)
}

/** How long a counter is kept after its period, so that requests that began in it can still be settled against it. */
const COUNTER_GRACE_MS = 24 * 60 * 60 * 1000

/** The counters that a caller's request counts against: one for the account's cap, one for the key's. */
export function spendingLimitsOf(principal: Principal, nowMs: number): readonly SpendingLimit[] | undefined {
  const { accountSpendingCap, keySpendingCap } = principal
  if (accountSpendingCap === undefined && keySpendingCap === undefined) return undefined
  const limits: SpendingLimit[] = []
  if (accountSpendingCap !== undefined)
    limits.push(spendingLimit(`account:${principal.accountId}`, accountSpendingCap, nowMs))
  if (keySpendingCap !== undefined) limits.push(spendingLimit(`key:${principal.keyId}`, keySpendingCap, nowMs))
  return limits
}

function spendingLimit(owner: string, cap: SpendingCap, nowMs: number): SpendingLimit {
  const { name, endMs } = calendarPeriod(cap.period, nowMs)
  return { counter: `${owner}:${name}`, limit: cap.amount, expiresAtMs: endMs + COUNTER_GRACE_MS }
}

/** The UTC day or month that a moment lies in: `2026-11-20` or `2026-11`, and when it ends. */
export function calendarPeriod(
  period: SpendingCap['period'],
  nowMs: number,
): { readonly name: string; readonly endMs: number } {
  const now = new Date(nowMs)
  const date = now.toISOString()
  if (period === 'day')
    return { name: date.slice(0, 10), endMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1) }
  return { name: date.slice(0, 7), endMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) }
}
