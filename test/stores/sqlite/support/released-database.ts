import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SqliteDatabase } from '../../../../src/stores/sqlite/sqlite-database.ts'
import { defaultEngine } from './sqlite-engines.ts'
import { rowsOf, schemaOf } from './temporary-folder.ts'

const ROWS = '-- rows\n'

function fixturePath(version: number): string {
  return join(import.meta.dirname, `../fixtures/version-${version}.sql`)
}

/** Opens the database of a released version, with the rows of its fixture, or only with those that its steps insert. */
export function releasedDatabase(version: number, hasRows: boolean): SqliteDatabase {
  const [schema, rows = ''] = readFileSync(fixturePath(version), 'utf8').split(ROWS)
  const database = defaultEngine.open(':memory:')
  database.exec(`BEGIN; ${schema} ${rows} COMMIT`)
  if (!hasRows) emptyTables(database)
  return database
}

/** Deletes the rows of all tables, the journal included. */
function emptyTables(database: SqliteDatabase): void {
  const namesOf = (type: string) =>
    database
      .prepare(`SELECT name, sql FROM sqlite_schema WHERE type = ? AND name <> 'signalbox_migrations'`)
      .all(type) as {
      readonly name: string
      readonly sql: string
    }[]
  const triggers = namesOf('trigger')
  for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`)
  database.exec('PRAGMA foreign_keys = OFF')
  for (const { name } of namesOf('table')) database.exec(`DELETE FROM ${name}`)
  database.exec('PRAGMA foreign_keys = ON; INSERT INTO signalbox_usage_mark VALUES (0, 0)')
  for (const { sql } of triggers) database.exec(sql)
}

/** Writes the fixture of a version from a filled database. */
export function writeReleasedDatabase(version: number, database: SqliteDatabase): void {
  database.exec('UPDATE signalbox_migrations SET applied_at_ms = 1750000000000')
  writeFileSync(fixturePath(version), `${schemaOf(database)}${ROWS}${rowsOf(database)}`)
}
