import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import { HOLD_RETENTION_MS, REFUSAL_RETENTION_MS } from '../ledger.ts'
import { oldestKept, spendingPeriod } from '../spending.ts'
import { answerOf, answerValues, type SqlRow } from '../sql-rows.ts'
import { prepareExact, type SqliteDatabase, wholeMilliseconds } from './sqlite-database.ts'

/** Idempotency keys, inside the caller's transaction. */
export type SqliteClaims = ReturnType<typeof sqliteClaims>

/** Identifying fields of a claim. */
export type ClaimName = Omit<IdempotencyClaim, 'expiresAtMs' | 'pendingUntilMs'>

// An expired key may belong to another request by now, which has another body or another claimant.
const IS_OWN = `account_id = ? AND key = ? AND fingerprint = ?
  AND (claimed_by IS NULL OR claimed_by = coalesce(?, claimed_by))`

/**
 * Prepares the statements of {@link SqliteClaims}.
 *
 * @param timeOf Returns the time by which keys expire, given the caller's time `callerMs`.
 */
export function sqliteClaims(database: SqliteDatabase, timeOf: (callerMs: number) => number) {
  const select = prepareExact(
    database,
    `SELECT fingerprint, claimed_by, answer_status, answer_headers, answer_body FROM signalbox_idempotency
     WHERE account_id = ? AND key = ? AND expires_at_ms > ?`,
  )
  // A replaced row has expired: the caller has checked it before.
  const insert = database.prepare(
    `INSERT OR REPLACE INTO signalbox_idempotency (account_id, key, fingerprint, expires_at_ms, claimed_by)
     VALUES (?, ?, ?, ?, ?)`,
  )
  const renew = database.prepare(
    `UPDATE signalbox_idempotency SET expires_at_ms = max(expires_at_ms, ?)
     WHERE account_id = ? AND key = ? AND claimed_by = ?`,
  )
  const complete = database.prepare(
    `UPDATE signalbox_idempotency SET answer_status = ?, answer_headers = ?, answer_body = ?,
       expires_at_ms = max(expires_at_ms, ?) WHERE ${IS_OWN} AND answer_status IS NULL`,
  )
  const selectOwn = database.prepare(`SELECT 1 FROM signalbox_idempotency WHERE ${IS_OWN}`)
  const release = database.prepare(`DELETE FROM signalbox_idempotency WHERE ${IS_OWN} AND answer_status IS NULL`)

  /** Returns the database's time that corresponds to the caller's time `untilMs`. */
  const endOf = (untilMs: number, nowMs: number): number => wholeMilliseconds(timeOf(nowMs) + (untilMs - nowMs))

  /** Returns the result of a claim without claiming. */
  function peek({ accountId, key, fingerprint }: IdempotencyClaim, nowMs: number): ClaimResult {
    const row = select.get(accountId, key, timeOf(nowMs)) as SqlRow | undefined
    if (row === undefined) return { status: 'claimed' }
    if (row['fingerprint'] !== fingerprint) return { status: 'mismatch' }
    return row['answer_status'] === null ? { status: 'in_flight' } : { status: 'replay', answer: answerOf(row) }
  }

  return {
    peek,
    claim(claim: IdempotencyClaim, nowMs: number): ClaimResult {
      const { accountId, key, fingerprint, expiresAtMs, pendingUntilMs = expiresAtMs, claimedBy } = claim
      const found = peek(claim, nowMs)
      const endMs = endOf(pendingUntilMs, nowMs)
      if (found.status === 'claimed') insert.run(accountId, key, fingerprint, endMs, claimedBy ?? null)
      if (found.status !== 'in_flight' || claimedBy === undefined) return found
      return Number(renew.run(endMs, accountId, key, claimedBy).changes) > 0 ? { status: 'claimed' } : found
    },
    endOf,
    /** @param endMs Expiry by the database's time, if it is later than that of the claim. */
    complete(claim: ClaimName, answer: StoredAnswer, endMs = 0): boolean {
      const own = ownValues(claim)
      if (Number(complete.run(...answerValues(answer), endMs, ...own).changes) > 0) return true
      return selectOwn.get(...own) !== undefined
    },
    release(claim: ClaimName): void {
      release.run(...ownValues(claim))
    },
  }
}

function ownValues({ accountId, key, fingerprint, claimedBy }: ClaimName): (string | null)[] {
  return [accountId, key, fingerprint, claimedBy ?? null]
}

/** Maximum number of rows of each kind that one step deletes. */
const ROWS_PER_STEP = 500

/**
 * Prepares the deletion of obsolete rows: one limited step, inside the caller's transaction.
 *
 * @returns A function that returns true when nothing is left to delete.
 */
export function sqlitePurge(database: SqliteDatabase): (nowMs: number) => boolean {
  const byKey = [
    ['signalbox_holds', 'id', 'ended_at_ms IS NOT NULL AND expires_at_ms <= ?'],
    ['signalbox_refusals', 'hold_id', 'expires_at_ms <= ?'],
    ['signalbox_key_spending', 'key_id', 'period < ?'],
    ['signalbox_idempotency', 'rowid', 'expires_at_ms <= ?'],
  ].map(([table, key, condition]) =>
    database.prepare(
      `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${condition} LIMIT ${ROWS_PER_STEP})`,
    ),
  )
  return (nowMs) => {
    const [holdsUntilMs, refusalsUntilMs] = [nowMs - HOLD_RETENTION_MS, nowMs - REFUSAL_RETENTION_MS]
    const until = [holdsUntilMs, refusalsUntilMs, oldestKept(spendingPeriod(nowMs)), nowMs]
    const deleted = byKey.map((statement, index) => Number(statement.run(until[index]!).changes))
    return deleted.every((count) => count < ROWS_PER_STEP)
  }
}
