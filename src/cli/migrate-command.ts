import {
  checkStart,
  DEFAULT_SCHEMA,
  migrate,
  migrationScript,
  outdatedReason,
  readSchema,
} from '../stores/postgres/migrations/migrate.ts'
import { postgresConnection } from '../stores/postgres/postgres-connection.ts'
import { openWithEngine } from '../stores/sqlite/sqlite-engine.ts'
import { MIGRATIONS, pendingSqliteMigrations } from '../stores/sqlite/sqlite-migrations.ts'
import { sqliteStore } from '../stores/sqlite/sqlite-store.ts'
import type { ActionDefinition } from './command.ts'
import { describeStore, durableStore, openPool, STORE_OPTIONS, storeError } from './open-store.ts'
import { SettingError } from './setting-values.ts'

/** A migration of large tables may take hours. The operator can interrupt it. */
const MAX_MIGRATION_MS = 24 * 3_600_000

const CONNECTION_TIMEOUT_MS = 10_000

/** Schema before the command, and what it lacked. */
interface FoundSchema {
  readonly from: number
  readonly to: number
  /** `undefined` if the schema was up to date. */
  readonly missing: string | undefined
  readonly script?: string | undefined
}

/** Command `signalbox migrate`. */
export const migrateCommand: ActionDefinition = {
  summary: 'migrate the schema of the store, or only print or check what is missing',
  options: {
    print: { text: 'print what is missing in PostgreSQL as SQL for psql, and change nothing' },
    check: { text: 'say what is missing, change nothing, and exit with status 1 if anything is' },
    schema: { value: 'NAME', text: `schema in PostgreSQL (default: ${DEFAULT_SCHEMA})` },
    ...STORE_OPTIONS,
  },
  async run(given, terminal) {
    const { name, setting } = durableStore(given.option('store'), terminal.environment)
    const [isPrinted, isChecked, asJson] = [given.flag('print'), given.flag('check'), given.flag('json')]
    if (isPrinted && (isChecked || asJson)) throw new SettingError('--print cannot be combined with --check or --json')
    if (setting.kind === 'sqlite' && (isPrinted || given.option('schema') !== undefined))
      throw new SettingError('--print and --schema need PostgreSQL; a SQLite database is migrated by each start')
    const isApplied = !isPrinted && !isChecked
    const migrating =
      setting.kind === 'sqlite'
        ? migrateSqlite(setting.path, isApplied)
        : migratePostgres(name, setting.url, given.option('schema') ?? DEFAULT_SCHEMA, isApplied)
    const { from, to, missing, script } = await migrating.catch((cause: unknown) => {
      throw cause instanceof SettingError ? cause : storeError(name, setting, cause)
    })
    const shown = describeStore(setting)
    if (isPrinted) terminal.print(script ?? `-- ${shown} is up to date.`)
    else if (asJson)
      terminal.print(JSON.stringify({ object: 'migration', from, to, missing: missing ?? null, applied: isApplied }))
    else if (missing === undefined) terminal.print(`${shown} is up to date, with version ${to}`)
    else terminal.print(`${shown}: ${isApplied ? `migrated from version ${from} to ${to}` : missing}`)
    if (isChecked && missing !== undefined) terminal.fail?.()
  },
}

async function migratePostgres(name: string, url: string, schema: string, isApplied: boolean): Promise<FoundSchema> {
  const pool = await openPool(name, url, CONNECTION_TIMEOUT_MS)
  try {
    const { transaction } = postgresConnection(pool, MAX_MIGRATION_MS)
    const state = await transaction((session) => (isApplied ? migrate : readSchema)(session, schema))
    if (state.version === undefined) checkStart(state, 'start')
    return {
      from: state.version ?? 0,
      to: state.needed,
      missing: outdatedReason(state),
      script: migrationScript(state),
    }
  } finally {
    await pool.end()
  }
}

async function migrateSqlite(path: string, isApplied: boolean): Promise<FoundSchema> {
  const database = await openWithEngine(path)
  const { pending } = pendingSqliteMigrations(database, path)
  database.close()
  if (isApplied && pending > 0) {
    const store = sqliteStore({ path })
    await store.start()
    await store.close()
  }
  const to = MIGRATIONS.length
  const missing = pending === 0 ? undefined : `${pending} of ${to} migrations are missing; the next start runs them`
  return { from: to - pending, to, missing }
}
