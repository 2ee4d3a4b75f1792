import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import type { InteractionStore } from '../interaction-store.ts'
import type { SpendingLimit } from '../ledger.ts'
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

type ClaimName = Omit<IdempotencyClaim, 'expiresAtMs'>

/** Prepares the statements of {@link SqliteClaims}. */
export function sqliteClaims(database: SqliteDatabase) {
  const select = prepareExact(
    database,
    `SELECT fingerprint, answer_status, answer_headers, answer_body FROM signalbox_idempotency
     WHERE account_id = ? AND key = ? AND expires_at_ms > ?`,
  )
  // What is replaced has expired: the caller has looked before.
  const insert = database.prepare(
    'INSERT OR REPLACE INTO signalbox_idempotency (account_id, key, fingerprint, expires_at_ms) VALUES (?, ?, ?, ?)',
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
      const found = peek(claim, nowMs)
      if (found.status === 'claimed')
        insert.run(claim.accountId, claim.key, claim.fingerprint, wholeMilliseconds(claim.expiresAtMs))
      return found
    },
    complete({ accountId, key, fingerprint }: ClaimName, answer: StoredAnswer): void {
      complete.run(...answerValues(answer), accountId, key, fingerprint)
    },
    release({ accountId, key, fingerprint }: ClaimName): void {
      release.run(accountId, key, fingerprint)
    },
  }
}

/** Counters of spending caps, inside the caller's transaction. */
export type SqliteSpending = ReturnType<typeof sqliteSpending>

/** Prepares the statements of {@link SqliteSpending}. */
export function sqliteSpending(database: SqliteDatabase) {
  const selectSpent = prepareExact(
    database,
    'SELECT spent FROM signalbox_counters WHERE name = ? AND expires_at_ms > ?',
  )
  const purge = database.prepare('DELETE FROM signalbox_counters WHERE name = ? AND expires_at_ms <= ?')
  const add = prepareExact(
    database,
    `INSERT INTO signalbox_counters (name, spent, expires_at_ms) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET spent = spent + excluded.spent,
       expires_at_ms = max(expires_at_ms, excluded.expires_at_ms)
     RETURNING id`,
  )
  const link = database.prepare('INSERT OR IGNORE INTO signalbox_hold_counters (hold_id, counter_id) VALUES (?, ?)')
  const selectCounters = database.prepare('SELECT counter_id FROM signalbox_hold_counters WHERE hold_id = ?')
  const giveBack = database.prepare('UPDATE signalbox_counters SET spent = spent - ? WHERE id = ?')
  const correct = database.prepare(
    `UPDATE signalbox_counters SET spent = spent + ?
     WHERE id IN (SELECT counter_id FROM signalbox_hold_counters WHERE hold_id = ?)`,
  )

  return {
    /** Name of the first counter that an amount would take beyond its limit. Nothing is counted. Zero always fits. */
    exceeded(limits: readonly SpendingLimit[], amount: bigint, nowMs: number): string | undefined {
      if (amount === 0n) return undefined
      return limits.find(({ counter, limit }) => {
        const row = selectSpent.get(counter, nowMs) as { readonly spent: bigint } | undefined
        return (row?.spent ?? 0n) + amount > limit
      })?.counter
    },
    /** Counts a hold in all of the counters. */
    count(holdId: string, limits: readonly SpendingLimit[], amount: bigint, nowMs: number): void {
      const counters = new Map(limits.map((limit) => [limit.counter, limit.expiresAtMs]))
      for (const [counter, expiresAtMs] of counters) {
        purge.run(counter, nowMs)
        const row = add.get(counter, amount, wholeMilliseconds(expiresAtMs)) as { readonly id: bigint }
        link.run(holdId, row.id)
      }
    },
    /** Corrects the counters of a hold that ends by the difference between charge and hold. */
    correct(holdId: string, difference: bigint): void {
      if (difference !== 0n) correct.run(difference, holdId)
    },
    /** Numbers of the counters that a hold counts in, separated by commas. */
    countersOf(holdId: string): string {
      const rows = selectCounters.all(holdId) as { readonly counter_id: number | bigint }[]
      return rows.map(({ counter_id: id }) => String(id)).join(',')
    },
    /** Takes a refund out of those counters that still exist. */
    giveBack(counters: string, amount: bigint): void {
      for (const id of counters.split(',')) giveBack.run(amount, BigInt(id))
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
    ['signalbox_counters', 'rowid', 'expires_at_ms <= ?'],
    ['signalbox_idempotency', 'rowid', 'expires_at_ms <= ?'],
  ].map(([table, key, condition]) =>
    database.prepare(
      `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${condition} LIMIT ${ROWS_PER_STEP})`,
    ),
  )
  return (nowMs) => {
    const outcomesUntilMs = nowMs - OUTCOME_RETENTION_MS
    const untilMs = [outcomesUntilMs, outcomesUntilMs, nowMs, nowMs]
    const deleted = byKey.map((statement, index) => Number(statement.run(untilMs[index]!).changes))
    return deleted.every((count) => count < ROWS_PER_STEP)
  }
}
