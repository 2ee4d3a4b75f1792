import { DatabaseSync } from '@photostructure/sqlite'
import type { SqliteDatabase, SqliteStatement, SqlValue } from '../../../../src/stores/sqlite/sqlite-database.ts'

/** A way to open a SQLite database. */
export interface TestEngine {
  readonly name: string
  open(path: string): SqliteDatabase
}

type DatabaseClass = new (path: string) => SqliteDatabase

const builtin = process.getBuiltinModule('node:sqlite' as 'node:fs') as unknown as
  | { readonly DatabaseSync: DatabaseClass }
  | undefined

/**
 * Engine that `sqliteStore({ path })` uses on this Node. Two copies of SQLite in one process do not see each other's locks, so a test
 * opens a file with only one engine.
 */
export const defaultEngine: TestEngine = {
  name: 'the default engine',
  open: (path) => new (builtin?.DatabaseSync ?? DatabaseSync)(path),
}

/** Name of the default engine in `testEngines`. */
export const defaultEngineName = builtin === undefined ? '@photostructure/sqlite' : 'node:sqlite'

const all: readonly TestEngine[] = [
  { name: '@photostructure/sqlite', open: (path) => new DatabaseSync(path) },
  { name: 'a handle of better-sqlite3 shape', open: (path) => betterShaped(new DatabaseSync(path)) },
  ...(builtin === undefined ? [] : [{ name: 'node:sqlite', open: (path: string) => new builtin.DatabaseSync(path) }]),
]

/** Every engine of this Node; `TEST_SQLITE_ENGINE` picks one by its name. */
export const testEngines: readonly TestEngine[] = all.filter(
  ({ name }) => name === (process.env['TEST_SQLITE_ENGINE'] ?? name),
)

if (testEngines.length === 0) {
  throw new Error(`TEST_SQLITE_ENGINE must be one of: ${all.map(({ name }) => name).join(', ')}`)
}

/** The methods, and the error codes by name, of better-sqlite3, which cannot be installed where its binary is not served. */
function betterShaped(database: InstanceType<typeof DatabaseSync>): SqliteDatabase {
  return {
    exec: (sql) => named(() => database.exec(sql)),
    prepare(sql) {
      // It binds these by name only.
      if (/\?\d/.test(sql)) throw new RangeError('Too many parameter values were provided')
      return betterShapedStatement(named(() => database.prepare(sql)))
    },
    close: () => database.close(),
  }
}

function betterShapedStatement(statement: ReturnType<InstanceType<typeof DatabaseSync>['prepare']>): SqliteStatement {
  const run = (...parameters: SqlValue[]) => named(() => statement.run(...parameters))
  return {
    run,
    get: (...parameters) => named(() => statement.get(...parameters)),
    all: (...parameters) => named(() => statement.all(...parameters)),
    safeIntegers: (enabled = true) => statement.setReadBigInts(enabled),
  }
}

const NAMES: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  19: 'SQLITE_CONSTRAINT_CHECK',
  26: 'SQLITE_NOTADB',
}

function named<Value>(call: () => Value): Value {
  try {
    return call()
  } catch (error) {
    const { errcode } = error as { readonly errcode?: number }
    if (errcode === undefined) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw Object.assign(new Error(message), { code: NAMES[errcode & 0xff] ?? 'SQLITE_ERROR' })
  }
}
