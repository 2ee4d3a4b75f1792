import { Buffer } from 'node:buffer'
import { type ErrorCode, GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars } from '../core/money.ts'
import { findKey } from '../stores/api-keys.ts'
import type { ClaimResult, StoredAnswer } from '../stores/idempotency-store.ts'
import { derivedHoldId, lesserOf, MAX_AMOUNT, type Reservation, type ReserveResult } from '../stores/ledger.ts'
import type { Principal, SpendingCap } from '../stores/principal.ts'
import { type SpendingCounts, spendingAt, spendingPeriod, spentOf } from '../stores/spending.ts'
import type { Creation } from '../stores/stored-bounds.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { Admitted, Reserved } from './call-record.ts'
import { settleLater } from './charge.ts'
import { claimKey, createWithinBounds, replayOf } from './idempotent-request.ts'
import {
  type BoundedRequest,
  boundedAmounts,
  MIN_CHOSEN_TOKENS,
  outputFit,
  type UnboundedRequest,
  unboundedRequest,
} from './output-bound.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { type PricedRequest, priceRequest } from './pricing.ts'

/** Outcome of reserving: either money is reserved, or the same request was answered before. */
export type ReserveOutcome = Reserved | StoredReplay

/** Earlier answer to the same request under the same Idempotency-Key, which is replayed. */
export class StoredReplay {
  readonly answer: StoredAnswer

  constructor(answer: StoredAnswer) {
    this.answer = answer
  }
}

/** Task that is stored together with its hold. */
export interface TaskPlan {
  readonly task: TaskRecord
  /** Expiry of the hold in Unix milliseconds; it outlives the request. */
  readonly holdExpiresAtMs: number
}

/**
 * Reserves money for the most expensive model that could answer, and claims the caller's Idempotency-Key in the same step.
 * @param priced Amount to reserve if it differs from the price of the request.
 * @throws GatewayError `model_not_priced`, `insufficient_balance`, `account_in_arrears`, `account_frozen`, `credit_limit_reached`,
 *   `spending_cap_reached`, `invalid_principal`, `idempotency_in_flight`, `idempotency_mismatch`, `storage_limit_reached`, or
 *   `store_unavailable`: without a hold nothing is dispatched, whatever the store throws.
 */
export async function reserve(
  context: PipelineContext,
  admitted: Admitted,
  plan?: TaskPlan,
  priced: PricedRequest | undefined = priceRequest(context, admitted, admitted.estimate),
): Promise<ReserveOutcome> {
  // A request that is stored for later already has a bound; see `boundedForLater`.
  const unbounded = priced && plan === undefined ? unboundedRequest(context, admitted, priced) : undefined
  const attempt = { id: admitted.requestId, priced, plan, unbounded }
  const reserving = reserveOnce(context, admitted, attempt)
  const result = isPending(reserving) ? await reserving : reserving
  if (priced !== undefined && LACKS_MONEY.has(result.status)) {
    if (unbounded !== undefined) return reserveFitted(context, admitted, unbounded, result)
    const available = (await freeMoneyOf(context, admitted.principal)) ?? 0n
    throw balanceError(context, admitted, { status: result.status, needed: priced.amount, available })
  }
  if (unbounded === undefined || result.status !== 'held') return outcomeOf(context, admitted, attempt, result)
  const { longest = unbounded.usual, usual } = unbounded
  return boundedOutcome(context, admitted, attempt, { result, bounded: result.isLarger === true ? longest : usual })
}

/**
 * Reserves a known amount, or nothing, and claims the caller's Idempotency-Key in the same step.
 * @throws GatewayError under the conditions of {@link reserve}.
 */
export async function reservePriced(
  context: PipelineContext,
  admitted: Admitted,
  priced: PricedRequest | undefined,
): Promise<ReserveOutcome> {
  const attempt = { id: admitted.requestId, priced, plan: undefined }
  return outcomeOf(context, admitted, attempt, await reserveOnce(context, admitted, attempt))
}

/** Outcome of a hold for a bound that the gateway chose. */
function boundedOutcome(
  context: PipelineContext,
  admitted: Admitted,
  attempt: ReserveAttempt,
  { result, bounded }: { readonly result: ReserveResult | ClaimResult; readonly bounded: BoundedRequest },
): ReserveOutcome {
  const { priced } = bounded
  return outcomeOf(context, admitted.fitted(outputFit(admitted, bounded)), { ...attempt, priced }, result)
}

/** Number of times that free money is read for one request. Other calls may use it between the reading and the hold. */
const MAX_FITTINGS = 5

/** Reserves as much as the free money covers. */
async function reserveFitted(
  context: PipelineContext,
  admitted: Admitted,
  unbounded: UnboundedRequest,
  refused: ReserveResult | ClaimResult,
): Promise<ReserveOutcome> {
  let { status } = refused
  let needed = unbounded.usual.priced.amount
  let available: bigint | undefined
  for (let fitting = 1; fitting <= MAX_FITTINGS; fitting++) {
    available = await freeMoneyOf(context, admitted.principal)
    const bounded = unbounded.choose(available)
    if ('neededNanoDollars' in bounded) {
      needed = bounded.neededNanoDollars
      break
    }
    const { priced } = bounded
    needed = priced.amount
    const attempt = { id: derivedHoldId(admitted.requestId, `fitted${fitting}`), priced, plan: undefined }
    const result = await reserveOnce(context, admitted, attempt)
    if (!LACKS_MONEY.has(result.status)) return boundedOutcome(context, admitted, attempt, { result, bounded })
    status = result.status
  }
  throw balanceError(context, admitted, { status, needed, available: available ?? 0n })
}

/**
 * Limits the output of a request that is stored and run later by the free money, before its hold is placed. Returns the unchanged
 * request if it sets its own bound or costs nothing.
 * @throws GatewayError `insufficient_balance`, `credit_limit_reached` or `spending_cap_reached` if the money covers no useful answer.
 */
export async function boundedForLater(context: PipelineContext, admitted: Admitted): Promise<Admitted> {
  const priced = priceRequest(context, admitted, admitted.estimate)
  const unbounded = priced && unboundedRequest(context, admitted, priced)
  if (unbounded === undefined) return admitted
  const available = await freeMoneyOf(context, admitted.principal)
  const bounded = unbounded.choose(available)
  if (!('neededNanoDollars' in bounded)) return admitted.fitted(outputFit(admitted, bounded))
  // The store decides, because it knows frozen accounts and replays.
  return admitted.fitted(outputFit(admitted, unbounded.bounded(Math.min(MIN_CHOSEN_TOKENS, unbounded.usual.tokens))))
}

/** Attempt to reserve. */
interface ReserveAttempt {
  readonly id: string
  /** Price, or `undefined` if nothing is charged. */
  readonly priced: PricedRequest | undefined
  readonly plan: TaskPlan | undefined
  /** Bounds that the gateway may choose. If omitted, the unchanged price is reserved. */
  readonly unbounded?: UnboundedRequest | undefined
}

/** Every error of a store, except the gateway's own errors, means that the store is unavailable. */
function reserveOnce(
  context: PipelineContext,
  admitted: Admitted,
  attempt: ReserveAttempt,
): MaybePromise<ReserveResult | ClaimResult> {
  const { observation } = admitted
  const failed = (cause: unknown): never => storeFailed(context, admitted, attempt, cause)
  try {
    const claimed =
      observation === undefined
        ? claimWithinBounds(context, admitted, attempt)
        : observation.timed('reserve', () => claimWithinBounds(context, admitted, attempt))
    return isPending(claimed) ? claimed.then(undefined, failed) : claimed
  } catch (cause) {
    return failed(cause)
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

/** Outcomes that a shorter answer may change. */
const LACKS_MONEY: ReadonlySet<string> = new Set<ReserveResult['status']>([
  'insufficient_balance',
  'credit_limit',
  'spending_limit',
])

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
      throw new GatewayError('account_in_arrears', { message: ARREARS_MESSAGE })
    case 'insufficient_balance':
      throw new GatewayError('insufficient_balance')
    case 'unknown_account':
      throw principalFaults.unknownAccount(admitted.principal.accountId)
    case 'spending_limit':
      throw new GatewayError('spending_cap_reached')
  }
}

const ERROR_CODES: Readonly<Record<string, ErrorCode>> = {
  credit_limit: 'credit_limit_reached',
  spending_limit: 'spending_cap_reached',
}

/** Returns an error with the missing amount and the remedy. */
function balanceError(
  { outputBounds }: PipelineContext,
  { endpoint }: Admitted,
  { status, needed, available }: { readonly status: string; readonly needed: bigint; readonly available: bigint },
): GatewayError {
  const isCapped = status === 'spending_limit'
  const more = isCapped ? 'raise the spending cap' : 'add credit'
  const remedy = endpoint.outputBound === undefined ? more : `lower ${endpoint.outputBound.member} or ${more}`
  const lacking = outputBounds.showBalanceInErrors
    ? `This request needs $${formatDollars(needed)}, available $${formatDollars(available)}`
    : `The ${isCapped ? 'spending cap' : 'balance'} is too low for this request`
  const code = ERROR_CODES[status] ?? 'insufficient_balance'
  return new GatewayError(code, { message: `${lacking}; ${remedy}.` })
}

/** Maximum number of waiting reversals. Beyond it, the sweep ends holds that may exist, so that the queue has room for charges. */
const MAX_UNDOING = 1_000

/**
 * Undoes a reservation that the store may have made despite its failure, or may make after the gateway has stopped waiting.
 * Nothing was sent to a vendor, so money and Idempotency-Key are freed as soon as the store answers. The same id is reserved
 * again first: that returns or decides the first outcome, so that nothing is undone before it exists.
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
 * Releases a key that was claimed without a hold. If another request has claimed it since, that request keeps it. A claim that
 * the store makes only after this expires by itself.
 */
async function freeOwnClaim(context: PipelineContext, admitted: Admitted, attempt: ReserveAttempt): Promise<void> {
  const { status } = await claim(context, admitted, attempt)
  if (status === 'claimed' && admitted.claim !== undefined) await context.store.idempotency.release(admitted.claim)
}

const ARREARS_MESSAGE = 'The account owes money for earlier requests. Add credit, which pays the debt first.'

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

function claim(
  context: PipelineContext,
  { claim, principal }: Admitted,
  { id, priced, plan, unbounded }: ReserveAttempt,
): MaybePromise<ReserveResult | ClaimResult> {
  const nowMs = context.clock.now()
  // More than any account can have. A store would treat it as a fault.
  if (priced !== undefined && priced.amount > MAX_AMOUNT) return { status: 'insufficient_balance' }
  if (priced === undefined) return claim === undefined ? { status: 'claimed' } : claimKey(context, claim)
  const amounts = unbounded && boundedAmounts(unbounded)
  const reservation: Reservation = {
    holdId: id,
    accountId: principal.accountId,
    keyId: principal.keyId,
    amount: amounts?.amount ?? priced.amount,
    requiredFree: amounts?.requiredFree,
    larger: amounts?.larger,
    expiresAtMs: plan?.holdExpiresAtMs ?? nowMs + context.holdTtlMs,
    claim,
    billing: context.billing,
    caps: capsOf(principal),
    task: plan?.task,
  }
  return context.store.ledger.reserve(reservation, nowMs)
}

/** Returns the caps of the caller's principal; the store adds its own. */
function capsOf({ accountSpendingCap, keySpendingCap }: Principal): Reservation['caps'] {
  if (accountSpendingCap === undefined && keySpendingCap === undefined) return undefined
  return { account: accountSpendingCap, key: keySpendingCap }
}

/**
 * Returns the maximum cost of one more call, in nano-dollars: the least of the balance (or the rest of a credit limit) and the
 * rest of every cap of the account and the key. Returns `undefined` if nothing limits it. Open holds count as spent.
 * @throws GatewayError `store_unavailable` if the store fails.
 */
export async function freeMoneyOf(
  { store, billing, clock }: PipelineContext,
  { accountId, keyId, accountSpendingCap, keySpendingCap }: Principal,
): Promise<bigint | undefined> {
  try {
    const [account, spending, key] = await Promise.all([
      store.ledger.account(accountId),
      store.ledger.spending(accountId, [keyId]),
      findKey(store.keys, keyId),
    ])
    if (account === undefined) return 0n
    const { balance, owed, creditHeld, creditLimit } = account
    const isMetered = (account.billing ?? billing) === 'metered'
    let free = isMetered ? creditLimit && creditLimit + balance - owed - creditHeld : balance
    const period = spendingPeriod(clock.now())
    const limit = (cap: SpendingCap | undefined, counts: SpendingCounts | undefined): void => {
      if (cap === undefined) return
      const rest = cap.amount - (counts === undefined ? 0n : spentOf(spendingAt(counts, period), cap.period))
      free = free === undefined ? rest : lesserOf(free, rest)
    }
    for (const cap of [account.spendingCap, accountSpendingCap]) limit(cap, spending?.account)
    for (const cap of [key?.spendingCap, keySpendingCap]) limit(cap, spending?.keys[0])
    return free === undefined || free > 0n ? free : 0n
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
}
