import type { ClaimResult, StoredAnswer } from '../idempotency-store.ts'
import type { ReserveResult } from '../ledger.ts'
import type { PostgresRow } from './postgres-connection.ts'

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
