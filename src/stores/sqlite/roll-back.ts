import type { SqliteDatabase } from './sqlite-database.ts'

/** Ends a transaction that may have ended by itself. */
export function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // On a full disk and the like SQLite has rolled back already and refuses to do so again; the first error tells more.
  }
}
