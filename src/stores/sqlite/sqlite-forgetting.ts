import type { SqliteDatabase } from './sqlite-database.ts'

/** Rows of each kind that one step deletes at most. */
const ROWS_PER_STEP = 500

/** The outcome of a reservation is remembered for an hour after its deadline, so that reserving it again is seen. */
const OUTCOME_RETENTION_MS = 60 * 60 * 1000

/** Prepares the deletion of rows that nobody needs any more: one bounded step, in the transaction of whoever calls. */
export function sqliteForgetting(database: SqliteDatabase): { step(nowMs: number): { readonly isDone: boolean } } {
  const ended = database.prepare(
    `DELETE FROM signalbox_holds WHERE id IN
       (SELECT id FROM signalbox_holds WHERE ended_at_ms IS NOT NULL AND expires_at_ms <= ? LIMIT ${ROWS_PER_STEP})`,
  )
  const refusals = database.prepare(
    `DELETE FROM signalbox_refusals WHERE hold_id IN
       (SELECT hold_id FROM signalbox_refusals WHERE expires_at_ms <= ? LIMIT ${ROWS_PER_STEP})`,
  )
  const byRow = ['signalbox_counters', 'signalbox_idempotency'].map((table) =>
    database.prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE expires_at_ms <= ? LIMIT ${ROWS_PER_STEP})`,
    ),
  )
  return {
    step(nowMs) {
      const deleted = [
        ...[ended, refusals].map((statement) => statement.run(nowMs - OUTCOME_RETENTION_MS)),
        ...byRow.map((statement) => statement.run(nowMs)),
      ]
      return { isDone: deleted.every(({ changes }) => Number(changes) < ROWS_PER_STEP) }
    },
  }
}
