/** Value that SQLite can store in a column. */
export type SqlValue = string | number | bigint | null | Uint8Array

/**
 * Prepared statement with the common methods of `node:sqlite` and better-sqlite3. Parameters are written `?`, because
 * better-sqlite3 does not treat numbered ones (`?1`) as positions.
 */
export interface SqliteStatement {
  /** Runs the statement and returns how many rows it changed. */
  run(...parameters: SqlValue[]): { readonly changes: number | bigint }
  /** Returns the first row; undefined if there is none. */
  get(...parameters: SqlValue[]): unknown
  /** Returns every row, as an object by column name. */
  all(...parameters: SqlValue[]): unknown[]
  /** Whether it returns rows, in better-sqlite3. */
  readonly reader?: boolean
  /** Reads integers as bigint, in `node:sqlite`. */
  setReadBigInts?(enabled: boolean): unknown
  /** Reads integers as bigint, in better-sqlite3. */
  safeIntegers?(enabled?: boolean): unknown
}

/** Synchronous methods of a contract, for drivers inside a transaction. */
export type Synchronous<Contract> = {
  readonly [Method in keyof Contract]: Contract[Method] extends (...parameters: infer Parameters) => infer Result
    ? (...parameters: Parameters) => Awaited<Result>
    : never
}

/** Open SQLite database: a `DatabaseSync` of `node:sqlite` or `@photostructure/sqlite`, or a better-sqlite3 `Database`. */
export interface SqliteDatabase {
  /** Runs statements without parameters. */
  exec(sql: string): unknown
  /** Compiles one statement. */
  prepare(sql: string): SqliteStatement
  /** Closes the file. Called only for a database that the store has opened. */
  close(): unknown
}

/**
 * Prepares a statement whose integers are read as bigint, so that amounts above 2^53 keep every digit.
 * @throws TypeError if the database has no way to do so.
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

/** Rows per call of the engine, largest first. More than 16 gain little, and few lengths need few prepared statements. */
const ROWS_PER_CALL = [16, 4, 1] as const

/**
 * Prepares a statement for many rows, which runs in as few calls as possible. One list contains the values of all rows, row after
 * row.
 *
 * @param width Number of values per row.
 * @param sqlFor Returns the statement for this many rows. Parameters that are bound once come before the list.
 * @returns A function that runs it and returns how many rows of the database were changed.
 */
export function prepareRows(
  database: SqliteDatabase,
  width: number,
  sqlFor: (rowCount: number) => string,
): (values: readonly SqlValue[], once?: readonly SqlValue[]) => number {
  const statements = ROWS_PER_CALL.map((rowCount) => ({
    length: rowCount * width,
    statement: database.prepare(sqlFor(rowCount)),
  }))
  return (values, once = NO_VALUES) => {
    let next = 0
    let changed = 0
    for (const { length, statement } of statements) {
      for (; values.length - next >= length; next += length) {
        const rows = values.length === length ? values : values.slice(next, next + length)
        const { changes } = once.length === 0 ? statement.run(...rows) : statement.run(...once, ...rows)
        changed += Number(changes)
      }
    }
    return changed
  }
}

const NO_VALUES: readonly SqlValue[] = []

/** Returns a list such as `(?, ?), (?, ?)`, from one row and the number of rows. */
export function listOf(row: string, rowCount: number): string {
  return Array<string>(rowCount).fill(row).join(', ')
}

/** Ends a transaction that may have been rolled back already. */
export function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // After errors such as a full disk SQLite has rolled back already, and a second rollback fails; the first error is the useful
    // one.
  }
}

/** Returns a time for an integer column, because clocks and options may have fractions of a millisecond. */
export function wholeMilliseconds(timeMs: number): number {
  return Math.floor(timeMs)
}

/** Kind of database fault. `locked`: another connection held it longer than the busy timeout. `failed`: any other fault. */
export type SqliteFault =
  | 'locked'
  | 'read_only'
  | 'io'
  | 'corrupt'
  | 'full'
  | 'cannot_open'
  | 'schema_too_new'
  | 'engine_missing'
  | 'engine_too_old'
  | 'closed'
  | 'failed'

/**
 * Error of an unusable database, described for the operator; a caller of the gateway gets 503 without details. The failed
 * operation had no effect, not even a partial one.
 */
export class SqliteStoreError extends Error {
  // Bundlers rename classes; logs show this name.
  override readonly name = 'SqliteStoreError'
  /** Kind of the fault for programs; `message` describes it for readers. */
  readonly fault: SqliteFault

  constructor(fault: SqliteFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.fault = fault
  }
}

/** Primary result codes (SQLite, "Result and Error Codes"), with the name that better-sqlite3 reports. */
const FAULTS: readonly (readonly [code: number, name: string, fault: SqliteFault, words: string])[] = [
  [5, 'SQLITE_BUSY', 'locked', 'is locked by another process'],
  [6, 'SQLITE_LOCKED', 'locked', 'is locked by another statement'],
  [8, 'SQLITE_READONLY', 'read_only', 'cannot be written: the file or its folder is read-only'],
  [10, 'SQLITE_IOERR', 'io', 'could not be read or written by the operating system'],
  [11, 'SQLITE_CORRUPT', 'corrupt', 'is damaged; restore it from a backup'],
  [13, 'SQLITE_FULL', 'full', 'cannot grow: the disk or the database is full'],
  [14, 'SQLITE_CANTOPEN', 'cannot_open', 'cannot be opened: the folder must exist and be writable'],
  [26, 'SQLITE_NOTADB', 'corrupt', 'is not a SQLite database, or its beginning is damaged'],
]

/** Returns the primary result code of an engine's error; undefined for other errors. */
function primaryCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { errcode, code } = error as { readonly errcode?: unknown; readonly code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  if (typeof code !== 'string' || !code.startsWith('SQLITE_')) return undefined
  // Extended names continue the primary one: SQLITE_BUSY_SNAPSHOT.
  const primaryName = code.split('_', 2).join('_')
  return FAULTS.find(([, name]) => name === primaryName)?.[0] ?? 1
}

/** Whether another connection holds the lock. Such a call changed nothing and may be retried. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === 5
}

/** Returns an engine's error with a description for the operator; other errors are returned unchanged. */
export function explained(error: unknown, label: string): unknown {
  const code = primaryCode(error)
  if (code === undefined) return error
  const [, , fault, words] = FAULTS.find(([known]) => known === code) ?? [1, '', 'failed', 'refused a statement']
  const said = error instanceof Error ? error.message : String(error)
  return new SqliteStoreError(fault, `${label} ${words} (${said})`, error)
}
