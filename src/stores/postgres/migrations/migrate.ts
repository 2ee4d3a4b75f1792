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

/** Schema of a store that names none. */
export const DEFAULT_SCHEMA = 'signalbox'

const CREATE_VERSIONS =
  'CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())'

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

const TABLES = [CREATE_VERSIONS, ...MIGRATIONS.flat()].flatMap(
  (statement) => /^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)/.exec(statement)?.[1] ?? [],
)
const FUNCTION_BODIES = Object.fromEntries(FUNCTIONS.map((statement) => [nameOf(statement), statement.split('$$')[1]]))

/**
 * State of the schema `$1` with the functions `$2`. Reads only catalogs, which every role may read, and ignores other tables and
 * functions of the host. The gateway only reads versions, only adds to the journal, and needs no right on sequences and types.
 */
const STATE_QUERY = `WITH object AS (
    SELECT 'TABLE' AS kind, c.relname::text AS name, c.relnamespace AS schema, c.relowner AS owner, NULL AS body,
      (SELECT string_agg(p, ', ') FROM unnest(CASE c.relname WHEN 'migrations' THEN '{SELECT}'
        WHEN 'entries' THEN '{SELECT,INSERT}' ELSE '{SELECT,INSERT,UPDATE,DELETE}' END::text[]) p
        WHERE NOT has_table_privilege(c.oid, p)) AS missing
    FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relname = ANY ('{${TABLES.join()}}')
    UNION ALL
    SELECT 'FUNCTION', p.proname::text, p.pronamespace, p.proowner, p.prosrc,
      CASE WHEN NOT has_function_privilege(p.oid, 'EXECUTE') THEN 'EXECUTE' END
    FROM pg_proc p WHERE p.proname IN (SELECT jsonb_object_keys($2::jsonb))
  ), own AS (SELECT * FROM object o WHERE o.schema = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = $1::text)
  ), lacking AS (
    SELECT format('%s ON %s', o.missing, o.kind) AS rights, format('%I.%I', $1::text, o.name) AS name
    FROM own o WHERE o.missing IS NOT NULL
    UNION ALL SELECT 'USAGE ON SCHEMA', quote_ident(n.nspname) FROM pg_namespace n
    WHERE n.nspname = $1::text AND NOT has_schema_privilege(n.oid, 'USAGE')
  ), lacking_owner AS (
    SELECT DISTINCT quote_ident(pg_get_userbyid(o.owner)) AS rights FROM own o WHERE NOT pg_has_role(o.owner, 'USAGE')
    UNION ALL SELECT format('CREATE ON SCHEMA %I', n.nspname) FROM pg_namespace n
    WHERE n.nspname = $1::text AND NOT has_schema_privilege(n.oid, 'CREATE')
    UNION ALL SELECT format('CREATE ON DATABASE %I', current_database())
    WHERE to_regnamespace(quote_ident($1::text)) IS NULL AND NOT has_database_privilege(current_database(), 'CREATE')
  )
  SELECT quote_ident(current_user) AS role, to_regnamespace(quote_ident($1::text)) IS NOT NULL AS exists,
    EXISTS (SELECT FROM own o WHERE o.name = 'migrations' AND o.kind = 'TABLE') AS "hasVersions",
    NOT EXISTS (SELECT FROM lacking l WHERE l.rights IN ('USAGE ON SCHEMA', 'SELECT ON TABLE')
      AND l.name IN (quote_ident($1::text), format('%I.migrations', $1::text))) AS "mayReadVersions",
    (SELECT string_agg(format('GRANT %s %s TO %I', g.rights, g.names, current_user), '; ')
      FROM (SELECT l.rights, string_agg(l.name, ', ' ORDER BY l.name) AS names FROM lacking l GROUP BY 1 ORDER BY 1) g) AS "missingGrants",
    (SELECT string_agg(format('GRANT %s TO %I', l.rights, current_user), '; ') FROM lacking_owner l) AS "missingOwnerGrants",
    (SELECT string_agg(f.key, ', ' ORDER BY f.key) FROM jsonb_each_text($2::jsonb) f WHERE f.value IS DISTINCT FROM
      (SELECT string_agg(o.body, '') FROM own o WHERE o.kind = 'FUNCTION' AND o.name = f.key)) AS "changedFunctions"`

/** When a schema is migrated: by the first start of a newer version, or only by `signalbox migrate`. */
export type MigrationMode = 'start' | 'never'

/** State of a schema, as the role of a session finds it. Lists are SQL text, or null if they are empty. */
export interface SchemaState {
  readonly name: string
  readonly exists: boolean
  /** Version of the tables: 0 without any, `undefined` if the role may not read it. */
  readonly version: number | undefined
  /** Version that this library needs. */
  readonly needed: number
  /** Functions that are missing, or differ from those of this library. */
  readonly changedFunctions: string | null
  readonly role: string
  /** Rights that a gateway needs and the role lacks. */
  readonly missingGrants: string | null
  /** Rights that a migration needs and the role lacks. */
  readonly missingOwnerGrants: string | null
}

/**
 * Reads the state of a schema. Changes nothing, takes no lock and needs no rights.
 * @param name Schema, unquoted.
 * @throws Error if a newer version of this library created the schema.
 */
export async function readSchema(
  session: Pick<PostgresSession, 'query'>,
  name: string,
  needed: number = MIGRATIONS.length,
): Promise<SchemaState> {
  const { rows } = await session.query(STATE_QUERY, [name, JSON.stringify(FUNCTION_BODIES)])
  const { hasVersions, mayReadVersions, ...state } = rows[0] as SchemaState & Readonly<Record<string, boolean>>
  if (hasVersions !== true) return { ...state, name, needed, version: 0 }
  if (mayReadVersions !== true) return { ...state, name, needed, version: undefined }
  const schema = quoteIdentifier(name)
  const latest = await session.query(`SELECT coalesce(max(version), 0) AS version FROM ${schema}.migrations`)
  const { version } = latest.rows[0] as { version: number }
  if (version <= needed) return { ...state, name, needed, version }
  throw new Error(
    `The PostgreSQL schema ${schema} has version ${version}, this version of signalbox knows ${needed}: update signalbox.`,
  )
}

/** Returns in which way a schema is not the one that this library needs; `undefined` if it is. */
export function outdatedReason(state: SchemaState): string | undefined {
  const { name, exists, version, needed, changedFunctions } = state
  const subject = `the PostgreSQL schema ${quoteIdentifier(name)}`
  if (version !== needed)
    return `${subject} ${exists ? `has version ${version}` : 'does not exist'}, and this version of signalbox needs version ${needed}`
  if (changedFunctions === null) return undefined
  return `${subject} has version ${version}, but lacks these functions of this version of signalbox, or has others: ${changedFunctions}`
}

/** Returns why a gateway cannot start with a schema, and what to do; `undefined` if it can. */
export function startObstacle(
  state: SchemaState,
  mode: MigrationMode,
): { readonly message: string; readonly remedy: string } | undefined {
  const { name, role, version, missingGrants, missingOwnerGrants } = state
  const outdated = version === undefined ? undefined : outdatedReason(state)
  if (outdated === undefined) {
    if (missingGrants === null) return undefined
    const message = `the role ${role} lacks rights on the PostgreSQL schema ${quoteIdentifier(name)}`
    return { message, remedy: `run as the owner of the schema: ${missingGrants}` }
  }
  const command = `run npx signalbox migrate${name === DEFAULT_SCHEMA ? '' : ` --schema ${JSON.stringify(name)}`} as the owner of the schema`
  if (mode === 'never') return { message: `${outdated}; migrate is "never"`, remedy: command }
  if (missingOwnerGrants === null) return undefined
  const message = `${outdated}; the role ${role} lacks the rights to migrate it`
  return { message, remedy: `${command}, or grant its rights: ${missingOwnerGrants}` }
}

/** @throws Error that says what to do if a gateway cannot start with a schema. */
export function checkStart(state: SchemaState, mode: MigrationMode): void {
  const obstacle = startObstacle(state, mode)
  if (obstacle !== undefined) throw new Error(`${obstacle.message}: ${obstacle.remedy}`)
}

/** Statements that lock a schema for its migration until the transaction ends: one process migrates, and the others wait. */
function lockStatements(name: string): readonly string[] {
  const lock = `SELECT pg_advisory_xact_lock(hashtextextended('${`signalbox:${name}`.replaceAll("'", "''")}', 0))`
  // A step over a large table, and waiting for its process, take longer than a host's limit for statements.
  return ['SET LOCAL statement_timeout = 0', lock]
}

/** Statements that bring a locked schema up to date; none if it is. */
function pendingStatements(state: SchemaState, migrations: readonly (readonly string[])[]): readonly string[] {
  const { name, exists, version = 0 } = state
  if (outdatedReason(state) === undefined) return []
  return [
    ...(exists ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(name)}`]),
    // The functions keep this path, so that a table of another schema can never replace theirs.
    `SET LOCAL search_path = ${quoteIdentifier(name)}, pg_temp`,
    CREATE_VERSIONS,
    // A script may be run long after it was printed.
    `DO $$ BEGIN
  ASSERT (SELECT coalesce(max(version), 0) FROM migrations) = ${version}, 'the schema has another version than ${version}: print the script again';
END $$`,
    ...migrations
      .slice(version)
      .flatMap((step, index) => [...step, `INSERT INTO migrations (version) VALUES (${version + index + 1})`]),
    DROP_FUNCTIONS,
    ...FUNCTIONS,
  ]
}

/** Returns what {@link migrate} would run, as a script for `psql`; `undefined` if there is nothing to run. */
export function migrationScript(state: SchemaState): string | undefined {
  const pending = pendingStatements(state, MIGRATIONS)
  if (pending.length === 0) return undefined
  return ['BEGIN', ...lockStatements(state.name), ...pending, 'COMMIT'].map((statement) => `${statement};`).join('\n')
}

/**
 * Migrates a schema inside the caller's transaction, and returns its state before. If the schema is current, nothing is written, and
 * no CREATE right is needed. With `never`, only checks it.
 *
 * @param name Schema, unquoted.
 * @throws Error that says what to do if a gateway cannot start with the schema, or a newer version of this library created it.
 */
export async function migrate(
  session: PostgresSession,
  name: string,
  mode: MigrationMode = 'start',
  migrations: readonly (readonly string[])[] = MIGRATIONS,
): Promise<SchemaState> {
  if (mode === 'start') for (const statement of lockStatements(name)) await session.query(statement)
  const state = await readSchema(session, name, migrations.length)
  checkStart(state, mode)
  for (const statement of pendingStatements(state, migrations)) await session.query(statement)
  return state
}

function nameOf(statement: string): string {
  return /^CREATE FUNCTION (\w+)\(/.exec(statement)![1]!
}

/** Quotes an identifier in SQL text. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
