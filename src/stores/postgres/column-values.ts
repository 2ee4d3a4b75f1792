import type { ClaimResult, StoredAnswer } from '../idempotency-store.ts'
import type { ChargeDetails } from '../journal.ts'
import type { ReserveResult } from '../ledger.ts'
import { answerOf, answerValues } from '../sql-rows.ts'
import type { PostgresRow } from './postgres-connection.ts'

/** Returns Unix milliseconds as a parameter. Clocks may return fractions; the column stores whole numbers. */
export function timeParameter(timeMs: number): string {
  return BigInt(Math.floor(timeMs)).toString()
}

/** Returns the time of a journal line as a parameter; null uses the server's clock. */
export function journalTime(clock: 'database' | 'caller', nowMs: number): string | null {
  return clock === 'caller' ? timeParameter(nowMs) : null
}

/** Returns the details of a charge as a parameter. */
export function detailsParameter(details: ChargeDetails | undefined): string | null {
  return details === undefined ? null : JSON.stringify(details)
}

/** Whether a column can store a text. U+0000 is not allowed (PostgreSQL, "Character Types"). */
export function isStorable(text: string): boolean {
  return !text.includes('\u0000')
}

/** Returns a caller's search text as a parameter; null, which equals nothing, if no column can store it. */
export function textParameter(text: string): string | null {
  return isStorable(text) ? text : null
}

/** Columns of the type `outcome` for both readers below. */
export const RESERVATION_COLUMNS = 'o.status, o.counter, o.answer_status, o.answer_headers, o.answer_body'

/** Returns the result of claiming an idempotency key. */
export function claimResultOf(row: PostgresRow): ClaimResult {
  return row['status'] === 'replay'
    ? { status: 'replay', answer: answerOf(row) }
    : { status: row['status'] as Exclude<ClaimResult['status'], 'replay'> }
}

/** Returns the outcome of a reservation. */
export function reserveResultOf(row: PostgresRow): ReserveResult {
  if (row['status'] === 'replay') return { status: 'replay', answer: answerOf(row) }
  if (row['status'] === 'spending_limit') return { status: 'spending_limit', counter: row['counter'] as string }
  if (row['status'] === 'held' && row['counter'] === 'larger') return { status: 'held', isLarger: true }
  return { status: row['status'] as Exclude<ReserveResult['status'], 'replay' | 'spending_limit'> }
}

/** Returns status, headers and body as three parameters; nulls for no answer. */
export function answerParameters(answer: StoredAnswer | undefined): unknown[] {
  return answer === undefined ? [null, null, null] : answerValues(answer)
}
