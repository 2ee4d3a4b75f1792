import type { MemberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { UsageDraft } from '../usage/usage-record.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from './idempotency-store.ts'
import type { ChargeDetails, Journal, LedgerEntry } from './journal.ts'
import type { BillingMode, SpendingCap, Tier } from './principal.ts'
import type { Resolution } from './resolution.ts'
import type { SpendingThresholds } from './spending.ts'
import type { TaskRecord } from './task-store.ts'

/**
 * How long a store knows the end of a hold after its deadline, in milliseconds: 24 hours. A settlement that is repeated within that time gets
 * the outcome of the first one.
 */
export const HOLD_RETENTION_MS = 24 * 60 * 60 * 1000

/** How long a store knows a refused reservation after its deadline, in milliseconds: 1 hour, because callers without money can cause many. */
export const REFUSAL_RETENTION_MS = 60 * 60 * 1000

/** An account to make. */
export interface NewAccount {
  /** Unique in the store, chosen by the host: `acct_acme`. */
  readonly id: string
  /** Default `paid`. */
  readonly tier?: Tier | undefined
  /** Most that it may spend in a day or month; none when absent. */
  readonly spendingCap?: SpendingCap | undefined
  /** Name for operators; none when absent. */
  readonly name?: string | undefined
  /** Name of a plan of `createGateway`; the gateway's own limits when absent. */
  readonly plan?: string | undefined
  /** When the account pays; as the gateway says when absent. */
  readonly billing?: BillingMode | undefined
  /** Most that the account may owe while it is metered, nano-dollars; unlimited when absent. */
  readonly creditLimit?: bigint | undefined
}

export const NEW_ACCOUNT_MEMBERS = {
  id: true,
  tier: true,
  spendingCap: true,
  name: true,
  plan: true,
  billing: true,
  creditLimit: true,
} satisfies MemberNames<NewAccount>

/** Why and since when an account is frozen. */
export interface AccountFreeze {
  /** For operators; callers do not read it. */
  readonly reason: string
  /** Unix milliseconds. */
  readonly atMs: number
}

/** What may be changed about an account; absent fields stay. `null` takes a value away. */
export interface AccountChange {
  /** How long stored conversations are kept. */
  readonly tier?: Tier | undefined
  /** Most that it may spend in a day or month. A new cap counts what the period has spent already. */
  readonly spendingCap?: SpendingCap | null | undefined
  readonly name?: string | null | undefined
  /** Name of a plan of `createGateway`. */
  readonly plan?: string | null | undefined
  /** When it pays. */
  readonly billing?: BillingMode | null | undefined
  /** Most that it may owe while it is metered, nano-dollars. */
  readonly creditLimit?: bigint | null | undefined
  /** `null` unfreezes it. */
  readonly frozen?: AccountFreeze | null | undefined
}

/** Money to add to an account. */
export interface Credit {
  /** Makes it idempotent: each id is credited once in the whole store. */
  readonly creditId: string
  readonly accountId: string
  /** Nano-dollars, above zero. */
  readonly amount: bigint
  /** Kept in the journal. */
  readonly description: string
  /**
   * Unix milliseconds from which it cannot be spent any more; absent: never. Of several credits the one that expires first is
   * spent first. Calls that were reserved before are paid from it still, where
   * they held money: those of metered accounts hold none.
   */
  readonly expiresAtMs?: number | undefined
}

/** Which accounts to give, in the order of their ids' UTF-8 bytes. */
export interface AccountsQuery {
  /** Only ids that contain it, upper and lower case being different; absent: all. */
  readonly search?: string | undefined
  /** Only ids behind this one. */
  readonly after?: string | undefined
  /** Most accounts. */
  readonly limit: number
}

/** An account: who pays. Amounts in nano-dollars. */
export interface Account {
  readonly id: string
  /** Money not held by requests under way. Never negative. */
  readonly balance: bigint
  /** Money held by requests under way. Never negative. */
  readonly held: bigint
  /** What was used beyond the balance and is not paid yet. Never negative; while it is above zero, `balance` is zero. */
  readonly owed: bigint
  /** Held on credit by requests under way, of a metered account. Never negative, and no part of `held`. */
  readonly creditHeld: bigint
  /** How long stored conversations are kept. */
  readonly tier: Tier
  /** Undefined: no cap. */
  readonly spendingCap: SpendingCap | undefined
  /** For operators. Undefined: none. */
  readonly name: string | undefined
  /** Undefined: none, the limits are the gateway's own. */
  readonly plan: string | undefined
  /** Undefined: as the gateway says. */
  readonly billing: BillingMode | undefined
  /** Most that it may owe while it is metered, nano-dollars. Undefined: no limit. */
  readonly creditLimit: bigint | undefined
  /** Undefined: not frozen. */
  readonly frozen: AccountFreeze | undefined
  /** Unix milliseconds. */
  readonly createdAtMs: number
}

/** A hold to place before a request is sent to a vendor. */
export interface Reservation {
  /** Unique; reserving the same id again is a no-op that gives the first outcome. */
  readonly holdId: string
  /** The account that pays. */
  readonly accountId: string
  /** The key whose cap counts the call. */
  readonly keyId: string
  /** Nano-dollars; zero is allowed and always succeeds for a known account. */
  readonly amount: bigint
  /**
   * Free money that the hold requires, in nano-dollars, at least `amount`: the least of the balance (or the rest of a credit limit)
   * and the rest of every cap. Default: `amount`.
   */
  readonly requiredFree?: bigint | undefined
  /** A larger hold, placed instead of `amount` if the free money that it requires is there. */
  readonly larger?: { readonly amount: bigint; readonly requiredFree: bigint } | undefined
  /** Unix milliseconds after which the sweeper may expire the hold. */
  readonly expiresAtMs: number
  /** Claimed in the same transaction when given. */
  readonly claim?: IdempotencyClaim | undefined
  /** When an account pays that does not say so itself; `prepaid` when absent. */
  readonly billing?: BillingMode | undefined
  /**
   * Caps of the caller in addition to those that account and key have in the store. All are checked in the same transaction,
   * by all that account and key have spent. The hold counts at once; settling corrects it to what was charged.
   */
  readonly caps?: { readonly account?: SpendingCap | undefined; readonly key?: SpendingCap | undefined } | undefined
  /** A task whose price this is; written down in the same transaction when the money is held. */
  readonly task?: TaskRecord | undefined
}

/** Money is held. */
export interface HeldResult {
  readonly status: 'held'
  /** `true` if the larger amount of the reservation is held; otherwise absent. */
  readonly isLarger?: true
}

/**
 * Outcome of a reservation. All but `held` leave the balance as it was. `in_arrears`: the account is prepaid and owes money.
 * `credit_limit`: the account is metered, and would owe too much. `counter` names the cap: `key:key_1:2026-11`.
 */
export type ReserveResult =
  | HeldResult
  | { readonly status: 'account_frozen' }
  | { readonly status: 'in_arrears' }
  | { readonly status: 'credit_limit' }
  | { readonly status: 'insufficient_balance' }
  | { readonly status: 'unknown_account' }
  | { readonly status: 'spending_limit'; readonly counter: string }
  | Exclude<ClaimResult, { status: 'claimed' }>

/** Outcome of adding to a hold. All but `held` change nothing. */
export type EnlargeStatus =
  | 'held'
  | 'not_held'
  | 'account_frozen'
  | 'in_arrears'
  | 'credit_limit'
  | 'insufficient_balance'
  | 'spending_limit'

/** How a hold ends with a charge. */
export interface Settlement {
  /** Id of the reservation. */
  readonly holdId: string
  /** Nano-dollars; may be above the hold, then the balance pays what it has and the account owes the rest. */
  readonly amount: bigint
  /** What was charged for, kept in the journal: `chat gp-5.4`. */
  readonly description: string
  /** Kept in the journal's line. */
  readonly details?: ChargeDetails | undefined
  /** Completes the reservation's claim in the same transaction; when absent, the claim is freed in it. */
  readonly answer?: StoredAnswer | undefined
  /** Shares of caps, balance and credit limit that are told when the charge passes them; none when absent. */
  readonly thresholds?: SpendingThresholds | undefined
  /** Written in the same transaction, with what was charged; nothing is written when the hold had ended before. */
  readonly record?: UsageDraft | undefined
}

/** Balances and holds. Every method is atomic. Each hold ends exactly once: settled, voided or expired. */
export interface Ledger extends Journal {
  /** Makes an account if it does not exist; gives it as it is either way. */
  createAccount(account: NewAccount, nowMs: number): MaybePromise<Account>
  /** Changes an account; gives it as it is then, undefined when there is none. */
  updateAccount(accountId: string, change: AccountChange): MaybePromise<Account | undefined>
  /** An account by its id; undefined when there is none. */
  account(accountId: string): MaybePromise<Account | undefined>
  /** A page of accounts, in the order of the query. */
  listAccounts(query: AccountsQuery): MaybePromise<readonly Account[]>
  /**
   * Adds money; what the account owes is paid from it first. Idempotent by `creditId`; false when that id was credited before.
   * @throws RangeError for a negative or zero amount, an unknown account, or a `creditId` that was credited to another account.
   */
  credit(credit: Credit, nowMs: number): MaybePromise<boolean>
  /** A frozen account comes first, then a key that is taken, so that an answer is replayed on an empty balance too. */
  reserve(reservation: Reservation, nowMs: number): MaybePromise<ReserveResult>
  /**
   * Adds an amount to an open hold, under the rules of a reservation. Returns `held`, or why nothing was added: `not_held` if the hold
   * has ended or is unknown.
   */
  enlarge(holdId: string, amount: bigint, nowMs: number): MaybePromise<EnlargeStatus>
  /**
   * Ends a hold with a charge. A hold that has expired is charged too, against the balance, once: the work was done. Then no
   * answer is stored, because the Idempotency-Key may belong to another request by now.
   */
  settle(settlement: Settlement, nowMs: number): MaybePromise<Resolution>
  /** Ends a hold without a charge and frees its idempotency key. */
  void(holdId: string, nowMs: number): MaybePromise<Resolution>
  /**
   * Ends holds whose time is over, at most `limit`; gives their number. Safe to run in several processes: a driver that
   * processes share measures the time by a clock that they share, whatever `nowMs` says.
   */
  expire(nowMs: number, limit: number): MaybePromise<number>
  /** Journal lines of an account, newest first. */
  entries(accountId: string, limit: number): MaybePromise<readonly LedgerEntry[]>
}

/** The smaller of two amounts. */
export function lesserOf(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

/**
 * Returns the reservation to place: with its larger amount if `judge` finds the free money for that, else as it is.
 * @param judge Returns the outcome of a reservation and changes nothing.
 */
export function largestReservation(
  reservation: Reservation,
  judge: (tried: Reservation) => ReserveResult,
): Reservation {
  const { larger, ...rest } = reservation
  if (larger === undefined) return reservation
  const tried = { ...rest, ...larger }
  return judge(tried).status === 'held' ? tried : rest
}

/** Result of a held amount, for the reservation that asked for it. */
export function heldResult({ larger }: Reservation, amount: bigint): HeldResult {
  return larger?.amount === amount ? HELD_LARGER : HELD
}

const HELD: HeldResult = { status: 'held' }
const HELD_LARGER: HeldResult = { status: 'held', isLarger: true }

/** What the journal says of a repayment. */
export const REPAYMENT = 'payment of what was owed'

/**
 * Refuses a credit whose id belongs to another account: a payment must not vanish.
 * @throws RangeError naming the credit and the account that has it.
 */
export function assertCreditOf(accountId: string, credit: { readonly id: string; readonly accountId: string }): void {
  if (credit.accountId === accountId) return
  const [id, owner] = [JSON.stringify(credit.id), JSON.stringify(credit.accountId)]
  throw new RangeError(`the credit ${id} was given to the account ${owner} before`)
}

/**
 * Refuses money that an account has no room for.
 * @throws RangeError
 */
export function assertRoom({ balance, held }: Pick<Account, 'balance' | 'held'>, amount: bigint): void {
  if (balance + held + amount > MAX_AMOUNT)
    throw new RangeError('the account cannot hold more than 2^63 - 1 nano-dollars')
}

/**
 * Refuses a debt that no store can keep.
 * @throws RangeError
 */
export function assertOwable({ owed }: Pick<Account, 'owed'>, amount: bigint): void {
  if (owed + amount > MAX_AMOUNT) throw new RangeError('the account cannot owe more than 2^63 - 1 nano-dollars')
}

/** Largest amount that every store can keep, in nano-dollars: 2^63 − 1, about 9.2 billion dollars. */
export const MAX_AMOUNT = 2n ** 63n - 1n

/**
 * Refuses what cannot be an amount of money in a store.
 * @throws RangeError when it is no bigint, below zero, or above {@link MAX_AMOUNT}.
 */
export function assertAmount(amount: bigint): void {
  if (typeof amount !== 'bigint') throw new RangeError('an amount must be a bigint of nano-dollars')
  if (amount < 0n) throw new RangeError('an amount must not be below zero')
  if (amount > MAX_AMOUNT) throw new RangeError('an amount must not be above 2^63 - 1 nano-dollars')
}

/**
 * A store gives the same outcome to the same id of a hold, so a request that reserves again does it by another id: `fitted` to what the
 * balance pays, or for `both` answers where a second one may be asked for.
 */
const FURTHER_HOLD = /_(?:fitted\d*|both)$/

/** The id of a further hold of a request. */
export function furtherHoldId(requestId: string, purpose: `fitted${number | ''}` | 'both'): string {
  return `${requestId}_${purpose}`
}

/** The request that a hold was made for. */
export function requestOfHold(holdId: string): string {
  return holdId.replace(FURTHER_HOLD, '')
}
