/**
 * What is wrong with a database. `locked`: another connection held it longer than the busy timeout. `failed`: anything that
 * has no name of its own here.
 */
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
 * A database that cannot be used, in words for the operator: a caller of the gateway sees 503 and none of this. Whatever
 * was asked was not done, not even in part.
 */
export class SqliteStoreError extends Error {
  // Bundlers rename classes; logs show this name.
  override readonly name = 'SqliteStoreError'
  readonly fault: SqliteFault

  constructor(fault: SqliteFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.fault = fault
  }
}

/** Primary result codes (SQLite, "Result and Error Codes") by the name that better-sqlite3 reports. */
const CODE_BY_NAME: Readonly<Record<string, number>> = {
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_NOTADB: 26,
}

const FAULT_BY_CODE: ReadonlyMap<number, readonly [SqliteFault, string]> = new Map([
  [5, ['locked', 'is locked by another process']],
  [6, ['locked', 'is locked by another statement']],
  [8, ['read_only', 'cannot be written: the file or its folder is read-only']],
  [10, ['io', 'could not be read or written by the operating system']],
  [11, ['corrupt', 'is damaged; restore it from a backup']],
  [13, ['full', 'cannot grow: the disk or the database is full']],
  [14, ['cannot_open', 'cannot be opened: the folder must exist and be writable']],
  [26, ['corrupt', 'is not a SQLite database, or its beginning is damaged']],
])

/** Primary result code of an engine's error; undefined for anything else. */
function primaryCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { errcode, code } = error as { readonly errcode?: unknown; readonly code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  if (typeof code !== 'string' || !code.startsWith('SQLITE_')) return undefined
  // Extended names continue the primary one: SQLITE_BUSY_SNAPSHOT.
  return CODE_BY_NAME[code.split('_', 2).join('_')] ?? 1
}

/** Does another connection hold the lock? Such a call changed nothing and may be tried again. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === 5
}

/** The error of an engine in words for the operator; errors that are not the engine's stay as they are. */
export function explained(error: unknown, label: string): unknown {
  const code = primaryCode(error)
  if (code === undefined) return error
  const [fault, words] = FAULT_BY_CODE.get(code) ?? ['failed', 'refused a statement']
  const said = error instanceof Error ? error.message : String(error)
  return new SqliteStoreError(fault, `${label} ${words} (${said})`, error)
}
