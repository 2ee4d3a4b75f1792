import type { ClaimResult, StoredAnswer } from '../idempotency-store.ts'
import type { ReserveResult } from '../ledger.ts'
import type { SpendingCap } from '../principal.ts'
import type { PostgresRow } from './postgres-connection.ts'

/**
 * Reads and writes of columns. 64-bit integers are asked for as text and read with BigInt, because a host may have told its
 * client library to read them as floats.
 */

/** Text of a whole amount as nano-dollars. */
export function amountOf(column: unknown): bigint {
  return BigInt(column as string)
}

/** Text of a 64-bit integer as Unix milliseconds. */
export function timeOf(column: unknown): number {
  return Number(column)
}

/** The same for a column that may be null. */
export function optionalTimeOf(column: unknown): number | undefined {
  return column === null ? undefined : Number(column)
}

/** Unix milliseconds as a parameter. Clocks may give fractions; the column holds whole numbers. */
export function timeParameter(timeMs: number): string {
  return BigInt(Math.floor(timeMs)).toString()
}

/** Can this text stand in a column? U+0000 cannot (PostgreSQL, "Character Types"). */
export function isStorable(text: string): boolean {
  return !text.includes('\u0000')
}

/** A text to look for that a caller chose, as a parameter: null, which equals nothing, where no column can hold it. */
export function textParameter(text: string): string | null {
  return isStorable(text) ? text : null
}

/** A spending cap from its two columns. */
export function capOf(amount: unknown, period: unknown): SpendingCap | undefined {
  return amount === null ? undefined : { amount: amountOf(amount), period: period as SpendingCap['period'] }
}

/** Columns of the type `outcome`, as both readers below need them. */
export const OUTCOME_COLUMNS = 'o.status, o.counter, o.answer_status, o.answer_headers, o.answer_body'

/** Result of claiming an idempotency key. */
export function claimResultOf(row: PostgresRow): ClaimResult {
  return row['status'] === 'replay'
    ? { status: 'replay', answer: answerOf(row) }
    : { status: row['status'] as Exclude<ClaimResult['status'], 'replay'> }
}

/** Outcome of a reservation. */
export function reserveResultOf(row: PostgresRow): ReserveResult {
  if (row['status'] === 'replay') return { status: 'replay', answer: answerOf(row) }
  if (row['status'] === 'spending_limit') return { status: 'spending_limit', counter: row['counter'] as string }
  return { status: row['status'] as Exclude<ReserveResult['status'], 'replay' | 'spending_limit'> }
}

/** Status, headers and body as three parameters; nulls for no answer. */
export function answerParameters(answer: StoredAnswer | undefined): unknown[] {
  if (answer === undefined) return [null, null, null]
  const { buffer, byteOffset, byteLength } = answer.body
  return [answer.status, JSON.stringify(answer.headers), Buffer.from(buffer, byteOffset, byteLength)]
}

function answerOf(row: PostgresRow): StoredAnswer {
  return {
    status: row['answer_status'] as number,
    headers: JSON.parse(row['answer_headers'] as string) as string[],
    body: row['answer_body'] as Uint8Array,
  }
}
