import type { NewestFirstQuery } from '../newest-first.ts'
import type { SqlRow } from '../sql-rows.ts'
import { type SqliteDatabase, type SqlValue, wholeMilliseconds } from './sqlite-database.ts'

/** Indexes that lead straight to a page of all accounts, in any state or in one. */
export const NEWEST_MIGRATION = `
CREATE INDEX signalbox_tasks_by_time ON signalbox_tasks (created_at_ms, id);
CREATE INDEX signalbox_tasks_by_state ON signalbox_tasks (state, created_at_ms, id);
CREATE INDEX signalbox_deliveries_by_time ON signalbox_deliveries (created_at_ms, id);
CREATE INDEX signalbox_deliveries_by_state ON signalbox_deliveries (state, created_at_ms, id);
`

/** Rows of all accounts, newest first. Prepared at each call: only operators ask, and for eight kinds of pages. */
export function selectNewest(
  database: SqliteDatabase,
  table: 'signalbox_tasks' | 'signalbox_deliveries',
  { accountId, state, after, limit }: NewestFirstQuery<string>,
): SqlRow[] {
  const conditions: string[] = []
  const values: SqlValue[] = []
  if (accountId !== undefined) {
    conditions.push('account_id = ?')
    values.push(accountId)
  }
  if (state !== undefined) {
    conditions.push('state = ?')
    values.push(state)
  }
  if (after !== undefined) {
    conditions.push('(created_at_ms, id) < (?, ?)')
    values.push(wholeMilliseconds(after.createdAtMs), after.id)
  }
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const select = database.prepare(`SELECT * FROM ${table} ${where} ORDER BY created_at_ms DESC, id DESC LIMIT ?`)
  return select.all(...values, Math.max(0, limit)) as SqlRow[]
}
