/** What SQLite can store in a column. */
export type SqlValue = string | number | bigint | null | Uint8Array

/**
 * A prepared statement, in the shape that `node:sqlite` and better-sqlite3 share. Parameters are written `?`: numbered ones
 * (`?1`) are no positions to better-sqlite3.
 */
export interface SqliteStatement {
  run(...parameters: SqlValue[]): { readonly changes: number | bigint }
  /** The first row; undefined when there is none. */
  get(...parameters: SqlValue[]): unknown
  all(...parameters: SqlValue[]): unknown[]
  /** `node:sqlite`: integers are read as bigint. */
  setReadBigInts?(enabled: boolean): unknown
  /** better-sqlite3: integers are read as bigint. */
  safeIntegers?(enabled?: boolean): unknown
}

/** An open SQLite database: a `DatabaseSync` of `node:sqlite` or `@photostructure/sqlite`, or a better-sqlite3 `Database`. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): unknown
}

/**
 * Prepares a statement whose integers are read as bigint, so that amounts above 2^53 keep every digit.
 * @throws TypeError when the database offers no way to do so.
 */
export function prepareExact(database: SqliteDatabase, sql: string): SqliteStatement {
  const statement = database.prepare(sql)
  if (statement.setReadBigInts !== undefined) statement.setReadBigInts(true)
  else if (statement.safeIntegers !== undefined) statement.safeIntegers(true)
  else
    throw new TypeError(
      'the given database cannot read 64-bit integers: it has neither setReadBigInts nor safeIntegers',
    )
  return statement
}
