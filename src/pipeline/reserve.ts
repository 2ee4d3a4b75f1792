// See docs/decisions/0004-holds.md.

import { Buffer } from 'node:buffer'
import type { CatalogModel } from '../catalog/model.ts'
import { highestCharge } from '../catalog/prices/prices.ts'
import { type ErrorCode, GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import { findKey } from '../stores/api-keys.ts'
import type { ClaimResult, StoredAnswer } from '../stores/idempotency-store.ts'
import { derivedHoldId, lesserOf, MAX_AMOUNT, type Reservation, type ReserveResult } from '../stores/ledger.ts'
import type { Principal, SpendingCap } from '../stores/principal.ts'
import { type SpendingCounts, spendingAt, spendingPeriod, spentOf } from '../stores/spending.ts'
import type { Creation } from '../stores/stored-bounds.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { Admitted, OutputFit, Parsed, Reserved } from './call-record.ts'
import { settleLater } from './charge.ts'
import { assumedOutputTokens, withOutputBound } from './estimate.ts'
import { claimKey, createWithinBounds, replayOf } from './idempotent-request.ts'
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
    if (!isHeld) return releaseOwnClaim(context, admitted, attempt)
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
async function releaseOwnClaim(context: PipelineContext, admitted: Admitted, attempt: ReserveAttempt): Promise<void> {
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

/** Minimum bound that the gateway chooses, in tokens. A shorter answer would be of little use. */
export const MIN_CHOSEN_TOKENS = 256

/** Share of the free money that the longest answer may cost: 1/50, or 2 %. */
export const FREE_MONEY_DIVISOR = 50n

/** Share of the free money that a shorter answer may cost: half, so that concurrent calls share it. */
export const SHARE_DIVISOR = 2n

/** Facts from which a bound is chosen. */
interface OutputBoundFacts {
  /** Least of balance, rest of every applicable cap and rest of a credit limit, in nano-dollars. `undefined` if nothing limits it. */
  readonly freeMoney: bigint | undefined
  /** Longest answer that every model of the chain can write, in tokens. */
  readonly longestAnswer: number
  /** Bound of answers whose longest one is too expensive, in tokens. Default of the gateway: 16,384. */
  readonly defaultBound: number
  /** Cost of a call whose answers have this many tokens, in nano-dollars. It grows with the tokens. */
  costOf(tokens: number): bigint
}

/** A chosen bound, or the cost of the shortest useful answer if the free money does not pay for it. */
export type OutputBoundChoice =
  | { readonly tokens: number; readonly amount: bigint }
  | { readonly neededNanoDollars: bigint }

/**
 * Chooses the bound of a call that sets none: the longest answer if it costs at most 2 % of the free money; else `defaultBound`
 * if it costs at most half of it; else the number of tokens that half pays for. If that is below 256, the whole balance may
 * be spent on 256 tokens.
 */
function chooseOutputBound(facts: OutputBoundFacts): OutputBoundChoice {
  const { freeMoney, longestAnswer, costOf } = facts
  const usual = Math.min(longestAnswer, facts.defaultBound)
  const longest = { tokens: longestAnswer, amount: costOf(longestAnswer) }
  if (freeMoney === undefined || longest.amount * FREE_MONEY_DIVISOR <= freeMoney) return longest
  const budget = freeMoney / SHARE_DIVISOR
  const fewest = Math.min(MIN_CHOSEN_TOKENS, usual)
  let best = { tokens: fewest, amount: costOf(fewest) }
  if (best.amount > freeMoney) return { neededNanoDollars: best.amount }
  let tooMany = usual + 1
  let tried = usual
  // The search begins with the default bound and halves the interval until it finds the longest answer within the budget.
  while (best.amount <= budget && tooMany - best.tokens > 1) {
    const amount = costOf(tried)
    if (amount <= budget) best = { tokens: tried, amount }
    else tooMany = tried
    tried = Math.floor((best.tokens + tooMany) / 2)
  }
  return best
}

/** Request whose output the gateway limits. */
export interface BoundedRequest {
  /** Maximum tokens of one answer. */
  readonly tokens: number
  readonly priced: PricedRequest
}

/** Request that sets no bound of its output, and the dependency of its price on the chosen bound. */
export interface UnboundedRequest {
  /** Returns the request with a bound. */
  bounded(tokens: number): BoundedRequest
  /** Bound that is tried first, and the condition under which the store reserves a longer answer. */
  readonly usual: BoundedRequest
  /** Longest answer, if it is longer than the usual bound. */
  readonly longest: BoundedRequest | undefined
  /** Chooses by free money; see {@link chooseOutputBound}. */
  choose(freeMoney: bigint | undefined): BoundedRequest | { readonly neededNanoDollars: bigint }
}

/** Returns the possible bounds of a request; `undefined` if it sets its own bound, accepts none, or costs nothing. */
export function unboundedRequest(
  context: PipelineContext,
  parsed: Parsed,
  priced: PricedRequest,
): UnboundedRequest | undefined {
  if (assumedOutputTokens(context, parsed, priced.chain[0]!) === undefined) return undefined
  const { defaultMaxOutputTokens: defaultBound } = context.outputBounds
  const limits = priced.chain.map(({ limits: { maxOutputTokens } }) => maxOutputTokens ?? defaultBound)
  const bounded = (tokens: number): BoundedRequest => ({
    tokens,
    priced: pricedFor(priced, limits, { tokens, defaultBound }),
  })
  // A vendor rejects a bound above its model's longest answer, and any model of the chain may get it.
  const longestAnswer = Math.min(
    ...priced.chain.map((model, index) => roomFor(model, priced.estimates[index]!, limits[index]!)),
  )
  const tokens = Math.min(longestAnswer, defaultBound)
  const isPriced = limits.every((limit) => Math.min(limit, defaultBound) === tokens)
  const usual = isPriced ? { tokens, priced } : bounded(tokens)
  const longest = longestAnswer > usual.tokens ? bounded(longestAnswer) : undefined
  if ((longest ?? usual).priced.amount === 0n) return undefined
  return {
    bounded,
    usual,
    longest,
    choose(freeMoney) {
      const costOf = (tokens: number): bigint => bounded(tokens).priced.amount
      const choice = chooseOutputBound({ freeMoney, longestAnswer, defaultBound, costOf })
      return 'tokens' in choice ? bounded(choice.tokens) : choice
    },
  }
}

/**
 * Returns the tokens of an answer that fit into the context window. Many vendors reject a prompt and a bound that exceed it
 * together. The estimate of a prompt is an upper one, so a short answer is always allowed.
 */
function roomFor({ limits: { contextTokens } }: CatalogModel, { inputTokens = 0 }: Usage, longest: number): number {
  if (contextTokens === undefined) return longest
  return Math.min(longest, Math.max(contextTokens - inputTokens, SHORT_ANSWER_TOKENS))
}

const SHORT_ANSWER_TOKENS = 4_096

/** Returns the amounts by which the store chooses between the usual bound and the longest answer. */
function boundedAmounts({ usual, longest }: UnboundedRequest): Pick<Reservation, 'amount' | 'requiredFree' | 'larger'> {
  const { amount } = usual.priced
  const requiredFree = lesserOf(amount * SHARE_DIVISOR, MAX_AMOUNT)
  if (longest === undefined) return { amount, requiredFree }
  const larger = longest.priced.amount
  return {
    amount,
    requiredFree,
    larger: { amount: larger, requiredFree: lesserOf(larger * FREE_MONEY_DIVISOR, MAX_AMOUNT) },
  }
}

/** Returns the request with the bound in its body, its bytes and its estimate. */
export function outputFit(admitted: Admitted, { tokens, priced }: BoundedRequest): OutputFit {
  // Charges of hooks are priced in addition to the call of the vendor.
  const { hookUnits: _hookUnits, ...estimate } = priced.estimates[0] ?? admitted.estimate
  return { ...withOutputBound(admitted, tokens), estimate, outputTokens: tokens }
}

/** Prices answers of this many tokens at the most expensive model of the chain. */
function pricedFor(
  priced: PricedRequest,
  limits: readonly number[],
  { tokens, defaultBound }: { readonly tokens: number; readonly defaultBound: number },
): PricedRequest {
  let amount = 0n
  const estimates: Usage[] = []
  for (const [index, rate] of priced.rates.entries()) {
    const estimate = priced.estimates[index]!
    // A request may ask for several answers, and each has the bound.
    const answers = (estimate.outputTokens ?? 0) / Math.min(limits[index]!, defaultBound)
    const bounded = { ...estimate, outputTokens: Math.round(answers * tokens) }
    const cost = highestCharge(rate, bounded) ?? priced.amount
    if (cost > amount) amount = cost
    estimates.push(bounded)
  }
  return { ...priced, amount, estimates }
}
