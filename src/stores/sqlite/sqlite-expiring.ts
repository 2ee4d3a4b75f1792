import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import type { InteractionStore } from '../interaction-store.ts'
import { oldestKept, spendingPeriod } from '../spending.ts'
import {
  answerOf,
  answerValues,
  INTERACTION_COLUMNS,
  interactionOf,
  interactionValues,
  type SqlRow,
} from '../sql-rows.ts'
import { listOf, prepareExact, type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'

/** Idempotency keys, inside the caller's transaction. */
export type SqliteClaims = ReturnType<typeof sqliteClaims>

type ClaimName = Omit<IdempotencyClaim, 'expiresAtMs' | 'claimedBy'>

/** Prepares the statements of {@link SqliteClaims}. */
export function sqliteClaims(database: SqliteDatabase) {
  const select = prepareExact(
    database,
    `SELECT fingerprint, claimed_by, answer_status, answer_headers, answer_body FROM signalbox_idempotency
     WHERE account_id = ? AND key = ? AND expires_at_ms > ?`,
  )
  // What is replaced has expired: the caller has looked before.
  const insert = database.prepare(
    `INSERT OR REPLACE INTO signalbox_idempotency (account_id, key, fingerprint, expires_at_ms, claimed_by)
     VALUES (?, ?, ?, ?, ?)`,
  )
  const complete = database.prepare(
    `UPDATE signalbox_idempotency SET answer_status = ?, answer_headers = ?, answer_body = ?
     WHERE account_id = ? AND key = ? AND fingerprint = ? AND answer_status IS NULL`,
  )
  const release = database.prepare(
    `DELETE FROM signalbox_idempotency
     WHERE account_id = ? AND key = ? AND fingerprint = ? AND answer_status IS NULL`,
  )

  /** What claiming would find, without claiming. */
  function peek({ accountId, key, fingerprint }: IdempotencyClaim, nowMs: number): ClaimResult {
    const row = select.get(accountId, key, nowMs) as SqlRow | undefined
    if (row === undefined) return { status: 'claimed' }
    if (row['fingerprint'] !== fingerprint) return { status: 'mismatch' }
    return row['answer_status'] === null ? { status: 'in_flight' } : { status: 'replay', answer: answerOf(row) }
  }

  return {
    peek,
    claim(claim: IdempotencyClaim, nowMs: number): ClaimResult {
      const { accountId, key, fingerprint, expiresAtMs, claimedBy } = claim
      const found = peek(claim, nowMs)
      if (found.status === 'claimed')
        insert.run(accountId, key, fingerprint, wholeMilliseconds(expiresAtMs), claimedBy ?? null)
      if (found.status !== 'in_flight' || claimedBy === undefined) return found
      const row = select.get(accountId, key, nowMs) as SqlRow | undefined
      return row?.['claimed_by'] === claimedBy ? { status: 'claimed' } : found
    },
    complete({ accountId, key, fingerprint }: ClaimName, answer: StoredAnswer): void {
      complete.run(...answerValues(answer), accountId, key, fingerprint)
    },
    release({ accountId, key, fingerprint }: ClaimName): void {
      release.run(accountId, key, fingerprint)
    },
  }
}

const PURGED_PER_SAVE = 2

/** Owners of conversations, inside the caller's transaction. */
export type SqliteInteractions = Synchronous<InteractionStore>

/** Prepares the statements of {@link SqliteInteractions}. */
export function sqliteInteractions(database: SqliteDatabase): SqliteInteractions {
  const replace = database.prepare(
    `INSERT OR REPLACE INTO signalbox_interactions (${INTERACTION_COLUMNS}) VALUES (${listOf('?', 8)})`,
  )
  const purge = database.prepare(
    `DELETE FROM signalbox_interactions WHERE (account_id, id) IN
       (SELECT account_id, id FROM signalbox_interactions WHERE expires_at_ms <= ? LIMIT ${PURGED_PER_SAVE})`,
  )
  const select = database.prepare(
    'SELECT * FROM signalbox_interactions WHERE account_id = ? AND id = ? AND expires_at_ms > ?',
  )

  return {
    save(record) {
      // Each insert deletes some expired rows, so no separate job is needed.
      purge.run(record.createdAtMs)
      replace.run(...interactionValues(record, wholeMilliseconds))
    },
    find(accountId, id, nowMs) {
      const row = select.get(accountId, id, nowMs) as SqlRow | undefined
      return row === undefined ? undefined : interactionOf(row)
    },
  }
}

/** Rows of each kind that one step deletes at most. */
const ROWS_PER_STEP = 500

/** The outcome of a reservation is kept for an hour after its deadline, so that reserving it again is seen. */
const OUTCOME_RETENTION_MS = 60 * 60 * 1000

/**
 * Prepares the deletion of obsolete rows: one bounded step, inside the caller's transaction.
 *
 * @returns a function that returns true once nothing is left to delete.
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
    const outcomesUntilMs = nowMs - OUTCOME_RETENTION_MS
    const until = [outcomesUntilMs, outcomesUntilMs, oldestKept(spendingPeriod(nowMs)), nowMs]
    const deleted = byKey.map((statement, index) => Number(statement.run(until[index]!).changes))
    return deleted.every((count) => count < ROWS_PER_STEP)
  }
}
