import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars } from '../core/money.ts'
import type { ClaimResult, StoredAnswer } from '../stores/idempotency-store.ts'
import { type Account, furtherHoldId, MAX_AMOUNT, type Reservation, type ReserveResult } from '../stores/ledger.ts'
import type { Principal } from '../stores/principal.ts'
import type { Creation } from '../stores/stored-bounds.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { Admitted, Reserved } from './call-record.ts'
import { fitToBalance } from './fit-to-balance.ts'
import { claimKey, createWithinBounds, replayOf } from './idempotency-key.ts'
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
 * @param priced What is held, where it is not the price of the request.
 * @throws GatewayError `model_not_priced`, `insufficient_balance`, `account_in_arrears`, `account_frozen`, `credit_limit_reached`,
 *   `spending_cap_reached`, `invalid_principal`, `idempotency_in_flight`, `idempotency_mismatch`, `storage_limit_reached`, or `store_unavailable`: without a hold nothing is dispatched, whatever the store throws.
 */
export function reserve(
  context: PipelineContext,
  admitted: Admitted,
  plan?: TaskPlan,
  priced: PricedRequest | undefined = priceRequest(context, admitted, admitted.estimate),
): MaybePromise<ReserveOutcome> {
  const attempt = { id: admitted.requestId, priced, plan }
  const result = reserveOnce(context, admitted, attempt)
  return isPending(result)
    ? result.then((decided) => outcomeOrFit(context, admitted, attempt, decided))
    : outcomeOrFit(context, admitted, attempt, result)
}

/**
 * Holds an amount that is known already, or nothing, and claims the caller's Idempotency-Key in the same step.
 * @throws GatewayError as {@link reserve} does.
 */
export function reservePriced(
  context: PipelineContext,
  admitted: Admitted,
  priced: PricedRequest | undefined,
): MaybePromise<ReserveOutcome> {
  const attempt = { id: admitted.requestId, priced, plan: undefined }
  const result = reserveOnce(context, admitted, attempt)
  return isPending(result)
    ? result.then((decided) => outcomeOf(context, admitted, attempt, decided))
    : outcomeOf(context, admitted, attempt, result)
}

/**
 * Holds more than a request needs, where the caller has it, and claims its Idempotency-Key in the same step. Undefined: the balance or
 * a cap does not cover it, and nothing is held or claimed.
 * @throws GatewayError as {@link reserve} does for anything else.
 */
export function reserveIfCovered(
  context: PipelineContext,
  admitted: Admitted,
  priced: PricedRequest,
): MaybePromise<ReserveOutcome | undefined> {
  const attempt = { id: furtherHoldId(admitted.requestId, 'both'), priced, plan: undefined }
  const outcome = (result: ReserveResult | ClaimResult): ReserveOutcome | undefined =>
    LACKS_MONEY.has(result.status) || result.status === 'spending_limit'
      ? undefined
      : outcomeOf(context, admitted, attempt, result)
  const result = reserveOnce(context, admitted, attempt)
  return isPending(result) ? result.then(outcome) : outcome(result)
}

function outcomeOrFit(
  context: PipelineContext,
  admitted: Admitted,
  attempt: ReserveAttempt,
  result: ReserveResult | ClaimResult,
): MaybePromise<ReserveOutcome> {
  const { priced, plan } = attempt
  return LACKS_MONEY.has(result.status) && priced !== undefined
    ? reserveFitted(context, admitted, { priced, plan, status: result.status })
    : outcomeOf(context, admitted, attempt, result)
}

/** A reservation that was refused because the balance does not cover it. */
interface ShortReserve {
  readonly priced: PricedRequest
  readonly plan: TaskPlan | undefined
  readonly status: (ReserveResult | ClaimResult)['status']
}

/** Reserves what the balance pays, where a shorter answer would do. */
async function reserveFitted(
  context: PipelineContext,
  admitted: Admitted,
  { priced, plan, status }: ShortReserve,
): Promise<ReserveOutcome> {
  const available = await availableOf(context, admitted)
  // What is written down for later is run as it was asked for.
  const fitted = plan === undefined ? fitToBalance(context, admitted, priced, available) : undefined
  if (fitted !== undefined && 'fit' in fitted) {
    const bounded = admitted.fitted(fitted.fit)
    const again = { id: furtherHoldId(admitted.requestId, 'fitted'), priced: fitted.priced, plan: undefined }
    const second = await reserveOnce(context, bounded, again)
    if (!LACKS_MONEY.has(second.status)) return outcomeOf(context, bounded, again, second)
  }
  const needed =
    fitted === undefined ? priced.amount : 'fit' in fitted ? fitted.priced.amount : fitted.neededNanoDollars
  throw balanceError(context, admitted, { status, needed, available })
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
    const { observation } = admitted
    const claimed =
      observation === undefined
        ? claimWithinBounds(context, admitted, attempt)
        : observation.timed('reserve', () => claimWithinBounds(context, admitted, attempt))
    return isPending(claimed)
      ? claimed.then(undefined, (cause: unknown) => storeFailed(context, admitted, attempt, cause))
      : claimed
  } catch (cause) {
    return storeFailed(context, admitted, attempt, cause)
  }
}

function storeFailed(context: PipelineContext, admitted: Admitted, attempt: ReserveAttempt, cause: unknown): never {
  if (GatewayError.isInstance(cause)) throw cause
  const { priced, plan } = attempt
  // The hold of a task ends with its task.
  const isUndone = priced === undefined ? admitted.claim !== undefined : plan === undefined
  if (isUndone && context.settlementRetries.size < MAX_UNDOING) undoLater(context, admitted, attempt, cause)
  throw new GatewayError('store_unavailable', { cause })
}

/** Outcomes that a shorter answer may turn. */
const LACKS_MONEY: ReadonlySet<string> = new Set<ReserveResult['status']>(['insufficient_balance', 'credit_limit'])

/** What a call may cost at most: the free balance, or what a metered account may still owe. */
async function availableOf(context: PipelineContext, { principal }: Admitted): Promise<bigint> {
  try {
    const account = await context.store.ledger.account(principal.accountId)
    return account === undefined ? 0n : availableMoney(account, account.billing ?? context.billing)
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
}

function availableMoney({ balance, owed, creditHeld, creditLimit }: Account, billing: Account['billing']): bigint {
  if (billing !== 'metered' || creditLimit === undefined) return balance
  const free = creditLimit + balance - owed - creditHeld
  return free > 0n ? free : 0n
}

function outcomeOf(
  { principalFaults }: PipelineContext,
  admitted: Admitted,
  { id, priced }: ReserveAttempt,
  result: ReserveResult | ClaimResult,
): ReserveOutcome {
  switch (result.status) {
    case 'held':
    case 'claimed':
      return admitted.reserved(priced && { id, amount: priced.amount, rates: priced.rates }, priced?.chain)
    case 'replay':
    case 'in_flight':
    case 'mismatch':
      return new StoredReplay(replayOf(result))
    case 'account_frozen':
      throw new GatewayError('account_frozen')
    case 'credit_limit':
      throw new GatewayError('credit_limit_reached')
    case 'in_arrears':
      throw new GatewayError('account_in_arrears', { message: IN_ARREARS })
    case 'insufficient_balance':
      throw new GatewayError('insufficient_balance')
    case 'unknown_account':
      throw principalFaults.unknownAccount(admitted.principal.accountId)
    case 'spending_limit':
      throw new GatewayError('spending_cap_reached')
  }
}

/** Says what is lacking and what helps. */
function balanceError(
  { outputBounds }: PipelineContext,
  { endpoint }: Admitted,
  { status, needed, available }: { readonly status: string; readonly needed: bigint; readonly available: bigint },
): GatewayError {
  const remedy =
    endpoint.outputBound === undefined ? 'add credit' : `lower ${endpoint.outputBound.member} or add credit`
  const lacking = outputBounds.showBalanceInErrors
    ? `This request needs $${formatDollars(needed)}, available $${formatDollars(available)}`
    : 'The balance is too low for this request'
  const code = status === 'credit_limit' ? 'credit_limit_reached' : 'insufficient_balance'
  return new GatewayError(code, { message: `${lacking}; ${remedy}.` })
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
  const isHeld = attempt.priced !== undefined
  const run = async (): Promise<void> => {
    if (!isHeld) return freeOwnClaim(context, admitted, attempt)
    if (!isKnown) await claim(context, admitted, attempt)
    isKnown = true
    await context.store.ledger.void(attempt.id, context.clock.now())
  }
  const unsettled = {
    requestId,
    holdId: isHeld ? attempt.id : undefined,
    taskId: undefined,
    accountId,
    keyId,
    amountNanoDollars: 0n,
  }
  settleLater(context, unsettled, { run, untilMs: context.clock.now() + context.holdTtlMs, error: cause })
}

/**
 * Frees a key that was claimed without a hold. Another request may have claimed it since, which keeps it. A claim that the store makes only
 * after this is over in its time.
 */
async function freeOwnClaim(context: PipelineContext, admitted: Admitted, attempt: ReserveAttempt): Promise<void> {
  const { status } = await claim(context, admitted, attempt)
  if (status === 'claimed' && admitted.claim !== undefined) await context.store.idempotency.release(admitted.claim)
}

const IN_ARREARS = 'The account owes money for earlier requests. Add credit: what is owed is paid from it first.'

/** An answer that is stored at the end of its call needs room before the vendor is called. */
function claimWithinBounds(
  context: PipelineContext,
  admitted: Admitted,
  attempt: ReserveAttempt,
): MaybePromise<ReserveResult | ClaimResult> {
  const { claim: key, principal, continued } = admitted
  const turn = continued?.recalled?.turn
  const creations: Creation[] = []
  if (turn !== undefined) creations.push({ kind: 'responses' })
  if (turn?.conversation !== undefined) creations.push({ kind: 'conversations', count: 0 })
  if (attempt.plan !== undefined) {
    const waiting = attempt.plan.task.details.deferred?.body ?? ''
    creations.push({ kind: 'tasks', byteLength: Buffer.byteLength(waiting) })
  }
  if (key === undefined && creations.length === 0) return claim(context, admitted, attempt)
  const planned = { accountId: principal.accountId, claim: key, creations }
  return createWithinBounds(context, planned, () => claim(context, admitted, attempt))
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
  if (priced === undefined) return claim === undefined ? NOTHING_TO_CLAIM : claimKey(context, claim)
  const reservation: Reservation = {
    holdId: id,
    accountId: principal.accountId,
    keyId: principal.keyId,
    amount: priced.amount,
    expiresAtMs: plan?.holdExpiresAtMs ?? nowMs + context.holdTtlMs,
    claim,
    billing: context.billing,
    caps: capsOf(principal),
    task: plan?.task,
  }
  return context.store.ledger.reserve(reservation, nowMs)
}

/** Caps that the caller brings along; the store adds those that it has. */
function capsOf({ accountSpendingCap, keySpendingCap }: Principal): Reservation['caps'] {
  if (accountSpendingCap === undefined && keySpendingCap === undefined) return undefined
  return { account: accountSpendingCap, key: keySpendingCap }
}
