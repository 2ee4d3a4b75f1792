import type { NewestFirstQuery } from '../newest-first.ts'
import { isStorable, timeParameter } from './column-values.ts'
import type { PostgresConnection, PostgresRow } from './postgres-connection.ts'

/** Selects rows of all accounts, newest first, of a table named `t`. */
export async function selectNewest(
  { run }: PostgresConnection,
  { table, columns }: { readonly table: string; readonly columns: string },
  { accountId, state, after, limit }: NewestFirstQuery<string>,
): Promise<readonly PostgresRow[]> {
  if (![accountId, state, after?.id].every((text) => isStorable(text ?? ''))) return []
  const values: unknown[] = [Math.max(0, limit)]
  const conditions: string[] = []
  if (accountId !== undefined) conditions.push(`t.account_id = $${values.push(accountId)}`)
  if (state !== undefined) conditions.push(`t.state = $${values.push(state)}`)
  if (after !== undefined) {
    const place = `$${values.push(timeParameter(after.createdAtMs))}, $${values.push(after.id)}`
    conditions.push(`(t.created_at_ms, t.id) < (${place})`)
  }
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return await run(
    `SELECT ${columns} FROM ${table} t ${where} ORDER BY t.created_at_ms DESC, t.id DESC LIMIT $1`,
    values,
  )
}
