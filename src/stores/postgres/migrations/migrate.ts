import type { PostgresSession } from '../postgres-connection.ts'
import { ARREARS } from './arrears.ts'
import { CLAIM_FUNCTIONS, RESERVE_FUNCTIONS, RESOLVE_FUNCTIONS } from './ledger-functions.ts'
import { TABLES, TASK_TABLES } from './tables.ts'
import { RETENTION, TASK_FUNCTIONS, WEBHOOK_FUNCTIONS } from './task-functions.ts'

/** Forward only: the statements of version n stand at index n − 1, and what was released is never changed. */
export const MIGRATIONS: readonly (readonly string[])[] = [
  [...TABLES, ...CLAIM_FUNCTIONS, ...RESERVE_FUNCTIONS, ...RESOLVE_FUNCTIONS],
  [...TASK_TABLES, ...TASK_FUNCTIONS, ...WEBHOOK_FUNCTIONS],
  RETENTION,
  ARREARS,
]

/**
 * Migrates a schema inside the caller's transaction. If several processes start together, one migrates and the others wait.
 * If everything is up to date, nothing is written, and no CREATE right is needed.
 *
 * @param name the schema, unquoted.
 * @throws Error when the schema was made by a newer version of this library.
 */
export async function migrate(
  session: PostgresSession,
  name: string,
  migrations: readonly (readonly string[])[] = MIGRATIONS,
): Promise<void> {
  const schema = quoteIdentifier(name)
  await session.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`signalbox:${name}`])
  const found = await session.query('SELECT to_regclass($1)::text AS migrations', [`${schema}.migrations`])
  if ((found.rows[0] as { migrations: string | null }).migrations === null) {
    await session.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    await session.query(
      `CREATE TABLE ${schema}.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`,
    )
  }
  const latest = await session.query(`SELECT coalesce(max(version), 0) AS version FROM ${schema}.migrations`)
  const { version } = latest.rows[0] as { version: number }
  if (version > migrations.length) {
    throw new Error(
      `The PostgreSQL schema ${schema} has version ${version}, this version of signalbox knows ${migrations.length}: update signalbox.`,
    )
  }
  // The functions keep this path, so that a table of another schema can never replace theirs.
  await session.query(`SET LOCAL search_path = ${schema}, pg_temp`)
  for (let next = version; next < migrations.length; next++) {
    for (const statement of migrations[next]!) await session.query(statement)
    await session.query('INSERT INTO migrations (version) VALUES ($1)', [next + 1])
  }
}

/** A quoted identifier in SQL text. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
