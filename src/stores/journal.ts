import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { BillingMode } from './principal.ts'
import type { StoredSpending } from './spending.ts'

/** What a charge was for. */
export interface ChargeDetails {
  /** The caller's key. */
  readonly keyId: string
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model that answered. */
  readonly model: string
  /** Id of the vendor that answered; `cache` for a hit of the response cache. */
  readonly vendor: string
  /** Units by meter that the charge was computed from. */
  readonly usage: Usage
}

/** Kinds of journal lines; see {@link LedgerEntry}. */
export const ENTRY_KINDS = [
  'credit',
  'charge',
  'owed',
  'repayment',
  'refund',
  'adjustment',
  'expiry',
  'shortfall',
] as const

/** A kind of journal line. */
export type EntryKind = (typeof ENTRY_KINDS)[number]

/**
 * One line of the append-only journal. The sums over an account's entries hold at all times: of `amount` it is
 * `balance + held`, of `owed` it is what the account owes. The times of an account's lines never go back.
 */
export interface LedgerEntry {
  /** Unique in the store. Orders lines of the same time. */
  readonly id: string
  readonly accountId: string
  /**
   * `owed`: a charge was above the balance, and the account owes the rest. `repayment`: owed money was taken from the balance.
   * `refund`: money of a charge given back. `adjustment`: a correction by hand. `expiry`: the rest of a credit that has
   * expired. `shortfall`: of earlier versions, which waived what the balance lacked.
   */
  readonly kind: EntryKind
  /** Change of the balance and the held money together, nano-dollars: below zero for charges, repayments and expiries. */
  readonly amount: bigint
  /** Change of what the account owes, nano-dollars: below zero for repayments, above it for debits of metered accounts. */
  readonly owed: bigint
  /** Id of the hold that caused it; undefined where no call did. */
  readonly holdId: string | undefined
  /** What it was for, as its writer said. */
  readonly description: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Of a charge: what it cost, in nano-dollars, the part that is owed included. */
  readonly due?: bigint | undefined
  /** Balance and held money together after this line, nano-dollars; absent where a line of an earlier version lacks it. */
  readonly balanceAfter?: bigint | undefined
  /** Of a charge: what it was for. */
  readonly details?: ChargeDetails | undefined
  /** Id of the credit, the adjustment or the refund; of an expiry the id of the credit. */
  readonly operationId?: string | undefined
  /** Of a refund: the id of the line of its charge. */
  readonly chargeId?: string | undefined
}

/** A correction by hand. */
export interface Adjustment {
  /** Makes it idempotent, among the adjustments. */
  readonly adjustmentId: string
  readonly accountId: string
  /** Nano-dollars: above zero adds money, below zero takes it from the balance. Never zero. */
  readonly amount: bigint
  /** The reason, kept in the journal. */
  readonly description: string
  /** When an account pays that does not say so itself; `prepaid` when absent. */
  readonly billing?: BillingMode | undefined
}

/** `insufficient_balance`: the debit is above the balance of a prepaid account, and nothing was changed. `repeated`: it was made before. */
export type AdjustResult = 'adjusted' | 'repeated' | 'insufficient_balance'

/** Money of a charge to give back. */
export interface Refund {
  /** Makes it idempotent, among the refunds. */
  readonly refundId: string
  /** Id of the charge's journal line. */
  readonly chargeId: string
  /** Nano-dollars, above zero; undefined: what is left of the charge. */
  readonly amount: bigint | undefined
  /** The reason, kept in the journal. */
  readonly description: string
}

/**
 * Outcome of a refund. `repeated`: it was made before, with that amount. `above_charge`: only `left` nano-dollars of the charge
 * were not refunded yet, and nothing was changed; zero where all of it was.
 */
export type RefundResult =
  | { readonly status: 'refunded' | 'repeated'; readonly accountId: string; readonly amount: bigint }
  | { readonly status: 'above_charge'; readonly left: bigint }
  | { readonly status: 'unknown_charge' }

/** A place between two lines of an account's journal. */
export interface JournalPlace {
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Number of the line: orders those of one time. */
  readonly number: bigint
}

/** Which lines of an account to give. */
export interface JournalQuery {
  readonly accountId: string
  /** Unix milliseconds. */
  readonly fromMs: number
  /** The first moment after the range. */
  readonly untilMs: number
  /** `newest`: the newest line first. */
  readonly order: 'newest' | 'oldest'
  /** Only lines behind this place, in the order asked for. */
  readonly after: JournalPlace | undefined
  /** Most lines. */
  readonly limit: number
}

/** Sums of an account's lines of one kind. */
export interface JournalSum {
  readonly kind: EntryKind
  /** How many lines. */
  readonly lines: number
  /** Sum of `amount`, nano-dollars. */
  readonly amount: bigint
  /** Sum of `owed`, nano-dollars. */
  readonly owed: bigint
}

/** What an account had at the beginning of a range, and the sums of the lines in it. One consistent view. */
export interface JournalSums {
  /** Balance and held money together at the beginning. */
  readonly openingBalance: bigint
  /** What the account owed at the beginning, nano-dollars. */
  readonly openingOwed: bigint
  /** Kinds without lines are absent. */
  readonly sums: readonly JournalSum[]
}

/** Money held for a call in progress. */
export interface OpenHold {
  /** Id of the reservation. */
  readonly id: string
  /** The account whose money it is. */
  readonly accountId: string
  /** The key that the call came with. */
  readonly keyId: string
  /** Nano-dollars. */
  readonly amount: bigint
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it expires, unless a task of its own is still open. */
  readonly expiresAtMs: number
}

/** Which open holds to give: oldest first. */
export interface HoldsQuery {
  /** Undefined: of all accounts. */
  readonly accountId: string | undefined
  /** Only holds behind this one. */
  readonly after: Pick<OpenHold, 'createdAtMs' | 'id'> | undefined
  /** Most holds. */
  readonly limit: number
}

/** What an operator does with the money of accounts by hand. Every method is atomic, like those of the ledger it belongs to. */
export interface Journal {
  /**
   * Corrects a balance. What the account owes is paid from added money first. A debit of a prepaid account is at most its
   * balance; a metered one owes what its balance lacks, whatever its credit limit. Spending caps stay as they are.
   * @throws RangeError for an amount of zero or beyond 64 bits, an unknown account, or an id that was used for another
   *   account or amount.
   */
  adjust(adjustment: Adjustment, nowMs: number): MaybePromise<AdjustResult>
  /**
   * Gives money of a charge back: all refunds of a charge together are at most what it cost. What the account owes is paid from
   * it first, and the spending caps that the charge counts in get it back while their periods last.
   * @throws RangeError for an amount that is not above zero, or an id that was used for another charge or amount.
   */
  refund(refund: Refund, nowMs: number): MaybePromise<RefundResult>
  /** Lines of an account. A driver may have summed old ones up in one. */
  lines(query: JournalQuery): MaybePromise<readonly LedgerEntry[]>
  /** Sums of an account's lines by kind, and what it had before them. */
  sums(range: Pick<JournalQuery, 'accountId' | 'fromMs' | 'untilMs'>): MaybePromise<JournalSums>
  /** Holds that have not ended. */
  openHolds(query: HoldsQuery): MaybePromise<readonly OpenHold[]>
  /**
   * What an account and keys have spent, as caps count it: keys in the order of `keyIds`, zero for one that nothing was counted
   * for. Counts may be of a day that is over. Undefined for an unknown account.
   */
  spending(accountId: string, keyIds: readonly string[]): MaybePromise<StoredSpending | undefined>
  /**
   * Takes what is left of credits that have expired, of at most `limit` accounts; gives their number. What open holds from before
   * the expiry may still charge stays until they end; calls of metered accounts hold no balance, so nothing stays for them.
   */
  expireCredits(nowMs: number, limit: number): MaybePromise<number>
}

/** Number of a journal line, from its id; undefined where the id is none. */
export function entryNumber(id: string): bigint | undefined {
  const digits = /^(?:carried_forward_)?entry_(\d{1,18})$/.exec(id)?.[1]
  return digits === undefined ? undefined : BigInt(digits)
}

/** @throws RangeError for an amount that no adjustment can have. */
export function assertAdjustment(amount: bigint): void {
  if (amount === 0n) throw new RangeError('an adjustment must not be zero')
  const size = amount < 0n ? -amount : amount
  if (size >= 2n ** 63n) throw new RangeError('an adjustment must not be above 2^63 - 1 nano-dollars')
}

/** @throws RangeError for an amount that no refund can have. */
export function assertRefund(amount: bigint | undefined): void {
  if (amount !== undefined && amount <= 0n) throw new RangeError('a refund must be above zero')
}

/** The id of an adjustment or a refund was used for another one before. */
export class UsedIdError extends RangeError {}

/**
 * Refuses an id that was used for something else: a repeated call must be the same call.
 * @throws UsedIdError naming the id.
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
