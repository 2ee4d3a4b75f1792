import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Ids } from '../core/ids.ts'
import { checkGivenMembers, checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { formatDollars, parseDollars, parseSignedDollars } from '../core/money.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { assertAdjustment, entryNumber, type JournalSum, type LedgerEntry, UsedIdError } from '../stores/journal.ts'
import { requestOfHold } from '../stores/ledger.ts'
import type { BillingMode } from '../stores/principal.ts'
import { administer, checkArgument, checkId, checkReason, noSuchAccount } from './audit.ts'
import { badCursor, checkPageSize, type PageOptions, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** Manual correction of a balance. */
export interface AdjustOptions {
  /** Amount in decimal dollars: `"5"` adds money, `"-5"` removes it. */
  readonly amount: string
  /** Reason, stored in the journal; one line of at most 500 characters. */
  readonly reason: string
  /** Id that makes the adjustment idempotent. If omitted, a new id is generated. */
  readonly adjustmentId?: string | undefined
}

const ADJUST_OPTIONS = memberNames<AdjustOptions>()('amount reason adjustmentId')

/** Refund of a charge. */
export interface RefundOptions {
  /** Amount in decimal dollars. If omitted, the rest of the charge is refunded. */
  readonly amount?: string | undefined
  /** Reason, stored in the journal; one line of at most 500 characters. */
  readonly reason: string
  /** Id that makes the refund idempotent. If omitted, a new id is generated. */
  readonly refundId?: string | undefined
}

const REFUND_OPTIONS = memberNames<RefundOptions>()('amount reason refundId')

/** Refund that was made. */
export interface MadeRefund {
  /** Whether the refund is new. If false, a refund with this id existed and nothing was changed. */
  readonly isNew: boolean
  readonly accountId: string
  /** Amount in nano-dollars. */
  readonly amount: bigint
}

/** Range of an account's journal, in Unix milliseconds. */
export interface JournalRange {
  /** Start of the range. By default the beginning of the journal. */
  readonly fromMs?: number | undefined
  /** End of the range, exclusive. By default the range has no end. */
  readonly untilMs?: number | undefined
}

const JOURNAL_RANGE_MEMBERS = memberNames<JournalRange>()('fromMs untilMs')

/** Selects a page of an account's journal. */
export interface JournalPageOptions extends JournalRange, PageOptions {
  /** Order of the lines. Default `newest`. */
  readonly order?: 'newest' | 'oldest' | undefined
}

const JOURNAL_PAGE_OPTIONS = memberNames<JournalPageOptions>()('order cursor limit fromMs untilMs')

/** Lines of a journal. */
export interface JournalPage {
  /** Lines in the requested order. */
  readonly entries: readonly LedgerEntry[]
  /** Cursor of the next page, or `undefined` if there is none. */
  readonly next: string | undefined
}

/** Account's statement of a month, in nano-dollars. The opening balance plus the sums is exactly the closing balance. */
export interface AccountStatement {
  readonly accountId: string
  /** Month in UTC: `2026-11`. */
  readonly month: string
  /** Start of the month in Unix milliseconds. */
  readonly fromMs: number
  /** Start of the next month in Unix milliseconds. */
  readonly untilMs: number
  /** Balance plus held money at the beginning. */
  readonly openingBalance: bigint
  /** Amount that the account owed at the beginning. */
  readonly openingOwed: bigint
  /** Sums of the month's lines by kind. Kinds without lines are omitted. */
  readonly sums: readonly JournalSum[]
  /** Balance plus held money at the end, equal to the opening balance of the next month. */
  readonly closingBalance: bigint
  /** Amount that the account owed at the end. */
  readonly closingOwed: bigint
}

/** Journal, statements and corrections of accounts. */
export interface AccountBooks {
  /**
   * Corrects a balance. Added money first pays what the account owes. If a debit exceeds the balance of a metered account, the
   * account owes the difference, whatever its credit limit is.
   * @returns false if that `adjustmentId` was already used for the same adjustment.
   * @throws GatewayError `insufficient_balance` if a debit exceeds the balance of a prepaid account, without any change;
   *   `invalid_request` for an invalid amount or reason, an unknown account, or an id that was used for another adjustment.
   */
  adjust(accountId: string, options: AdjustOptions): Promise<boolean>
  /**
   * Refunds a charge. All refunds of a charge together are at most its cost, including the owed part. The money first pays what the
   * account owes. It is also returned to the spending caps that the charge counts in while their periods last.
   * @param chargeId `id` of the charge's line in the journal.
   * @throws GatewayError `invalid_request` for an unknown charge, an amount above the rest of the charge, an invalid reason, or an id
   *   that was used for another refund.
   */
  refund(chargeId: string, options: RefundOptions): Promise<MadeRefund>
  /**
   * Lists a page of the account's journal, newest line first.
   * @throws GatewayError `invalid_request` for an unknown account, or an invalid limit or cursor.
   */
  journal(accountId: string, options?: JournalPageOptions): Promise<JournalPage>
  /**
   * Yields the journal as CSV (RFC 4180), oldest line first, in chunks of whole lines. An apostrophe precedes texts that a
   * spreadsheet would run as formulas.
   * @throws GatewayError `invalid_request` for an unknown account.
   */
  journalCsv(accountId: string, range?: JournalRange): AsyncIterable<string>
  /**
   * Returns opening balance, sums by kind and closing balance of a month, in nano-dollars.
   * @param month Month in UTC: `"2026-11"`.
   * @throws GatewayError `invalid_request` for an unknown account or an invalid month.
   */
  statement(accountId: string, month: string): Promise<AccountStatement>
}

/** Later than the time of any line, and exact in every store. */
const END_OF_TIME_MS = 8_640_000_000_000_000
const CSV_PAGE_SIZE = 1_000

/**
 * Creates the books of a store's accounts. `ready` resolves once the store can be used.
 * @param billing Billing mode of accounts without their own. Default prepaid.
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

/** Returns a line with the request of its hold, like usage records. */
function ofRequest(entry: LedgerEntry): LedgerEntry {
  return entry.holdId === undefined ? entry : { ...entry, holdId: requestOfHold(entry.holdId) }
}

/**
 * Returns the first moment of a UTC month and of the next.
 * @throws GatewayError `invalid_request` for an invalid month.
 */
export function monthOf(month: string): { readonly fromMs: number; readonly untilMs: number } {
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? []
  if (year === undefined) {
    const message = `${JSON.stringify(month)} is not a month such as 2026-11`
    throw new GatewayError('invalid_request', { message, param: 'month' })
  }
  return { fromMs: Date.UTC(Number(year), Number(number) - 1), untilMs: Date.UTC(Number(year), Number(number)) }
}

/** @throws RangeError for an invalid amount of an adjustment. */
function adjustmentOf(amount: string): bigint {
  const nanoDollars = parseSignedDollars(amount)
  assertAdjustment(nanoDollars)
  return nanoDollars
}

/** @throws RangeError for an invalid amount of a refund. */
function refundOf(amount: string): bigint {
  const nanoDollars = parseDollars(amount)
  if (nanoDollars === 0n) throw new RangeError('a refund must be above zero')
  return nanoDollars
}

/** Names the parameter in the error if an id was used before. Other errors are passed on. */
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

/** Columns of a journal as CSV: amounts in dollars, the time in UTC, units by meter as JSON. */
const COLUMNS: Readonly<Record<string, (entry: LedgerEntry) => string | undefined>> = {
  id: ({ id }) => id,
  time: ({ createdAtMs }) => new Date(createdAtMs).toISOString(),
  account: ({ accountId }) => accountId,
  kind: ({ kind }) => kind,
  amount: ({ amount }) => formatDollars(amount),
  owed: ({ owed }) => formatDollars(owed),
  balance_after: ({ balanceAfter }) => (balanceAfter === undefined ? undefined : formatDollars(balanceAfter)),
  due: ({ due }) => (due === undefined ? undefined : formatDollars(due)),
  description: ({ description }) => description,
  hold_id: ({ holdId }) => holdId,
  charge_id: ({ chargeId }) => chargeId,
  operation_id: ({ operationId }) => operationId,
  key: ({ details }) => details?.keyId,
  endpoint: ({ details }) => details?.endpoint,
  model: ({ details }) => details?.model,
  vendor: ({ details }) => details?.vendor,
  usage: ({ details }) => details && JSON.stringify(details.usage),
}

/** First line of a journal as CSV: the names of the columns. */
const CSV_HEADER = `${Object.keys(COLUMNS).join(',')}\r\n`

/** Formats one line of a journal as CSV (RFC 4180). */
function csvLine(entry: LedgerEntry): string {
  const cells = Object.values(COLUMNS).map((textOf) => csvCell(textOf(entry) ?? ''))
  return `${cells.join(',')}\r\n`
}

/**
 * Positions where a spreadsheet may start to read a formula (OWASP, "CSV Injection"): at the start of a cell, and after any separator
 * of a spreadsheet's locale, including quotes and blanks.
 */
const FORMULA = /^(?=[\t\r\n])|(^|[,;|\t\r\n])([ "]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g
const NUMBER = /^-?\d+(?:\.\d+)?$/

/** Returns a text as a cell. An apostrophe precedes each place that a spreadsheet would run as a formula; numbers stay numbers. */
export function csvCell(text: string): string {
  const safe = NUMBER.test(text) ? text : text.replace(FORMULA, "$1'$2")
  return /[",;|\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
