import { closeSync, fdatasync, openSync } from 'node:fs'
import { checkEnumerated, checkGivenMembers, memberNames } from '../../core/known-members.ts'
import type { GatewayStore } from '../gateway-store.ts'
import { type CommitLog, retryOnBusy } from './group-commit.ts'
import { explained, type SqliteDatabase, SqliteStoreError } from './sqlite-database.ts'
import { assertTrustedEngine, openWithEngine } from './sqlite-engine.ts'
import { migrate } from './sqlite-migrations.ts'
import { type SqliteSession, sqliteSession, storesOn } from './sqlite-session.ts'

export {
  type SqliteDatabase,
  type SqliteFault,
  type SqliteStatement,
  SqliteStoreError,
  type SqlValue,
} from './sqlite-database.ts'

/** Location of the database, and the waiting time for it. */
export type SqliteStoreOptions = (
  | {
      /** File of the database, created if it does not exist. `:memory:` keeps everything in this process, for tests. */
      readonly path: string
      readonly database?: never
    }
  | {
      /**
       * Connection that the host has opened, such as a better-sqlite3 handle, for this store alone: its settings (journal mode,
       * timeout, foreign keys) are changed. `close()` keeps it open.
       */
      readonly database: SqliteDatabase
      readonly path?: never
    }
) & {
  /** Waiting time while another process writes, in milliseconds. Default 5,000. After that the call fails with `locked`. */
  readonly busyTimeoutMs?: number | undefined
  /**
   * Clock that decides when a hold expires. Defaults to the machine's clock, so that a gateway with a wrong clock ends no hold of
   * another. `caller`, for tests: the clock of the gateway.
   */
  readonly clock?: 'database' | 'caller' | undefined
}

const SQLITE_STORE_OPTIONS = memberNames<SqliteStoreOptions>()('path database busyTimeoutMs clock')

/**
 * Creates a store for accounts, keys, idempotency keys, tasks, messages and conversations in one SQLite file, for one machine:
 * several processes may share the file, and acknowledged changes survive a crash of process and machine. The file must not be on
 * a network drive (SQLite, "Write-Ahead Logging"), and a process must not open it with a second copy of SQLite, such as that of
 * another package: two copies do not see each other's locks (SQLite, "How To Corrupt An SQLite Database File", 2.2.1).
 *
 * `start()` and every method reject with {@link SqliteStoreError} if the database cannot be used.
 * @throws TypeError for unknown options, and without `path` and `database`.
 *
 * @example
 * const gateway = createGateway({ vendors, store: sqliteStore({ path: 'signalbox.db' }) })
 */
export function sqliteStore(options: SqliteStoreOptions): GatewayStore {
  checkGivenMembers(options, SQLITE_STORE_OPTIONS, 'sqliteStore')
  checkEnumerated(options.clock, ['database', 'caller'], 'sqliteStore', 'clock')
  if (options.path === undefined && options.database === undefined)
    throw new TypeError('sqliteStore: set path to a file, or database to an open one')
  const label =
    options.path === undefined ? 'the given SQLite database' : `the SQLite database ${JSON.stringify(options.path)}`
  const waiting = { label, busyTimeoutMs: options.busyTimeoutMs ?? 5_000 }
  const clock = options.clock ?? 'database'
  let database: SqliteDatabase | undefined
  let log: OpenLog | undefined
  let session: SqliteSession | undefined
  let starting: Promise<void> | undefined
  let isClosed = false

  function opened(): SqliteSession {
    if (session === undefined || isClosed)
      throw new SqliteStoreError('closed', `${label} is not open: ${isClosed ? 'it was closed' : 'call start() first'}`)
    return session
  }

  async function open(): Promise<void> {
    const connection = options.database ?? (await openFile(options.path, label))
    try {
      if (options.database !== undefined) assertTrustedEngine(connection)
      await retryOnBusy(() => configure(connection, label), waiting)
      await retryOnBusy(() => migrate(connection, label), waiting)
      log = await retryOnBusy(() => openLog(connection, label), waiting)
      session = await retryOnBusy(() => sqliteSession(connection, { ...waiting, log, clock }), waiting)
      database = connection
    } catch (error) {
      log?.close()
      if (options.database === undefined) connection.close()
      throw error
    }
  }

  return {
    ...storesOn(opened),
    start() {
      if (isClosed) return Promise.reject(new SqliteStoreError('closed', `${label} was closed`))
      starting ??= open().catch((error: unknown) => {
        // The next start retries.
        starting = undefined
        throw error
      })
      return starting
    },
    async close() {
      if (isClosed) return
      isClosed = true
      // The caller of the failed start already got the error.
      await starting?.catch(() => undefined)
      await session?.drained()
      log?.close()
      if (options.database === undefined && database !== undefined) closeFile(database)
    },
  }
}

/** Closes a file completely: some engines keep the log file until their statements are collected. */
function closeFile(database: SqliteDatabase): void {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // The log is already durable, and the next start reads it.
  } finally {
    database.close()
  }
}

async function openFile(path: string, label: string): Promise<SqliteDatabase> {
  try {
    return await openWithEngine(path)
  } catch (error) {
    throw explained(error, label)
  }
}

function configure(database: SqliteDatabase, label: string): void {
  // Longer waits do not block the process.
  database.exec('PRAGMA busy_timeout = 5')
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() as {
    readonly journal_mode: string
  }
  if (mode !== 'wal' && mode !== 'memory')
    throw new SqliteStoreError(
      'cannot_open',
      `${label} cannot be put in WAL mode (it stays in mode ${JSON.stringify(mode)})`,
    )
  // FULL flushes the log at every commit, for commits before `openLog`.
  database.exec('PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 67108864')
  // 16 MiB of log before it is copied into the file, instead of 4, so that pages that change with every request are copied less often.
  database.exec('PRAGMA wal_autocheckpoint = 4000')
}

/** Log of a database, flushed by another thread. */
interface OpenLog extends CommitLog {
  close(): void
}

/**
 * Moves the flush of the log out of the commit, where it would block the event loop. Acknowledged changes still survive a power
 * failure, because they are acknowledged after the flush; checkpoints flush as before (SQLite, "PRAGMA synchronous"). Undefined
 * for a database in memory.
 * @throws SqliteStoreError `cannot_open`.
 */
function openLog(database: SqliteDatabase, label: string): OpenLog | undefined {
  const files = database.prepare('PRAGMA database_list').all() as readonly {
    readonly name: string
    readonly file: string | null
  }[]
  const path = files.find(({ name }) => name === 'main')?.file
  if (path === undefined || path === null || path === '') return undefined
  let descriptor: number
  try {
    // It can be closed at any time: SQLite holds no lock on the log (SQLite, "WAL-mode File Format", section 2.3).
    descriptor = openSync(`${path}-wal`, 'r+')
  } catch (error) {
    throw new SqliteStoreError('cannot_open', `the log of ${label} cannot be opened (${String(error)})`, error)
  }
  database.exec('PRAGMA synchronous = NORMAL')
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  return {
    flush: (done) => fdatasync(descriptor, done),
    empty() {
      const { busy, log, checkpointed } = checkpoint.get() as Readonly<Record<string, number | bigint>>
      return Number(busy) === 0 && log === checkpointed
    },
    close: () => closeSync(descriptor),
  }
}
