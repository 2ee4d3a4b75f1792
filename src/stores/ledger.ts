import type { MaybePromise } from '../core/maybe-promise.ts'
import type { UsageDraft } from '../usage/usage-record.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from './idempotency-store.ts'
import type { SpendingCap, Tier } from './principal.ts'
import type { TaskRecord } from './task-store.ts'

/** An account to make. */
export interface NewAccount {
  readonly id: string
  /** Default `paid`. */
  readonly tier?: Tier | undefined
  readonly spendingCap?: SpendingCap | undefined
}

/** What may be changed about an account; absent fields stay. `null` takes the cap away. */
export interface AccountChange {
  readonly tier?: Tier | undefined
  readonly spendingCap?: SpendingCap | null | undefined
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
  readonly tier: Tier
  /** Undefined: no cap. */
  readonly spendingCap: SpendingCap | undefined
  /** Unix milliseconds. */
  readonly createdAtMs: number
}

/** A bound on what is spent in a period, such as a key's 50 dollars a month. */
export interface SpendingLimit {
  /** Names the counter: whose money and which period, such as `key:key_1:2026-11`. */
  readonly counter: string
  /** Most that the counter may reach, in nano-dollars: charged and held money of the period together. */
  readonly limit: bigint
  /** Unix milliseconds after which the counter may be purged. */
  readonly expiresAtMs: number
}

/** A hold to place before a request is sent to a vendor. */
export interface Reservation {
  /** Unique; reserving the same id again is a no-op that gives the first outcome. */
  readonly holdId: string
  readonly accountId: string
  readonly keyId: string
  /** Nano-dollars; zero is allowed and always succeeds for a known account. */
  readonly amount: bigint
  /** Unix milliseconds after which the sweeper may expire the hold. */
  readonly expiresAtMs: number
  /** Claimed in the same transaction when given. */
  readonly claim?: IdempotencyClaim | undefined
  /** Checked and counted in the same transaction. The hold counts at once; settling corrects it to what was charged. */
  readonly spendingLimits?: readonly SpendingLimit[] | undefined
  /** A task whose price this is; written down in the same transaction when the money is held. */
  readonly task?: TaskRecord | undefined
}

/** Outcome of a reservation. All but `held` leave the balance as it was. `in_arrears`: the account owes money. */
export type ReserveResult =
  | { readonly status: 'held' }
  | { readonly status: 'in_arrears' }
  | { readonly status: 'insufficient_balance' }
  | { readonly status: 'unknown_account' }
  | { readonly status: 'spending_limit'; readonly counter: string }
  | Exclude<ClaimResult, { status: 'claimed' }>

/** How a hold ends with a charge. */
export interface Settlement {
  readonly holdId: string
  /** Nano-dollars; may be above the hold, then the balance pays what it has and the account owes the rest. */
  readonly amount: bigint
  /** What was charged for, kept in the journal: `chat gp-5.4`. */
  readonly description: string
  /** Completes the reservation's claim in the same transaction; when absent, the claim is freed in it. */
  readonly answer?: StoredAnswer | undefined
  /** Written in the same transaction, with what was charged; nothing is written when the hold had ended before. */
  readonly record?: UsageDraft | undefined
}

/** Outcome of settling or voiding. `resolved` is false when nothing was changed. */
export interface Resolution {
  readonly resolved: boolean
  /** Charged by this call, nano-dollars. */
  readonly charged: bigint
  /** What the balance lacked, nano-dollars: the account owes it from now on. */
  readonly shortfall: bigint
  /** How the hold had ended before, when nothing was changed; undefined: the ledger does not know the hold, or not any more. */
  readonly endedBy?: 'settled' | 'voided' | 'expired' | undefined
  /** The database's refusal of the record; the charge was made without it. Absent: it was written, or none was given. */
  readonly recordFault?: unknown
}

/**
 * One line of the append-only journal. The sums over an account's entries hold at all times: of `amount` it is
 * `balance + held`, of `owed` it is what the account owes.
 */
export interface LedgerEntry {
  readonly id: string
  readonly accountId: string
  /**
   * `owed`: a charge was above the balance, and the account owes the rest. `repayment`: owed money was taken from the balance.
   * `shortfall`: of earlier versions, which waived what the balance lacked.
   */
  readonly kind: 'credit' | 'charge' | 'owed' | 'repayment' | 'shortfall'
  /** Change of the balance and the held money together, nano-dollars: below zero for charges and repayments. */
  readonly amount: bigint
  /** Change of what the account owes, nano-dollars: below zero for repayments. */
  readonly owed: bigint
  readonly holdId: string | undefined
  readonly description: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
}

/** Prepaid balances and holds. Every method is atomic. Each hold ends exactly once: settled, voided or expired. */
export interface Ledger {
  /** Makes an account if it does not exist; gives it as it is either way. */
  createAccount(account: NewAccount, nowMs: number): MaybePromise<Account>
  /** Changes tier or cap; gives the account as it is then, undefined when there is none. */
  updateAccount(accountId: string, change: AccountChange): MaybePromise<Account | undefined>
  account(accountId: string): MaybePromise<Account | undefined>
  /**
   * Adds money; what the account owes is paid from it first. Idempotent by `creditId`; false when that id was credited before.
   * @throws RangeError for a negative or zero amount, an unknown account, or a `creditId` that was credited to another account.
   */
  credit(
    credit: {
      readonly creditId: string
      readonly accountId: string
      readonly amount: bigint
      readonly description: string
    },
    nowMs: number,
  ): MaybePromise<boolean>
  reserve(reservation: Reservation, nowMs: number): MaybePromise<ReserveResult>
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
