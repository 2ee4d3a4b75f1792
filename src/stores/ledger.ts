import type { MaybePromise } from '../core/maybe-promise.ts'
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

/** Outcome of a reservation. All but `held` leave the balance as it was. */
export type ReserveResult =
  | { readonly status: 'held' }
  | { readonly status: 'insufficient_balance' }
  | { readonly status: 'unknown_account' }
  | { readonly status: 'spending_limit'; readonly counter: string }
  | Exclude<ClaimResult, { status: 'claimed' }>

/** How a hold ends with a charge. */
export interface Settlement {
  readonly holdId: string
  /** Nano-dollars; may be above the hold, then the balance pays what it has and the rest is a shortfall. */
  readonly amount: bigint
  /** What was charged for, kept in the journal: `chat gp-5.4`. */
  readonly description: string
  /** Completes the reservation's claim in the same transaction; when absent, the claim is freed in it. */
  readonly answer?: StoredAnswer | undefined
}

/** Outcome of settling or voiding. `resolved` is false when the hold had ended before; nothing was changed then. */
export interface Resolution {
  readonly resolved: boolean
  /** Charged by this call, nano-dollars. */
  readonly charged: bigint
  /** What the balance lacked, nano-dollars. */
  readonly shortfall: bigint
}

/** One line of the append-only journal. The sum of `amount` over an account's entries equals `balance + held` at all times. */
export interface LedgerEntry {
  readonly id: string
  readonly accountId: string
  readonly kind: 'credit' | 'charge' | 'shortfall'
  /** Nano-dollars; positive for credits, negative for charges, zero for shortfalls (whose size is in `description`). */
  readonly amount: bigint
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
   * Adds money. Idempotent by `creditId`; false when that id was credited before.
   * @throws RangeError for a negative or zero amount or an unknown account.
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
  settle(settlement: Settlement, nowMs: number): MaybePromise<Resolution>
  /** Ends a hold without a charge and frees its idempotency key. */
  void(holdId: string, nowMs: number): MaybePromise<Resolution>
  /** Voids holds whose time is over, at most `limit`; gives their number. Safe to run in several processes. */
  expire(nowMs: number, limit: number): MaybePromise<number>
  /** Journal lines of an account, newest first. */
  entries(accountId: string, limit: number): MaybePromise<readonly LedgerEntry[]>
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
