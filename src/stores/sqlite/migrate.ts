import { rollBack } from './roll-back.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import { MIGRATIONS } from './sqlite-migrations.ts'
import { SqliteStoreError } from './sqlite-store-error.ts'

/**
 * Brings the schema up to date in one transaction; of many processes at once one does it, and the others find it done.
 * @throws SqliteStoreError `schema_too_new` when newer code has written the database, which is left as it is.
 */
export function migrate(database: SqliteDatabase, label: string, steps: readonly string[] = MIGRATIONS): void {
  // Read first: a database that is up to date is not locked, one that is too new not touched.
  if (versionOf(database, label, steps.length) === steps.length) return
  database.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(database, label, steps.length)
    database.exec(`CREATE TABLE IF NOT EXISTS signalbox_migrations (
      version       INTEGER PRIMARY KEY,
      applied_at_ms INTEGER NOT NULL
    ) STRICT`)
    const record = database.prepare('INSERT INTO signalbox_migrations (version, applied_at_ms) VALUES (?, ?)')
    for (const [index, step] of steps.entries()) {
      if (index < version) continue
      database.exec(step)
      record.run(index + 1, Date.now())
    }
    database.exec('COMMIT')
  } catch (error) {
    rollBack(database)
    throw error
  }
}

function versionOf(database: SqliteDatabase, label: string, known: number): number {
  const table = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'signalbox_migrations'")
    .get()
  if (table === undefined) return 0
  const row = database.prepare('SELECT max(version) AS version FROM signalbox_migrations').get()
  const version = Number((row as { readonly version: number | bigint | null }).version ?? 0)
  if (version <= known) return version
  throw new SqliteStoreError(
    'schema_too_new',
    `${label} has schema version ${version}, and this version of signalbox knows ${known} only: update signalbox`,
  )
}
