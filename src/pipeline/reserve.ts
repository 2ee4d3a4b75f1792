import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars } from '../core/money.ts'
import type { ClaimResult, StoredAnswer } from '../stores/idempotency-store.ts'
import { MAX_AMOUNT, type Reservation, type ReserveResult, type SpendingLimit } from '../stores/ledger.ts'
import type { Principal, SpendingCap } from '../stores/principal.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { Admitted, Reserved } from './call-record.ts'
import { fitToBalance } from './fit-to-balance.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { type PricedRequest, priceRequest } from './pricing.ts'
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
export function reserve(context: PipelineContext, admitted: Admitted, plan?: TaskPlan): MaybePromise<ReserveOutcome> {
  const priced = priceRequest(context, admitted, admitted.estimate)
  const attempt = { id: admitted.requestId, priced, plan }
  const result = reserveOnce(context, admitted, attempt)
  return isPending(result)
    ? result.then((decided) => outcomeOrFit(context, admitted, attempt, decided))
    : outcomeOrFit(context, admitted, attempt, result)
}

function outcomeOrFit(
  context: PipelineContext,
  admitted: Admitted,
  attempt: ReserveAttempt,
  result: ReserveResult | ClaimResult,
): MaybePromise<ReserveOutcome> {
  const { priced, plan } = attempt
  return result.status === 'insufficient_balance' && priced !== undefined
    ? reserveFitted(context, admitted, { priced, plan })
    : outcomeOf(admitted, attempt, result)
}

/** Reserves what the balance pays, where a shorter answer would do. */
async function reserveFitted(
  context: PipelineContext,
  admitted: Admitted,
  { priced, plan }: { readonly priced: PricedRequest; readonly plan: TaskPlan | undefined },
): Promise<ReserveOutcome> {
  const balance = await balanceOf(context, admitted)
  const fitted = fitToBalance(context, admitted, priced, balance)
  if (fitted !== undefined && 'fit' in fitted) {
    const bounded = admitted.fitted(fitted.fit)
    // A store gives the same outcome to the same id, and this is another reservation.
    const again = { id: `${admitted.requestId}_fitted`, priced: fitted.priced, plan }
    const second = await reserveOnce(context, bounded, again)
    if (second.status !== 'insufficient_balance') return outcomeOf(bounded, again, second)
  }
  const needed =
    fitted === undefined ? priced.amount : 'fit' in fitted ? fitted.priced.amount : fitted.neededNanoDollars
  throw balanceError(context, admitted, { needed, balance })
}

/** One reservation. */
interface ReserveAttempt {
  readonly id: string
  /** Undefined: nothing is charged. */
  readonly priced: PricedRequest | undefined
  readonly plan: TaskPlan | undefined
}

/** Whatever a store throws means that it cannot be reached, unless it is an error of ours. */
function reserveOnce(
  context: PipelineContext,
  admitted: Admitted,
  attempt: ReserveAttempt,
): MaybePromise<ReserveResult | ClaimResult> {
  try {
    const claimed = claim(context, admitted, attempt)
    return isPending(claimed)
      ? claimed.then(undefined, (cause: unknown) => storeFailed(context, admitted, attempt, cause))
      : claimed
  } catch (cause) {
    return storeFailed(context, admitted, attempt, cause)
  }
}

function storeFailed(context: PipelineContext, admitted: Admitted, attempt: ReserveAttempt, cause: unknown): never {
  if (GatewayError.isInstance(cause)) throw cause
  // The hold of a task ends with its task.
  const { priced, plan } = attempt
  if (priced !== undefined && plan === undefined && context.settlementRetries.size < MAX_UNDOING)
    undoLater(context, admitted, attempt, cause)
  throw new GatewayError('store_unavailable', { cause })
}

async function balanceOf(context: PipelineContext, { principal }: Admitted): Promise<bigint> {
  try {
    return (await context.store.ledger.account(principal.accountId))?.balance ?? 0n
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
}

function outcomeOf(
  admitted: Admitted,
  { id, priced }: ReserveAttempt,
  result: ReserveResult | ClaimResult,
): ReserveOutcome {
  switch (result.status) {
    case 'held':
    case 'claimed':
      return admitted.reserved(priced && { id, amount: priced.amount, rates: priced.rates }, priced?.chain)
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

/** Says what is lacking and what helps. */
function balanceError(
  { outputBounds }: PipelineContext,
  { endpoint }: Admitted,
  { needed, balance }: { readonly needed: bigint; readonly balance: bigint },
): GatewayError {
  const remedy =
    endpoint.outputBound === undefined ? 'add credit' : `lower ${endpoint.outputBound.member} or add credit`
  const lacking = outputBounds.showBalanceInErrors
    ? `This request needs $${formatDollars(needed)}, available $${formatDollars(balance)}`
    : 'The balance is too low for this request'
  return new GatewayError('insufficient_balance', { message: `${lacking}; ${remedy}.` })
}

/** Beyond so many that wait, the sweep ends holds that may have been placed: charges must find a place in the queue. */
const MAX_UNDOING = 1_000

/**
 * A store that failed may have reserved all the same, or may do it after the gateway has stopped waiting. Nothing was sent to a
 * vendor, so money and Idempotency-Key are freed as soon as the store answers. Reserving the same id again comes first: it gives
 * the first outcome, or decides it, so that nothing is undone before it is done.
 */
function undoLater(context: PipelineContext, admitted: Admitted, attempt: ReserveAttempt, cause: unknown): void {
  const { requestId, principal } = admitted
  const { accountId, keyId } = principal
  let isKnown = false
  const run = async (): Promise<void> => {
    if (!isKnown) await claim(context, admitted, attempt)
    isKnown = true
    await context.store.ledger.void(attempt.id, context.clock.now())
  }
  const unsettled = { requestId, holdId: attempt.id, taskId: undefined, accountId, keyId, amountNanoDollars: 0n }
  settleLater(context, unsettled, { run, untilMs: context.clock.now() + context.holdTtlMs, error: cause })
}

const NOTHING_TO_CLAIM: ClaimResult = { status: 'claimed' }

function claim(
  context: PipelineContext,
  { claim, principal }: Admitted,
  { id, priced, plan }: ReserveAttempt,
): MaybePromise<ReserveResult | ClaimResult> {
  const nowMs = context.clock.now()
  // More than any account can have; a store would take it for a fault.
  if (priced !== undefined && priced.amount > MAX_AMOUNT) return { status: 'insufficient_balance' }
  if (priced === undefined)
    return claim === undefined ? NOTHING_TO_CLAIM : context.store.idempotency.claim(claim, nowMs)
  const reservation: Reservation = {
    holdId: id,
    accountId: principal.accountId,
    keyId: principal.keyId,
    amount: priced.amount,
    expiresAtMs: plan?.holdExpiresAtMs ?? nowMs + context.holdTtlMs,
    claim,
    spendingLimits: spendingLimitsOf(principal, nowMs),
    ...(plan === undefined ? {} : { task: plan.task }),
  }
  return context.store.ledger.reserve(reservation, nowMs)
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
