import { closeSync, fdatasync, openSync } from 'node:fs'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { systemClock, type Timer } from '../../core/clock.ts'
import { checkEnumerated, checkGivenMembers, memberNames } from '../../core/known-members.ts'
import type { UsageStore } from '../../usage/usage-store.ts'
import { type BlobStore, blobsInRows } from '../blob-store.ts'
import type { GatewayStore } from '../gateway-store.ts'
import type { IdempotencyStore } from '../idempotency-store.ts'
import { assertAmount, endedNow, type HostTransaction, type Ledger } from '../ledger.ts'
import { MoneyRules } from '../money-rules.ts'
import { sqlBatches, sqlFiles } from '../sql/sql-files.ts'
import { sqlAudit, sqlInteractions, sqlKeys, sqlSettings, sqlStored, sqlUsage } from '../sql/sql-records.ts'
import { sqlConversations, sqlResponses } from '../sql/sql-responses.ts'
import { sqlTasks, sqlWebhooks } from '../sql/sql-tasks.ts'
import { type SqlRunner, type SqlWork, storeOn } from '../sql/statements.ts'
import type { SqlRow } from '../sql-rows.ts'
import type { TaskStore } from '../task-store.ts'
import { type CommitLog, GroupCommit, type GroupCommitSettings, MAX_RETRY_DELAY_MS } from './group-commit.ts'
import { sqliteAccounts } from './sqlite-accounts.ts'
import { SqliteBooks, type SqliteMoney } from './sqlite-books.ts'
import {
  explained,
  isBusy,
  type SqliteDatabase,
  type SqliteStatement,
  SqliteStoreError,
  type SqlValue,
} from './sqlite-database.ts'
import { assertTrustedEngine, openWithEngine } from './sqlite-engine.ts'
import { sqliteClaims, sqlitePurge } from './sqlite-expiring.ts'
import { migrate } from './sqlite-migrations.ts'
import { SQLITE_DIALECT } from './sqlite-statements.ts'
import { sqliteTasks } from './sqlite-tasks.ts'
import { sqliteRecordInsert, sqliteUsage } from './sqlite-usage.ts'

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
  let session: Session | undefined
  let starting: Promise<void> | undefined
  let isClosed = false

  function opened(): Session {
    if (session === undefined || isClosed)
      throw new SqliteStoreError('closed', `${label} is not open: ${isClosed ? 'it was closed' : 'call start() first'}`)
    return session
  }

  async function open(): Promise<void> {
    const connection =
      options.database ??
      (await openWithEngine(options.path).catch((error: unknown) => {
        throw explained(error, label)
      }))
    try {
      if (options.database !== undefined) assertTrustedEngine(connection)
      await retryOnBusy(() => configure(connection, label), waiting)
      await retryOnBusy(() => migrate(connection, label), waiting)
      log = await retryOnBusy(() => openLog(connection, label), waiting)
      session = await retryOnBusy(() => openSession(connection, { ...waiting, log }, clock), waiting)
      database = connection
    } catch (error) {
      log?.close()
      if (options.database === undefined) connection.close()
      throw error
    }
  }

  return {
    // Work that waits when the store is closed is still done.
    ...storesOn(opened, () => session!),
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

/** Open database with a current schema. */
type Session = ReturnType<typeof openSession>

/** Prepares an open and migrated database. `clock` decides when holds expire. */
function openSession(database: SqliteDatabase, options: GroupCommitSettings, clock: 'database' | 'caller') {
  const work = sqliteWorker(database)
  const tasks = sqlTasks(SQLITE_DIALECT)
  const insertRecords = sqliteRecordInsert(database)
  // The database is a file on this machine, so its clock is the machine's.
  const timeOf = clock === 'caller' ? (callerMs: number) => callerMs : () => Date.now()
  const claims = sqliteClaims(database, timeOf)
  const insertTask = (task: Parameters<TaskStore['insert']>[0]): void => work(tasks.work.insert(task))
  const books = new SqliteBooks(database, { claims, insertTask, insertRecords, timeOf })
  const money = new MoneyRules(books)
  const purge = sqlitePurge(database)
  const group = new GroupCommit(database, options, books)
  const write = <Value>(operation: () => Value): Promise<Value> =>
    group.write(() => {
      // It may read data that earlier operations of the group have buffered.
      books.flush()
      return operation()
    })
  const read = <Value>(operation: () => Value): Promise<Value> => retryOnBusy(operation, options)
  const writeWork: SqlRunner['write'] = (create, ...parameters) => write(() => work(create(...parameters)))
  const runner: SqlRunner = {
    read: (create, ...parameters) => read(() => work(create(...parameters))),
    write: writeWork,
    transact: writeWork,
  }
  return {
    accounts: sqliteAccounts(database),
    claims,
    money,
    usage: sqliteUsage(database, insertRecords),
    purge: (nowMs: number) => purge(timeOf(nowMs)),
    /** Runs an operation in the next group, and resolves when it is durable. */
    write,
    /** Moves money, which several operations of a group may write together. Without `isFlushed`, it resolves after the commit. */
    writeMoney: <Value>(operation: (money: SqliteMoney) => Value, isFlushed?: boolean) =>
      group.write(() => operation(money), isFlushed),
    /** Moves money after statements of the host, in a transaction of both. */
    writeMoneyAfter<Value>(run: HostStatements, operation: (money: SqliteMoney) => Value) {
      // Half of the time that other processes wait for the lock.
      const statements = limitedStatements(database, run, options.busyTimeoutMs / 2)
      return group.write(() => operation(money), true, statements)
    },
    /** Reads committed data. */
    read,
    /** Resolves when no write is waiting. */
    drained: () => group.drained(),
    runner,
  }
}

type HostStatements = (transaction: HostTransaction) => Promise<void>

/** Returns a function that runs statements of the host on the connection of the store, and rejects after `limitMs`. */
function limitedStatements(database: SqliteDatabase, run: HostStatements, limitMs: number): () => Promise<void> {
  return async () => {
    let isOver = false
    const query: HostTransaction['query'] = async (text, values = []) => {
      if (isOver) throw new Error('the transaction has ended')
      const statement = database.prepare(text)
      // better-sqlite3 reads rows only from statements that return some.
      if (statement.reader !== false) return { rows: statement.all(...(values as SqlValue[])) }
      statement.run(...(values as SqlValue[]))
      return { rows: [] }
    }
    let timer: Timer | undefined
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`the host's statements took longer than ${limitMs} ms`)
      timer = systemClock.schedule(limitMs, () => reject(error))
    })
    try {
      await Promise.race([run({ query }), late])
    } finally {
      isOver = true
      timer?.cancel()
    }
  }
}

interface Prepared {
  readonly statement: SqliteStatement
  /** Index of the parameter at each `?`. */
  readonly order: readonly number[]
  readonly returnsRows: boolean
}

/** Returns a function that runs work on an open database. Each text is compiled once. */
function sqliteWorker(database: SqliteDatabase): <Value>(work: SqlWork<Value>) => Value {
  const prepared = new Map<string, Prepared>()

  function prepare(text: string): Prepared {
    const order: number[] = []
    const sql = text.replace(/\$(\d+)/g, (_, place: string) => {
      order.push(Number(place) - 1)
      return '?'
    })
    const made = { statement: database.prepare(sql), order, returnsRows: /^SELECT|^WITH|\bRETURNING\b/.test(sql) }
    prepared.set(text, made)
    return made
  }

  return (work) => {
    let step = work.next()
    while (step.done !== true) {
      const [text, parameters] = step.value
      const { statement, order, returnsRows } = prepared.get(text) ?? prepare(text)
      const values: SqlValue[] = []
      for (const index of order) {
        const value = parameters[index]!
        if (typeof value === 'boolean') values.push(value ? 1 : 0)
        else values.push(Array.isArray(value) ? JSON.stringify(value) : (value as SqlValue))
      }
      if (!returnsRows) statement.run(...values)
      step = work.next(returnsRows ? (statement.all(...values) as SqlRow[]) : [])
    }
    return step.value
  }
}

/**
 * Repeats an operation that needs no group while another connection holds the lock, for at most `busyTimeoutMs`.
 * @throws SqliteStoreError
 */
async function retryOnBusy<Value>(run: () => Value, { label, busyTimeoutMs }: GroupCommitSettings): Promise<Value> {
  const startedAtMs = performance.now()
  while (true) {
    try {
      return run()
    } catch (error) {
      if (error instanceof SqliteStoreError) throw error
      if (!isBusy(error) || performance.now() - startedAtMs >= busyTimeoutMs) throw explained(error, label)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * MAX_RETRY_DELAY_MS))
    }
  }
}

type Opened = () => Session

/** Implements the contracts on a session. `opened` throws if the store is closed; `waiting` returns the session of queued work. */
function storesOn(opened: Opened, waiting: Opened): Omit<GatewayStore, 'start' | 'close'> {
  const runner: SqlRunner = {
    read: (create, ...parameters) => opened().runner.read(create, ...parameters),
    write: (create, ...parameters) => opened().runner.write(create, ...parameters),
    transact: (create, ...parameters) => opened().runner.write(create, ...parameters),
  }
  const conversations = sqlConversations(SQLITE_DIALECT)
  const responses = sqlResponses(SQLITE_DIALECT, conversations)
  const webhooks = sqlWebhooks(SQLITE_DIALECT)
  return {
    ledger: ledgerOn(opened),
    audit: storeOn(runner, sqlAudit(SQLITE_DIALECT)),
    settings: storeOn(runner, sqlSettings(SQLITE_DIALECT)),
    keys: storeOn(runner, sqlKeys(SQLITE_DIALECT)),
    idempotency: idempotencyOn(opened),
    interactions: storeOn(runner, sqlInteractions(SQLITE_DIALECT)),
    responses: storeOn(runner, responses),
    conversations: storeOn(runner, conversations),
    tasks: storeOn(runner, sqliteTasks({ session: waiting, webhooks, saveResponse: responses.work.save })),
    webhooks: storeOn(runner, webhooks),
    usage: { ...usageOn(opened), ...storeOn(runner, sqlUsage(SQLITE_DIALECT)) },
    files: storeOn(runner, sqlFiles(SQLITE_DIALECT)),
    blobs: sqliteBlobs(runner),
    batches: storeOn(runner, sqlBatches(SQLITE_DIALECT)),
    stored: async (accountId, kind, nowMs) => runner.read(sqlStored, SQLITE_DIALECT, accountId, kind, nowMs),
  }
}

/** Returns functions that read and write with the session, and reject if the store is closed. */
function accessTo(opened: Opened) {
  return {
    async read<Value>(operation: (session: Session) => Value): Promise<Value> {
      const session = opened()
      return session.read(() => operation(session))
    },
    async write<Value>(operation: (session: Session) => Value): Promise<Value> {
      const session = opened()
      return session.write(() => operation(session))
    },
  }
}

function idempotencyOn(opened: Opened): IdempotencyStore {
  const { write } = accessTo(opened)
  return {
    claim: (claim, nowMs) => write(({ claims }) => claims.claim(claim, nowMs)),
    complete: (claim, answer, nowMs) =>
      write(({ claims }) => claims.complete(claim, answer, claims.endOf(claim.expiresAtMs, nowMs))),
    release: (claim) => write(({ claims }) => claims.release(claim)),
  }
}

/** Maximum number of purge steps per sweep, of 500 rows each. A gateway sweeps every 30 seconds: up to 10,000 rows a second. */
const MAX_PURGE_STEPS = 600

/** Accounts and money. Amounts are checked before anything is queued. */
function ledgerOn(opened: Opened): Ledger {
  const { read, write } = accessTo(opened)
  return {
    async createAccount(account, nowMs) {
      if (account.spendingCap !== undefined) assertAmount(account.spendingCap.amount)
      if (account.creditLimit !== undefined) assertAmount(account.creditLimit)
      return write(({ accounts }) => accounts.createAccount(account, nowMs))
    },
    async updateAccount(accountId, change) {
      if (change.spendingCap != null) assertAmount(change.spendingCap.amount)
      if (change.creditLimit != null) assertAmount(change.creditLimit)
      return write(({ accounts }) => accounts.updateAccount(accountId, change))
    },
    account: (accountId) => read(({ accounts }) => accounts.account(accountId)),
    listAccounts: (query) => read(({ accounts }) => accounts.listAccounts(query)),
    entries: (accountId, limit) => read(({ accounts }) => accounts.entries(accountId, limit)),
    credit: (credit, nowMs) => write(({ money }) => money.credit(credit, nowMs)),
    adjust: (adjustment, nowMs) => write(({ money }) => money.adjust(adjustment, nowMs)),
    refund: (refund, nowMs) => write(({ money }) => money.refund(refund, nowMs)),
    lines: (query) => read(({ accounts }) => accounts.lines(query)),
    sums: (range) => read(({ accounts }) => accounts.sums(range)),
    openHolds: (query) => read(({ accounts }) => accounts.openHolds(query)),
    spending: (accountId, keyIds) => read(({ accounts }) => accounts.spending(accountId, keyIds)),
    expireCredits: (nowMs, limit) => write(({ money }) => money.expireCredits(nowMs, limit)),
    reserve: (reservation, nowMs) =>
      asAsync(() => {
        assertAmount(reservation.amount)
        // A hold alone need not survive a power failure, because its process does not either. A task outlives it, and so does a claim.
        const isFlushed = reservation.task !== undefined || reservation.claim !== undefined
        return opened().writeMoney((money) => money.reserve(reservation, nowMs), isFlushed)
      }),
    enlarge: (holdId, amount, nowMs) =>
      asAsync(() => {
        assertAmount(amount)
        // The hold of a task outlives the process.
        return opened().writeMoney((money) => money.enlarge(holdId, amount, nowMs), true)
      }),
    settle: (settlement, nowMs) =>
      asAsync(() => {
        assertAmount(settlement.amount)
        const settled = opened().writeMoney((money) => money.settle(settlement, nowMs))
        if (settlement.record === undefined) return settled
        return settled.catch(async (fault: unknown) => {
          // A record must not prevent a charge. Other faults of the database would stop the second settlement too.
          if (fault instanceof SqliteStoreError && fault.fault !== 'failed') throw fault
          const unrecorded = { ...settlement, record: undefined }
          return { ...(await opened().writeMoney((money) => money.settle(unrecorded, nowMs))), recordFault: fault }
        })
      }),
    async settleWith(settlement, run, nowMs) {
      assertAmount(settlement.amount)
      return opened().writeMoneyAfter(run, (money) => endedNow(money.settle(settlement, nowMs)))
    },
    void: async (holdId, nowMs) => opened().writeMoney((money) => money.void(holdId, nowMs)),
    async expire(nowMs, limit) {
      const count = await opened().writeMoney((money) => money.expire(nowMs, limit))
      // Separate steps, so that other writers and the event loop run in between.
      for (let step = 0; step < MAX_PURGE_STEPS; step++) {
        if (await write(({ purge }) => purge(nowMs))) break
      }
      return count
    },
  }
}

/** Maximum number of records that one transaction adds to the sums: some milliseconds of the lock and of the event loop. */
const MAX_ADDED_PER_STEP = 500

/** Queries run in steps, so that other work runs in between; so do roll-ups. */
function usageOn(opened: Opened): Omit<UsageStore, 'records' | 'verify' | 'forget'> {
  const { write } = accessTo(opened)
  return {
    write: (records) => write(({ usage }) => usage.write(records)),
    rollUp: (limit, nowMs) => write(({ usage }) => usage.rollUp(Math.min(limit, MAX_ADDED_PER_STEP), nowMs)),
    async series(query) {
      const { read, usage } = opened()
      const series = await read(() => usage.series(query))
      let hasMore: boolean
      do {
        hasMore = await read(() => series.step())
        await endOfTurn()
      } while (hasMore)
      return series.rows()
    },
    rebuild: (range) => write(({ usage }) => usage.rebuild(range)),
  }
}

/** Like an `async` function, without the extra promise and microtasks around the returned one. */
function asAsync<Value>(run: () => Promise<Value>): Promise<Value> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Rows that one transaction removes: four megabytes, so that other writers and the event loop wait for only some milliseconds. */
const DELETE_BATCH_SIZE = 8

/** Creates a store of content on SQLite: one transaction for few rows, so that other writers run in between. */
function sqliteBlobs({ read, write }: SqlRunner): BlobStore {
  async function remove(number: number): Promise<void> {
    while (!(await write(removeRows, number)));
  }

  return blobsInRows<number>({
    begin: ({ id, expiresAtMs }) =>
      write(function* () {
        // Random, because the engine would reuse a number, and readers or removers of deleted content would find other content.
        const [row] = yield [
          'INSERT INTO signalbox_blobs (number, id, expires_at_ms) VALUES (abs(random() >> 12), $1, $2) RETURNING number',
          [id, Math.floor(expiresAtMs)],
        ]
        return Number(row!['number'])
      }),
    addRow: (number, place, bytes) =>
      write(function* () {
        yield ['INSERT INTO signalbox_blob_rows (blob, place, bytes) VALUES ($1, $2, $3)', [number, place, bytes]]
      }),
    finish: (number, id, byteLength) =>
      write(function* () {
        yield* discard(id)
        const rows = yield [
          'UPDATE signalbox_blobs SET is_whole = 1, byte_length = $2 WHERE number = $1 AND expires_at_ms > 0 RETURNING id',
          [number, byteLength],
        ]
        if (rows.length === 0) throw new Error('the blob expired while it was written')
      }),
    remove,
    find: (id) =>
      read(function* () {
        const [row] = yield ['SELECT number, byte_length FROM signalbox_blobs WHERE id = $1 AND is_whole = 1', [id]]
        return row && { handle: Number(row['number']), byteLength: Number(row['byte_length']) }
      }),
    row: (number, place) =>
      read(function* () {
        const [row] = yield ['SELECT bytes FROM signalbox_blob_rows WHERE blob = $1 AND place = $2', [number, place]]
        return row?.['bytes'] as Uint8Array | undefined
      }),
    async delete(id) {
      const [number] = await write(discard, id)
      if (number !== undefined) await remove(number)
      return number !== undefined
    },
    async purge(nowMs, limit) {
      const numbers = await write(discardExpired, nowMs, limit)
      for (const number of numbers) await remove(number)
      return numbers.length
    },
  })
}

const DISCARD = 'UPDATE signalbox_blobs SET is_whole = 0, expires_at_ms = 0 WHERE'

/** Makes a blob unreachable and returns the number by which its rows are removed. */
function* discard(id: string): SqlWork<number[]> {
  const rows = yield [`${DISCARD} id = $1 AND is_whole = 1 RETURNING number`, [id]]
  return rows.map(({ number }) => Number(number))
}

/** Makes expired blobs unreachable, and returns their numbers and those that were not removed completely yet. */
function* discardExpired(nowMs: number, limit: number): SqlWork<number[]> {
  const rows = yield [
    `${DISCARD} number IN (SELECT number FROM signalbox_blobs WHERE expires_at_ms <= $1 LIMIT $2) RETURNING number`,
    [nowMs, limit],
  ]
  return rows.map(({ number }) => Number(number))
}

/** Removes some rows of an unreachable blob. Returns true if they were the last, and the blob is gone. */
function* removeRows(number: number): SqlWork<boolean> {
  const rows = yield [
    `DELETE FROM signalbox_blob_rows WHERE rowid IN
       (SELECT rowid FROM signalbox_blob_rows WHERE blob = $1 LIMIT ${DELETE_BATCH_SIZE}) RETURNING place`,
    [number],
  ]
  if (rows.length === DELETE_BATCH_SIZE) return false
  yield ['DELETE FROM signalbox_blobs WHERE number = $1', [number]]
  return true
}
