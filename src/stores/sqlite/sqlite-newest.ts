import type { NewestFirstQuery } from '../newest-first.ts'
import type { SqlRow } from '../sql-rows.ts'
import { type SqliteDatabase, type SqlValue, wholeMilliseconds } from './sqlite-database.ts'

/** Indexes that lead directly to a page of all accounts, in any state or in one. */
export const NEWEST_MIGRATION = `
CREATE INDEX signalbox_tasks_by_time ON signalbox_tasks (created_at_ms, id);
CREATE INDEX signalbox_tasks_by_state ON signalbox_tasks (state, created_at_ms, id);
CREATE INDEX signalbox_deliveries_by_time ON signalbox_deliveries (created_at_ms, id);
CREATE INDEX signalbox_deliveries_by_state ON signalbox_deliveries (state, created_at_ms, id);
`

/** Indexes that lead directly to a page of the messages of one account, and to a page of keys. */
export const ACCOUNT_PAGES_MIGRATION = `
CREATE INDEX signalbox_deliveries_by_account ON signalbox_deliveries (account_id, created_at_ms, id);
DROP INDEX signalbox_keys_by_account;
CREATE INDEX signalbox_keys_by_account ON signalbox_keys (account_id, created_at_ms, id);
CREATE INDEX signalbox_keys_by_time ON signalbox_keys (created_at_ms, id);
`

/** Selects rows of all accounts, newest first. Prepared at each call, because only operators use it, and for eight kinds of pages. */
export function selectNewest(
  database: SqliteDatabase,
  table: 'signalbox_tasks' | 'signalbox_deliveries',
  { accountId, state, after, limit }: NewestFirstQuery<string>,
): SqlRow[] {
  const conditions: string[] = []
  const values: SqlValue[] = []
  // By name, because for a state and an account the engine may choose the index of the states, where the account may have few rows.
  const index = accountId === undefined ? '' : `INDEXED BY ${table}_by_account`
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
  const select = database.prepare(
    `SELECT * FROM ${table} ${index} ${where} ORDER BY created_at_ms DESC, id DESC LIMIT ?`,
  )
  return select.all(...values, Math.max(0, limit)) as SqlRow[]
}
