import { memberNames } from '../core/known-members.ts'
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
  /** Id that is unique in the store, chosen by the host: `acct_acme`. */
  readonly id: string
  /** Tier. Default `paid`. */
  readonly tier?: Tier | undefined
  /** Maximum spending per day or month. Default unlimited. */
  readonly spendingCap?: SpendingCap | undefined
  /** Display name for operators. Default none. */
  readonly name?: string | undefined
  /** Name of a plan of `createGateway`. Defaults to the gateway's own limits. */
  readonly plan?: string | undefined
  /** Billing mode. Defaults to the gateway's mode. */
  readonly billing?: BillingMode | undefined
  /** Maximum debt while the account is metered, in nano-dollars. Default unlimited. */
  readonly creditLimit?: bigint | undefined
}

export const NEW_ACCOUNT_MEMBERS = memberNames<NewAccount>()('id tier spendingCap name plan billing creditLimit')

/** Reason and time of an account's freeze. */
export interface AccountFreeze {
  /** Reason for operators; callers do not see it. */
  readonly reason: string
  /** Unix milliseconds. */
  readonly atMs: number
}

/** Changes of an account. Omitted fields stay; `null` removes a value. */
export interface AccountChange {
  /** Tier, which determines how long stored conversations are kept. */
  readonly tier?: Tier | undefined
  /** Maximum spending per day or month. A new cap includes earlier spending of the period. */
  readonly spendingCap?: SpendingCap | null | undefined
  readonly name?: string | null | undefined
  /** Name of a plan of `createGateway`. */
  readonly plan?: string | null | undefined
  /** Billing mode. */
  readonly billing?: BillingMode | null | undefined
  /** Maximum debt while the account is metered, in nano-dollars. */
  readonly creditLimit?: bigint | null | undefined
  /** Freeze of the account; `null` unfreezes it. */
  readonly frozen?: AccountFreeze | null | undefined
}

/** Money to add to an account. */
export interface Credit {
  /** Id that makes it idempotent: each id is credited once in the whole store. */
  readonly creditId: string
  readonly accountId: string
  /** Amount in nano-dollars, above zero. */
  readonly amount: bigint
  /** Description for the journal. */
  readonly description: string
  /**
   * Time of expiry in Unix milliseconds. If omitted, the money never expires. If there are several credits, the one that expires
   * first is spent first. Earlier reservations can still use it if they held money; calls of metered accounts hold none.
   */
  readonly expiresAtMs?: number | undefined
}

/** Query for accounts, in the order of their ids' UTF-8 bytes. */
export interface AccountsQuery {
  /** Case-sensitive part of the ids. If omitted, all accounts are listed. */
  readonly search?: string | undefined
  /** Cursor: lists the ids after this one. */
  readonly after?: string | undefined
  /** Maximum number of accounts. */
  readonly limit: number
}

/** Account that pays. Amounts are in nano-dollars. */
export interface Account {
  readonly id: string
  /** Money that is not held by requests in flight. Never negative. */
  readonly balance: bigint
  /** Money held by requests in flight. Never negative. */
  readonly held: bigint
  /** Unpaid usage beyond the balance. Never negative; while it is above zero, `balance` is zero. */
  readonly owed: bigint
  /** Credit held by requests in flight of a metered account. Never negative, and not part of `held`. */
  readonly creditHeld: bigint
  /** Tier, which determines how long stored conversations are kept. */
  readonly tier: Tier
  /** Spending cap, or `undefined` for none. */
  readonly spendingCap: SpendingCap | undefined
  /** Display name for operators, if any. */
  readonly name: string | undefined
  /** Name of the plan, or `undefined` for the gateway's own limits. */
  readonly plan: string | undefined
  /** Billing mode, or `undefined` for the gateway's mode. */
  readonly billing: BillingMode | undefined
  /** Maximum debt while the account is metered, in nano-dollars, or `undefined` for no limit. */
  readonly creditLimit: bigint | undefined
  /** Freeze of the account, or `undefined` if it is not frozen. */
  readonly frozen: AccountFreeze | undefined
  /** Unix milliseconds. */
  readonly createdAtMs: number
}

/** Hold to place before a request is sent to a vendor. */
export interface Reservation {
  /** Unique id. Reserving the same id again changes nothing and returns the first outcome. */
  readonly holdId: string
  /** Account that pays. */
  readonly accountId: string
  /** Key whose cap counts the call. */
  readonly keyId: string
  /** Nano-dollars; zero is allowed and always succeeds for a known account. */
  readonly amount: bigint
  /**
   * Free money that the hold requires, in nano-dollars, at least `amount`: the least of the balance (or the rest of a credit
   * limit) and the rest of every cap. Default: `amount`.
   */
  readonly requiredFree?: bigint | undefined
  /** Larger hold, placed instead of `amount` if the free money that it requires is available. */
  readonly larger?: { readonly amount: bigint; readonly requiredFree: bigint } | undefined
  /** Unix milliseconds after which the sweeper may expire the hold. */
  readonly expiresAtMs: number
  /** Idempotency claim to make in the same transaction, if any. */
  readonly claim?: IdempotencyClaim | undefined
  /** Billing mode of accounts without their own. Default `prepaid`. */
  readonly billing?: BillingMode | undefined
  /**
   * Caps of the caller in addition to those of account and key in the store. All are checked in the same transaction against all
   * spending of account and key. The hold counts immediately; settling corrects it to the charge.
   */
  readonly caps?: { readonly account?: SpendingCap | undefined; readonly key?: SpendingCap | undefined } | undefined
  /** Task that the hold pays for. It is stored in the same transaction. */
  readonly task?: TaskRecord | undefined
}

/** Result of a placed hold. */
export interface HeldResult {
  readonly status: 'held'
  /** `true` if the larger amount of the reservation is held; otherwise omitted. */
  readonly isLarger?: true
}

/**
 * Outcome of a reservation. All except `held` leave the balance unchanged. `in_arrears`: the account is prepaid and owes money.
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

/** Outcome of adding to a hold. All except `held` change nothing. */
export type EnlargeStatus =
  | 'held'
  | 'not_held'
  | 'account_frozen'
  | 'in_arrears'
  | 'credit_limit'
  | 'insufficient_balance'
  | 'spending_limit'

/** Charge that ends a hold. */
export interface Settlement {
  /** Id of the reservation. */
  readonly holdId: string
  /** Nano-dollars. If the amount exceeds the hold, the balance pays what it can and the account owes the rest. */
  readonly amount: bigint
  /** Description for the journal: `chat gp-5.4`. */
  readonly description: string
  /** Details for the journal's line. */
  readonly details?: ChargeDetails | undefined
  /** Answer that completes the reservation's claim in the same transaction. If omitted, the claim is freed. */
  readonly answer?: StoredAnswer | undefined
  /** Thresholds of caps, balance and credit limit to report when the charge passes them. Default none. */
  readonly thresholds?: SpendingThresholds | undefined
  /** Record to write in the same transaction with the charge. Not written if the hold had ended before. */
  readonly record?: UsageDraft | undefined
  /**
   * Account and key of the hold, and its billing mode if the account has none. A store that loses reservations in a crash
   * charges the account if it does not know the hold. If omitted, an unknown hold is not charged.
   */
  readonly owner?: { readonly accountId: string; readonly keyId: string; readonly billing?: BillingMode | undefined }
}

/** Open transaction of the store's database, for statements of the host. */
export interface HostTransaction {
  /** Runs a statement, and returns its rows as objects by column name. */
  query(text: string, values?: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }>
}

/** Error of {@link Ledger.settleWith} if the hold had ended before. */
export class HoldEndedError extends Error {}

/** Returns the result of a settlement that has ended its hold. @throws HoldEndedError otherwise, to undo the transaction. */
export function endedNow(resolution: Resolution): Resolution {
  if (resolution.resolved) return resolution
  throw new HoldEndedError(`the hold had ended before: ${resolution.endedBy ?? 'unknown'}`)
}

/** Balances and holds. Every method is atomic. Each hold ends exactly once: settled, voided or expired. */
export interface Ledger extends Journal {
  /** Creates an account if it does not exist. Returns the existing or new account. */
  createAccount(account: NewAccount, nowMs: number): MaybePromise<Account>
  /** Changes an account and returns it, or undefined if there is none. */
  updateAccount(accountId: string, change: AccountChange): MaybePromise<Account | undefined>
  /** Returns an account by its id; undefined if there is none. */
  account(accountId: string): MaybePromise<Account | undefined>
  /** Returns a page of accounts, in the order of the query. */
  listAccounts(query: AccountsQuery): MaybePromise<readonly Account[]>
  /**
   * Adds money, which first pays the account's debt. Idempotent by `creditId`; returns false if that id was credited before.
   * @throws RangeError for a negative or zero amount, an unknown account, or a `creditId` that was credited to another account.
   */
  credit(credit: Credit, nowMs: number): MaybePromise<boolean>
  /** Places a hold. A freeze is checked first, then a claimed key, so that an answer is replayed even if the balance is empty. */
  reserve(reservation: Reservation, nowMs: number): MaybePromise<ReserveResult>
  /**
   * Adds an amount to an open hold, under the rules of a reservation. Returns `held`, or the reason for a rejection: `not_held`
   * if the hold has ended or is unknown.
   */
  enlarge(holdId: string, amount: bigint, nowMs: number): MaybePromise<EnlargeStatus>
  /**
   * Ends a hold with a charge. An expired hold is charged too, once, against the balance, because the work was done. No answer is
   * stored then, because the Idempotency-Key may belong to another request by now.
   */
  settle(settlement: Settlement, nowMs: number): MaybePromise<Resolution>
  /**
   * Runs the host's statements once, for a limited time, and then settles in the same transaction. Rejects with {@link HoldEndedError}
   * if nothing was settled. After any other error the transaction may have been committed if `run` had resolved: {@link void} returns
   * the truth. If omitted, the store has no transactions for hosts.
   */
  settleWith?(
    settlement: Settlement,
    run: (transaction: HostTransaction) => Promise<void>,
    nowMs: number,
  ): Promise<Resolution>
  /** Ends a hold without a charge and frees its idempotency key. */
  void(holdId: string, nowMs: number): MaybePromise<Resolution>
  /**
   * Ends up to `limit` expired holds and returns how many were ended. Safe in several processes: a driver shared by several
   * processes uses a common clock instead of `nowMs`.
   */
  expire(nowMs: number, limit: number): MaybePromise<number>
  /** Returns journal lines of an account, newest first. */
  entries(accountId: string, limit: number): MaybePromise<readonly LedgerEntry[]>
}

/** Returns the smaller of two amounts. */
export function lesserOf(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

/** Returns the result for a reservation whose hold has this amount. */
export function heldResult({ larger }: Reservation, amount: bigint): HeldResult {
  return larger?.amount === amount ? HELD_LARGER : HELD
}

const HELD: HeldResult = { status: 'held' }
const HELD_LARGER: HeldResult = { status: 'held', isLarger: true }

/** Description of a repayment in the journal. */
export const REPAYMENT = 'payment of what was owed'

/**
 * Rejects a credit whose id belongs to another account, because a payment must not be lost.
 * @throws RangeError with the credit and the account that has it.
 */
export function assertCreditOf(accountId: string, credit: { readonly id: string; readonly accountId: string }): void {
  if (credit.accountId === accountId) return
  const [id, owner] = [JSON.stringify(credit.id), JSON.stringify(credit.accountId)]
  throw new RangeError(`the credit ${id} was given to the account ${owner} before`)
}

/**
 * Rejects money that would exceed the maximum of an account.
 * @throws RangeError
 */
export function assertRoom({ balance, held }: Pick<Account, 'balance' | 'held'>, amount: bigint): void {
  if (balance + held + amount > MAX_AMOUNT)
    throw new RangeError('the account cannot hold more than 2^63 - 1 nano-dollars')
}

/**
 * Rejects a debt that exceeds the maximum of the stores.
 * @throws RangeError
 */
export function assertOwable({ owed }: Pick<Account, 'owed'>, amount: bigint): void {
  if (owed + amount > MAX_AMOUNT) throw new RangeError('the account cannot owe more than 2^63 - 1 nano-dollars')
}

/** Maximum amount of every store, in nano-dollars: 2^63 − 1, about 9.2 billion dollars. */
export const MAX_AMOUNT = 2n ** 63n - 1n

/**
 * Rejects an invalid amount of money.
 * @throws RangeError if it is not a bigint, below zero, or above {@link MAX_AMOUNT}.
 */
export function assertAmount(amount: bigint): void {
  if (typeof amount !== 'bigint') throw new RangeError('an amount must be a bigint of nano-dollars')
  if (amount < 0n) throw new RangeError('an amount must not be below zero')
  if (amount > MAX_AMOUNT) throw new RangeError('an amount must not be above 2^63 - 1 nano-dollars')
}

/** A store returns the same outcome for the same hold id, so a request that reserves again uses another id. */
const DERIVED_HOLD_SUFFIX = /_fitted\d*$/

/** Returns the id of another hold of a request. */
export function derivedHoldId(requestId: string, purpose: `fitted${number | ''}`): string {
  return `${requestId}_${purpose}`
}

/** Returns the request of a hold. */
export function requestOfHold(holdId: string): string {
  return holdId.replace(DERIVED_HOLD_SUFFIX, '')
}
