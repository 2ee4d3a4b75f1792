import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { BillingMode } from './principal.ts'
import type { StoredSpending } from './spending.ts'

/** Details of a charge. */
export interface ChargeDetails {
  /** Key of the caller. */
  readonly keyId: string
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model that answered. */
  readonly model: string
  /** Id of the vendor that answered; `cache` for a hit of the response cache. */
  readonly vendor: string
  /** Units by meter from which the charge was computed. */
  readonly usage: Usage
}

/** Kinds of journal lines; see {@link LedgerEntry}. */
export const ENTRY_KINDS = ['credit', 'charge', 'owed', 'repayment', 'refund', 'adjustment', 'expiry'] as const

/** A kind of journal line. */
export type EntryKind = (typeof ENTRY_KINDS)[number]

/**
 * Line of the append-only journal. The sums over an account's entries always hold: the sum of `amount` is `balance + held`, and
 * the sum of `owed` is the account's debt. The times of an account's lines never decrease.
 */
export interface LedgerEntry {
  /** Id that is unique in the store. Orders lines of the same time. */
  readonly id: string
  readonly accountId: string
  /**
   * `owed`: a charge was above the balance, and the account owes the rest. `repayment`: owed money was taken from the balance.
   * `refund`: money of a charge was returned. `adjustment`: a manual correction. `expiry`: the rest of a credit that has expired.
   */
  readonly kind: EntryKind
  /** Change of the balance and the held money together, in nano-dollars: negative for charges, repayments and expiries. */
  readonly amount: bigint
  /** Change of the debt in nano-dollars: negative for repayments, positive for debits of metered accounts. */
  readonly owed: bigint
  /** Id of the hold that caused it; undefined if no call did. */
  readonly holdId: string | undefined
  /** Description by its writer. */
  readonly description: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Cost of a charge in nano-dollars, including the part that is owed. */
  readonly due?: bigint | undefined
  /** Balance and held money after this line, in nano-dollars. */
  readonly balanceAfter: bigint
  /** Details of a charge. */
  readonly details?: ChargeDetails | undefined
  /** Id of the credit, the adjustment or the refund; for an expiry, the id of the credit. */
  readonly operationId?: string | undefined
  /** Id of the charge's line, for a refund. */
  readonly chargeId?: string | undefined
}

/** Manual correction. */
export interface Adjustment {
  /** Id that makes it idempotent among the adjustments. */
  readonly adjustmentId: string
  readonly accountId: string
  /** Nano-dollars: positive adds money, negative takes it from the balance. Never zero. */
  readonly amount: bigint
  /** Reason for the journal. */
  readonly description: string
  /** Billing mode of accounts without their own. Default `prepaid`. */
  readonly billing?: BillingMode | undefined
}

/** `insufficient_balance`: the debit exceeds a prepaid account's balance, and nothing was changed. `repeated`: done before. */
export type AdjustResult = 'adjusted' | 'repeated' | 'insufficient_balance'

/** Refund of a charge. */
export interface Refund {
  /** Id that makes it idempotent among the refunds. */
  readonly refundId: string
  /** Id of the charge's journal line. */
  readonly chargeId: string
  /** Nano-dollars, above zero, or `undefined` for the rest of the charge. */
  readonly amount: bigint | undefined
  /** Reason for the journal. */
  readonly description: string
}

/**
 * Outcome of a refund. `repeated`: it was done before, with that amount. `above_charge`: only `left` nano-dollars of the charge
 * were not refunded yet, and nothing was changed; zero if all of it was refunded.
 */
export type RefundResult =
  | { readonly status: 'refunded' | 'repeated'; readonly accountId: string; readonly amount: bigint }
  | { readonly status: 'above_charge'; readonly left: bigint }
  | { readonly status: 'unknown_charge' }

/** Position between two lines of an account's journal. */
export interface JournalPlace {
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Number of the line: orders lines of the same time. */
  readonly number: bigint
}

/** Query for lines of an account. */
export interface JournalQuery {
  readonly accountId: string
  /** Unix milliseconds. */
  readonly fromMs: number
  /** End of the range (exclusive). */
  readonly untilMs: number
  /** Order of the lines. `newest` lists the newest line first. */
  readonly order: 'newest' | 'oldest'
  /** Cursor: lists the lines after this place, in the requested order. */
  readonly after: JournalPlace | undefined
  /** Maximum number of lines. */
  readonly limit: number
}

/** Sums of an account's lines of one kind. */
export interface JournalSum {
  readonly kind: EntryKind
  /** Number of lines. */
  readonly lines: number
  /** Sum of `amount`, nano-dollars. */
  readonly amount: bigint
  /** Sum of `owed`, nano-dollars. */
  readonly owed: bigint
}

/** Opening state of an account for a range, and the sums of the lines in it. One consistent view. */
export interface JournalSums {
  /** Balance and held money at the beginning, in nano-dollars. */
  readonly openingBalance: bigint
  /** Debt at the beginning, in nano-dollars. */
  readonly openingOwed: bigint
  /** Sums by kind. Kinds without lines are omitted. */
  readonly sums: readonly JournalSum[]
}

/** Money reserved for a call in progress. */
export interface OpenHold {
  /** Id of the reservation. */
  readonly id: string
  /** Account whose money it is. */
  readonly accountId: string
  /** Key of the call. */
  readonly keyId: string
  /** Nano-dollars. */
  readonly amount: bigint
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it expires, unless its task is still open. */
  readonly expiresAtMs: number
}

/** Query for open holds, oldest first. */
export interface HoldsQuery {
  /** Account of the holds, or `undefined` for all accounts. */
  readonly accountId: string | undefined
  /** Cursor: lists the holds after this one. */
  readonly after: Pick<OpenHold, 'createdAtMs' | 'id'> | undefined
  /** Maximum number of holds. */
  readonly limit: number
}

/** Manual changes of accounts' money by an operator. Every method is atomic, like those of the ledger it belongs to. */
export interface Journal {
  /**
   * Corrects a balance. Added money first pays the account's debt. A debit of a prepaid account is limited to its balance; a
   * metered one owes the rest, whatever its credit limit. Spending caps are not changed.
   * @throws RangeError for an amount of zero or beyond 64 bits, an unknown account, or an id that was used for another account or
   *   amount.
   */
  adjust(adjustment: Adjustment, nowMs: number): MaybePromise<AdjustResult>
  /**
   * Refunds money of a charge: all refunds of a charge together are limited to its cost. The money first pays the account's debt,
   * and the spending caps of the charge are restored while their periods last.
   * @throws RangeError for an amount that is not above zero, or an id that was used for another charge or amount.
   */
  refund(refund: Refund, nowMs: number): MaybePromise<RefundResult>
  /** Returns lines of an account. A driver may have combined old ones into one. */
  lines(query: JournalQuery): MaybePromise<readonly LedgerEntry[]>
  /** Returns sums of an account's lines by kind, and its state before them. */
  sums(range: Pick<JournalQuery, 'accountId' | 'fromMs' | 'untilMs'>): MaybePromise<JournalSums>
  /** Returns holds that have not ended. */
  openHolds(query: HoldsQuery): MaybePromise<readonly OpenHold[]>
  /**
   * Returns the spending of an account and of keys, as counted by caps: keys in the order of `keyIds`, zero for a key without
   * spending. Counts may be of an earlier day. Undefined for an unknown account.
   */
  spending(accountId: string, keyIds: readonly string[]): MaybePromise<StoredSpending | undefined>
  /**
   * Removes the rest of expired credits of up to `limit` accounts and returns the number of accounts. Money that open holds from
   * before the expiry may still charge stays until they end; calls of metered accounts hold no balance, so nothing stays for them.
   */
  expireCredits(nowMs: number, limit: number): MaybePromise<number>
}

/** Returns the id of a journal line from its number. */
export function entryId(number: unknown): string {
  return `entry_${String(number)}`
}

/** Returns the number of a journal line from its id; undefined if the id is invalid. */
export function entryNumber(id: string): bigint | undefined {
  const digits = /^(?:carried_forward_)?entry_(\d{1,18})$/.exec(id)?.[1]
  return digits === undefined ? undefined : BigInt(digits)
}

/** @throws RangeError for an amount that is invalid for an adjustment. */
export function assertAdjustment(amount: bigint): void {
  if (amount === 0n) throw new RangeError('an adjustment must not be zero')
  const size = amount < 0n ? -amount : amount
  if (size >= 2n ** 63n) throw new RangeError('an adjustment must not be above 2^63 - 1 nano-dollars')
}

/** @throws RangeError for an amount that is invalid for a refund. */
export function assertRefund(amount: bigint | undefined): void {
  if (amount !== undefined && amount <= 0n) throw new RangeError('a refund must be above zero')
}

/** Thrown if the id of an adjustment or a refund was used for another one before. */
export class UsedIdError extends RangeError {}

/**
 * Rejects an id that was used for something else: a repeated call must be the same call.
 * @throws UsedIdError with the id.
 */
export function assertRepeated(kind: 'adjustment' | 'refund', id: string, isSame: boolean): void {
  if (!isSame) throw new UsedIdError(`the ${kind} id ${JSON.stringify(id)} was used for another ${kind} before`)
}

/** Sums lines by kind, in the order of {@link ENTRY_KINDS}. */
export function sumsOf(entries: readonly LedgerEntry[]): JournalSum[] {
  return ENTRY_KINDS.map((kind) => {
    const lines = entries.filter((entry) => entry.kind === kind)
    const amount = lines.reduce((sum, entry) => sum + entry.amount, 0n)
    const owed = lines.reduce((sum, entry) => sum + entry.owed, 0n)
    return { kind, lines: lines.length, amount, owed }
  }).filter(({ lines }) => lines > 0)
}
