import type { PostgresSession } from '../postgres-connection.ts'
import { CLAIM_FUNCTIONS, JOURNAL_FUNCTIONS, TASK_FUNCTIONS } from './functions.ts'
import { GROUP_FUNCTIONS } from './group-functions.ts'
import { ENLARGE_FUNCTIONS, RESOLVE_FUNCTIONS, SPENDING_FUNCTIONS } from './ledger-functions.ts'
import { USAGE_FUNCTIONS, VERSION_1, VERSION_2 } from './tables.ts'

/**
 * Tables, forward only: index n − 1 has the statements of version n. Released statements are literal SQL and never change. A
 * change of functions alone is a version without statements.
 */
export const MIGRATIONS: readonly (readonly string[])[] = [VERSION_1, VERSION_2]

/** Functions of the newest version. They keep parameters that a process of the previous version may still send. */
export const FUNCTIONS: readonly string[] = [
  ...SPENDING_FUNCTIONS,
  ...CLAIM_FUNCTIONS,
  ...ENLARGE_FUNCTIONS,
  ...RESOLVE_FUNCTIONS,
  ...GROUP_FUNCTIONS,
  ...JOURNAL_FUNCTIONS,
  ...TASK_FUNCTIONS,
  ...USAGE_FUNCTIONS,
]

/** Drops functions that are created again, whatever their parameters. The schema may contain other functions of the host. */
const DROP_FUNCTIONS = `DO $$
DECLARE
  v_function regprocedure;
BEGIN
  FOR v_function IN
    SELECT p.oid FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = current_schema() AND p.proname = ANY ('{${FUNCTIONS.map(nameOf).join()}}')
  LOOP
    EXECUTE 'DROP FUNCTION ' || v_function;
  END LOOP;
END $$`

/**
 * Migrates a schema inside the caller's transaction. If several processes start together, one migrates and the others wait. If
 * the schema is current, nothing is written, and no CREATE right is needed.
 *
 * @param name Schema, unquoted.
 * @throws Error if a newer version of this library created the schema.
 */
export async function migrate(
  session: PostgresSession,
  name: string,
  migrations: readonly (readonly string[])[] = MIGRATIONS,
): Promise<void> {
  const schema = quoteIdentifier(name)
  // A step over a large table, and waiting for its process, take longer than a host's limit for statements.
  await session.query('SET LOCAL statement_timeout = 0')
  await session.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`signalbox:${name}`])
  const found = await session.query('SELECT to_regclass($1)::text AS migrations', [`${schema}.migrations`])
  if ((found.rows[0] as { migrations: string | null }).migrations === null) {
    await session.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    await session.query(
      `CREATE TABLE ${schema}.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`,
    )
  }
  const version = await versionOf(session, schema, migrations.length)
  // The functions keep this path, so that a table of another schema can never replace theirs.
  await session.query(`SET LOCAL search_path = ${schema}, pg_temp`)
  for (let next = version; next < migrations.length; next++) {
    for (const statement of migrations[next]!) await session.query(statement)
    await session.query('INSERT INTO migrations (version) VALUES ($1)', [next + 1])
  }
  if (version === MIGRATIONS.length || migrations.length < MIGRATIONS.length) return
  for (const statement of [DROP_FUNCTIONS, ...FUNCTIONS]) await session.query(statement)
}

/**
 * Returns how many versions the next start will apply, and whether these are all. Changes nothing and takes no lock.
 * @throws Error if a newer version of this library created the schema.
 */
export async function pendingPostgresMigrations(
  session: Pick<PostgresSession, 'query'>,
  name: string,
): Promise<{ readonly pending: number; readonly isNew: boolean }> {
  const schema = quoteIdentifier(name)
  const found = await session.query('SELECT to_regclass($1)::text AS migrations', [`${schema}.migrations`])
  if ((found.rows[0] as { migrations: string | null }).migrations === null)
    return { pending: MIGRATIONS.length, isNew: true }
  const version = await versionOf(session, schema, MIGRATIONS.length)
  return { pending: MIGRATIONS.length - version, isNew: version === 0 }
}

async function versionOf(session: Pick<PostgresSession, 'query'>, schema: string, known: number): Promise<number> {
  const latest = await session.query(`SELECT coalesce(max(version), 0) AS version FROM ${schema}.migrations`)
  const { version } = latest.rows[0] as { version: number }
  if (version <= known) return version
  throw new Error(
    `The PostgreSQL schema ${schema} has version ${version}, this version of signalbox knows ${known}: update signalbox.`,
  )
}

function nameOf(statement: string): string {
  return /^CREATE FUNCTION (\w+)\(/.exec(statement)![1]!
}

/** Quotes an identifier in SQL text. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
