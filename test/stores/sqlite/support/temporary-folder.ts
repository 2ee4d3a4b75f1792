import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import type { SqliteDatabase } from '../../../../src/stores/sqlite/sqlite-database.ts'
import { sqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts'
import { defaultEngine } from './sqlite-engines.ts'

/** A folder for the databases of one test file, deleted when its tests are over. Gives a new path with each call. */
export function temporaryPaths(): () => string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-sqlite-'))
  let count = 0
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return () => {
    count += 1
    return join(folder, `store-${count}.db`)
  }
}

/** Creates paths with an empty database that has all tables: creating them takes 30 ms, and a test of a driver less. */
export function migratedPaths(): () => string {
  const newPath = temporaryPaths()
  const template = newPath()
  beforeAll(async () => {
    const store = sqliteStore({ path: template })
    await store.start()
    await store.close()
  })
  return () => {
    const path = newPath()
    copyFileSync(template, path)
    return path
  }
}

/** Creates databases in memory, which cannot be copied: they get the statements of a finished one. */
export function migratedMemories(): () => SqliteDatabase {
  let statements = ''
  beforeAll(async () => {
    const template = defaultEngine.open(':memory:')
    const store = sqliteStore({ database: template })
    await store.start()
    statements = `BEGIN; ${schemaOf(template)} ${rowsOf(template)} COMMIT`
    await store.close()
    template.close()
  })
  return () => {
    const database = defaultEngine.open(':memory:')
    database.exec(statements)
    return database
  }
}

/** Returns the statements that create the tables of a database. */
export function schemaOf(database: SqliteDatabase): string {
  const made = database
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
    .all() as { readonly sql: string }[]
  return made.map(({ sql }) => `${sql};\n`).join('')
}

/** Returns the statements that insert the rows of a database. */
export function rowsOf(database: SqliteDatabase): string {
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
    .all() as { readonly name: string }[]
  const inserts = tables.flatMap(({ name }) => {
    const columns = database.prepare(`SELECT name FROM pragma_table_xinfo('${name}') WHERE hidden = 0`).all() as {
      readonly name: string
    }[]
    const names = columns.map((column) => column.name)
    const quoted = names.map((column) => `quote(${column})`).join(" || ', ' || ")
    const rows = database.prepare(`SELECT ${quoted} AS row FROM ${name}`).all() as { readonly row: string }[]
    return rows.map(({ row }) => `INSERT INTO ${name} (${names.join(', ')}) VALUES (${row});\n`)
  })
  return inserts.join('')
}
