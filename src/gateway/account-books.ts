import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { checkGivenMembers, checkMembers, type MemberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars, parseDollars, parseSignedDollars } from '../core/money.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { assertAdjustment, entryNumber, type JournalSum, type LedgerEntry, UsedIdError } from '../stores/journal.ts'
import { requestOfHold } from '../stores/ledger.ts'
import type { BillingMode } from '../stores/principal.ts'
import { administer, checkArgument, checkId, checkReason, noSuchAccount } from './administer.ts'
import { CSV_HEADER, csvLine } from './journal-csv.ts'
import { badCursor, checkPageSize, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** A correction of a balance by hand. */
export interface AdjustOptions {
  /** Decimal dollars: `"5"` adds money, `"-5"` takes it. */
  readonly amount: string
  /** Kept in the journal; one line of at most 500 characters. */
  readonly reason: string
  /** Makes it idempotent; a new one when absent. */
  readonly adjustmentId?: string | undefined
}

const ADJUST_OPTIONS = {
  amount: true,
  reason: true,
  adjustmentId: true,
} satisfies MemberNames<AdjustOptions>

/** Money of a charge to give back. */
export interface RefundOptions {
  /** Decimal dollars; what is left of the charge when absent. */
  readonly amount?: string | undefined
  /** Kept in the journal; one line of at most 500 characters. */
  readonly reason: string
  /** Makes it idempotent; a new one when absent. */
  readonly refundId?: string | undefined
}

const REFUND_OPTIONS = {
  amount: true,
  reason: true,
  refundId: true,
} satisfies MemberNames<RefundOptions>

/** What was refunded. */
export interface MadeRefund {
  /** False when a refund of that id was made before; nothing was changed then. */
  readonly isNew: boolean
  readonly accountId: string
  /** Nano-dollars. */
  readonly amount: bigint
}

/** A range of an account's journal. Unix milliseconds. */
export interface JournalRange {
  /** Default: the beginning. */
  readonly fromMs?: number | undefined
  /** The first moment after the range; default: none. */
  readonly untilMs?: number | undefined
}

const JOURNAL_RANGE_MEMBERS = {
  fromMs: true,
  untilMs: true,
} satisfies MemberNames<JournalRange>

/** A page of an account's journal. */
export interface JournalPageOptions extends JournalRange {
  /** Default `newest`. */
  readonly order?: 'newest' | 'oldest' | undefined
  /** `next` of the page before. */
  readonly cursor?: string | undefined
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined
}

const JOURNAL_PAGE_OPTIONS = {
  order: true,
  cursor: true,
  limit: true,
  fromMs: true,
  untilMs: true,
} satisfies MemberNames<JournalPageOptions>

/** Lines of a journal. */
export interface JournalPage {
  /** In the order asked for. */
  readonly entries: readonly LedgerEntry[]
  /** Undefined: there are no more. */
  readonly next: string | undefined
}

/** An account's month. Amounts in nano-dollars. Opening balance and sums together are the closing balance, exactly. */
export interface AccountStatement {
  readonly accountId: string
  /** UTC, `2026-11`. */
  readonly month: string
  /** Unix milliseconds. */
  readonly fromMs: number
  /** The first moment of the next month. */
  readonly untilMs: number
  /** Balance and held money together. */
  readonly openingBalance: bigint
  /** What the account owed at the beginning. */
  readonly openingOwed: bigint
  /** Lines of the month by kind; kinds without lines are absent. */
  readonly sums: readonly JournalSum[]
  /** Balance and held money together at the end; the next month opens with it. */
  readonly closingBalance: bigint
  /** What the account owed at the end. */
  readonly closingOwed: bigint
}

/** What was done with the money of accounts, and corrections of it. */
export interface AccountBooks {
  /**
   * Corrects a balance. What the account owes is paid from added money first. A metered account owes what its balance lacks for a
   * debit, whatever its credit limit.
   * @returns false when that `adjustmentId` was used for the same adjustment before.
   * @throws GatewayError `insufficient_balance` for a debit above the balance of a prepaid account, which changes nothing; `invalid_request` for a
   *   bad amount or reason, an unknown account, or an id that was used for another adjustment.
   */
  adjust(accountId: string, options: AdjustOptions): Promise<boolean>
  /**
   * Gives money of a charge back: all refunds of a charge together are at most what it cost, the owed part included. It pays
   * what the account owes first, and goes back to the spending caps that the charge counts in while their periods last.
   * @param chargeId `id` of the charge's line in the journal.
   * @throws GatewayError `invalid_request` for an unknown charge, an amount above what is left of it, a bad reason, or an id
   *   that was used for another refund.
   */
  refund(chargeId: string, options: RefundOptions): Promise<MadeRefund>
  /**
   * A page of what was done with the account's money, the newest line first.
   * @throws GatewayError `invalid_request` for an unknown account, a bad limit or cursor.
   */
  journal(accountId: string, options?: JournalPageOptions): Promise<JournalPage>
  /**
   * The journal as CSV (RFC 4180), oldest line first, in pieces of whole lines. Texts that a spreadsheet would run as formulas
   * get an apostrophe in front.
   * @throws GatewayError `invalid_request` for an unknown account.
   */
  journalCsv(accountId: string, range?: JournalRange): AsyncIterable<string>
  /**
   * Opening balance, sums by kind and closing balance of a month, in nano-dollars.
   * @param month UTC, `"2026-11"`.
   * @throws GatewayError `invalid_request` for an unknown account or a bad month.
   */
  statement(accountId: string, month: string): Promise<AccountStatement>
}

/** Farther than any time of a line, and exact in every store. */
const END_OF_TIME_MS = 8_640_000_000_000_000
const CSV_PAGE_SIZE = 1_000

/**
 * Makes the books of a store's accounts. `ready` resolves once the store can be used.
 * @param billing of accounts that do not say so themselves; prepaid when absent.
 */
export function accountBooksOf(
  store: GatewayStore,
  clock: Clock,
  ids: Ids,
  ready: () => Promise<void>,
  billing?: BillingMode,
): AccountBooks {
  const { ledger } = store

  async function journal(accountId: string, options: JournalPageOptions): Promise<JournalPage> {
    const { fromMs = 0, untilMs = END_OF_TIME_MS, order = 'newest', limit = 100 } = options
    checkPageSize(limit)
    checkRange(fromMs, untilMs)
    const after = entryPlace(options.cursor)
    if ((await ledger.account(accountId)) === undefined) throw noSuchAccount(accountId)
    const query = { accountId, fromMs, untilMs, order, after }
    const lines = await ledger.lines({ ...query, limit: limit + 1 })
    const { rows, next } = pageOf(lines, limit, partsOfPlace)
    return { entries: rows.map(ofRequest), next }
  }

  return {
    async adjust(accountId, options) {
      checkGivenMembers(options, ADJUST_OPTIONS, 'accounts.adjust')
      return administer(ready, async () => {
        const { amount, reason, adjustmentId = ids.next('adjustment') } = options
        const nanoDollars = checkArgument('amount', () => adjustmentOf(amount))
        checkReason(reason)
        checkId('adjustmentId', adjustmentId)
        const account = await ledger.account(accountId)
        if (account === undefined) throw noSuchAccount(accountId)
        const adjustment = { adjustmentId, accountId, amount: nanoDollars, description: reason, billing }
        const result = await named('adjustmentId', () => ledger.adjust(adjustment, clock.now()))
        if (result !== 'insufficient_balance') return result === 'adjusted'
        const message = `the balance of ${JSON.stringify(accountId)} is below the debit of $${formatDollars(-nanoDollars)}; nothing was changed`
        throw new GatewayError('insufficient_balance', { message, param: 'amount' })
      })
    },

    async refund(chargeId, options) {
      checkGivenMembers(options, REFUND_OPTIONS, 'accounts.refund')
      return administer(ready, async () => {
        const { amount, reason, refundId = ids.next('refund') } = options
        const nanoDollars = amount === undefined ? undefined : checkArgument('amount', () => refundOf(amount))
        checkReason(reason)
        checkId('refundId', refundId)
        const refund = { refundId, chargeId, amount: nanoDollars, description: reason }
        const result = await named('refundId', () => ledger.refund(refund, clock.now()))
        if (result.status === 'unknown_charge') {
          const message = `there is no charge ${JSON.stringify(chargeId)} in the journal`
          throw new GatewayError('invalid_request', { message, param: 'chargeId' })
        }
        if (result.status === 'above_charge') {
          const message = `only $${formatDollars(result.left)} of the charge can be refunded; nothing was changed`
          throw new GatewayError('invalid_request', { message, param: 'amount' })
        }
        return { isNew: result.status === 'refunded', accountId: result.accountId, amount: result.amount }
      })
    },

    async journal(accountId, options = {}) {
      checkMembers(options, JOURNAL_PAGE_OPTIONS, 'accounts.journal')
      return administer(ready, () => journal(accountId, options))
    },

    async *journalCsv(accountId, range = {}) {
      checkMembers(range, JOURNAL_RANGE_MEMBERS, 'accounts.journalCsv')
      let cursor: string | undefined
      let isFirst = true
      do {
        const options = { ...range, order: 'oldest', cursor, limit: CSV_PAGE_SIZE } as const
        const page = await administer(ready, () => journal(accountId, options))
        yield `${isFirst ? CSV_HEADER : ''}${page.entries.map(csvLine).join('')}`
        isFirst = false
        cursor = page.next
      } while (cursor !== undefined)
    },

    statement: (accountId, month) =>
      administer(ready, async () => {
        const range = monthOf(month)
        if ((await ledger.account(accountId)) === undefined) throw noSuchAccount(accountId)
        const { openingBalance, openingOwed, sums } = await ledger.sums({ accountId, ...range })
        const closingBalance = sums.reduce((sum, { amount }) => sum + amount, openingBalance)
        const closingOwed = sums.reduce((sum, { owed }) => sum + owed, openingOwed)
        return { accountId, month, ...range, openingBalance, openingOwed, sums, closingBalance, closingOwed }
      }),
  }
}

/** A line with the request of its hold, as records of usage name it. */
function ofRequest(entry: LedgerEntry): LedgerEntry {
  return entry.holdId === undefined ? entry : { ...entry, holdId: requestOfHold(entry.holdId) }
}

/**
 * First and last moment of a UTC month.
 * @throws GatewayError `invalid_request` for what is none.
 */
export function monthOf(month: string): { readonly fromMs: number; readonly untilMs: number } {
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? []
  if (year === undefined) {
    const message = `${JSON.stringify(month)} is not a month such as 2026-11`
    throw new GatewayError('invalid_request', { message, param: 'month' })
  }
  return { fromMs: Date.UTC(Number(year), Number(number) - 1), untilMs: Date.UTC(Number(year), Number(number)) }
}

/** @throws RangeError for what no adjustment can have. */
function adjustmentOf(amount: string): bigint {
  const nanoDollars = parseSignedDollars(amount)
  assertAdjustment(nanoDollars)
  return nanoDollars
}

/** @throws RangeError for what no refund can have. */
function refundOf(amount: string): bigint {
  const nanoDollars = parseDollars(amount)
  if (nanoDollars === 0n) throw new RangeError('a refund must be above zero')
  return nanoDollars
}

/** An id that was used before is told with its name, whatever else is refused as it comes. */
async function named<Value>(param: string, run: () => MaybePromise<Value>): Promise<Value> {
  try {
    return await run()
  } catch (cause) {
    if (!(cause instanceof UsedIdError)) throw cause
    throw new GatewayError('invalid_request', { message: cause.message, param, cause })
  }
}

function entryPlace(cursor: string | undefined) {
  const place = placeOf(cursor)
  if (place === undefined) return undefined
  const number = entryNumber(place.id)
  if (number === undefined) throw badCursor()
  return { createdAtMs: place.createdAtMs, number }
}

function checkRange(fromMs: number, untilMs: number): void {
  const isTime = (timeMs: number): boolean => timeMs >= 0 && timeMs <= END_OF_TIME_MS
  if (isTime(fromMs) && isTime(untilMs)) return
  const message = 'fromMs and untilMs must be times in Unix milliseconds'
  throw new GatewayError('invalid_request', { message, param: isTime(fromMs) ? 'untilMs' : 'fromMs' })
}
