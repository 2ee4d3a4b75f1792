import { formatDollars } from '../core/money.ts'
import type { LedgerEntry } from '../stores/journal.ts'

const COLUMNS = [
  'id',
  'time',
  'account',
  'kind',
  'amount',
  'owed',
  'balance_after',
  'due',
  'description',
  'hold_id',
  'charge_id',
  'operation_id',
  'key',
  'endpoint',
  'model',
  'vendor',
  'usage',
] as const

/** First line of a journal as CSV: the names of the columns. */
export const CSV_HEADER = `${COLUMNS.join(',')}\r\n`

/** Formats one line of a journal as CSV (RFC 4180): amounts in dollars, the time in UTC, units by meter as JSON. */
export function csvLine(entry: LedgerEntry): string {
  const { details } = entry
  const cells: Readonly<Record<(typeof COLUMNS)[number], string | undefined>> = {
    id: entry.id,
    time: new Date(entry.createdAtMs).toISOString(),
    account: entry.accountId,
    kind: entry.kind,
    amount: formatDollars(entry.amount),
    owed: formatDollars(entry.owed),
    balance_after: entry.balanceAfter === undefined ? undefined : formatDollars(entry.balanceAfter),
    due: entry.due === undefined ? undefined : formatDollars(entry.due),
    description: entry.description,
    hold_id: entry.holdId,
    charge_id: entry.chargeId,
    operation_id: entry.operationId,
    key: details?.keyId,
    endpoint: details?.endpoint,
    model: details?.model,
    vendor: details?.vendor,
    usage: details === undefined ? undefined : JSON.stringify(details.usage),
  }
  return `${COLUMNS.map((column) => csvCell(cells[column] ?? '')).join(',')}\r\n`
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
