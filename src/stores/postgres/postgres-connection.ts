import { systemClock } from '../../core/clock.ts'
import type { ClaimResult, StoredAnswer } from '../idempotency-store.ts'
import type { ChargeDetails } from '../journal.ts'
import { answerOf, answerValues } from '../sql-rows.ts'

/** Result of a statement. */
export interface PostgresResult {
  /** Rows as objects by column name. */
  readonly rows: readonly unknown[]
}

/** Runs one statement with `$1`, `$2` … as values. */
export interface PostgresSession {
  /** Runs a statement. Rejects if the server rejects it. */
  query(text: string, values?: unknown[]): PromiseLike<PostgresResult>
}

/** Statement that a connection prepares once and keeps by its name. */
export interface PostgresPreparedStatement {
  readonly name: string
  readonly text: string
  readonly values?: unknown[]
}

/** Connection from a pool. */
export interface PostgresClient extends PostgresSession {
  query(text: string, values?: unknown[]): PromiseLike<PostgresResult>
  query(statement: PostgresPreparedStatement): PromiseLike<PostgresResult>
  /** Returns the connection to the pool, or closes it if there is an error. */
  release(error?: Error): void
  /** Emits faults of the connection while no statement runs. */
  on?(event: 'error', listener: (error: Error) => void): unknown
}

/** Connection pool, such as `Pool` of `pg`. */
export interface PostgresPool extends PostgresSession {
  /** Acquires a connection for a transaction. */
  connect(): PromiseLike<PostgresClient>
  /** Emits faults of idle connections, and new connections. */
  on?(event: 'error', listener: (error: Error) => void): unknown
  on?(event: 'connect', listener: (client: PostgresClient) => void): unknown
}

/** Any other client: one method for a single statement, one for several in a transaction. */
export interface PostgresTransactions extends PostgresSession {
  /** Runs statements on one connection: all are committed if `run` resolves, and none if it rejects. */
  transaction<Value>(run: (session: PostgresSession) => Promise<Value>): PromiseLike<Value>
}

/** Connection of the driver to the server. Rows are plain objects by column name. */
export interface PostgresConnection {
  /**
   * Runs one statement. Deadlocks, serialization failures and functions that a migration has just replaced are retried a few times;
   * any other error of the client library is rethrown.
   *
   * @param name Name under which each connection of a pool prepares the statement once. If omitted, it is parsed at each call.
   */
  run(text: string, values?: unknown[], name?: string): Promise<readonly PostgresRow[]>
  /** Runs work that {@link close} waits for. */
  accept<Value>(work: () => Promise<Value>): Promise<Value>
  /** Like `run`, also after {@link close}: for work that was accepted before. */
  readonly runAccepted: PostgresConnection['run']
  /** Runs several statements on one connection, all or none. Never retried. */
  transaction<Value>(run: (session: PostgresSession) => Promise<Value>): Promise<Value>
  /** Resolves when no statement is running and accepted work has ended; later calls are rejected. */
  close(): Promise<void>
}

/** Row of a result. The driver selects only text, numbers, booleans, bytes and null. */
export type PostgresRow = Readonly<Record<string, unknown>>

const MAX_ATTEMPTS = 5
/** Serialization failure and deadlock (PostgreSQL, appendix A). */
const RETRYABLE = new Set(['40001', '40P01'])
/**
 * A pooler has sent a prepared statement to a connection that does not know its name, or knows it already; a migration has changed
 * the columns of a prepared statement. Nothing was executed.
 */
const UNPREPARED = new Set(['26000', '42P05', '0A000'])

const watched = new WeakSet<object>()

/** @param timeoutMs Maximum duration of a statement in milliseconds, including the wait for a connection. */
export function postgresConnection(
  database: PostgresPool | PostgresTransactions,
  timeoutMs: number,
): PostgresConnection {
  const underWay = new Set<Promise<unknown>>()
  let isClosed = false
  let canPrepare = true
  const lend = 'connect' in database ? lender(database, timeoutMs) : undefined

  function track<Value>(begin: () => Promise<Value>): Promise<Value> {
    if (isClosed) return Promise.reject(new Error('the PostgreSQL store is closed'))
    const work = begin()
    const end = (): void => void underWay.delete(tracked)
    const tracked: Promise<unknown> = work.then(end, end)
    underWay.add(tracked)
    return work
  }

  async function statement(text: string, values: unknown[] = [], name?: string): Promise<readonly PostgresRow[]> {
    for (let attempt = 1; ; attempt++) {
      const isPrepared = name !== undefined && canPrepare
      const send = (client: PostgresClient) =>
        isPrepared ? client.query({ name, text, values }) : client.query(text, values)
      try {
        const result = await (lend === undefined ? within(timeoutMs, database.query(text, values)) : lend(send))
        return result.rows as readonly PostgresRow[]
      } catch (error) {
        if (isPrepared && UNPREPARED.has(String(codeOf(error)))) {
          canPrepare = false
          continue
        }
        if (attempt === MAX_ATTEMPTS || !isRetryable(error)) throw error
      }
    }
  }

  return {
    run: (text, values, name) => track(() => statement(text, values, name)),
    accept: track,
    runAccepted: statement,
    transaction: (run) =>
      track(async () => {
        if (lend !== undefined) return lend(inside(run))
        return (database as PostgresTransactions).transaction((session) => within(timeoutMs, run(session)))
      }),
    async close() {
      isClosed = true
      await Promise.all(underWay)
    },
  }
}

/** Whether the server rolled back and a retry may succeed. A migration replaces functions between a call's parsing and its execution. */
function isRetryable(error: unknown): boolean {
  const code = String(codeOf(error))
  return RETRYABLE.has(code) || (code === 'XX000' && /cache lookup failed for function/.test(String(error)))
}

/** Returns the SQLSTATE of an error that the server reported. */
export function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}

type Use<Value> = (client: PostgresClient) => PromiseLike<Value>

/** Runs work on a connection of the pool, and returns the connection, or discards it if it may be broken. */
function lender(pool: PostgresPool, timeoutMs: number): <Value>(use: Use<Value>) => Promise<Value> {
  watchPool(pool)
  return async (use) => {
    let client: PostgresClient | undefined
    let isOver = false
    const connectAndUse = async () => {
      const lent = await pool.connect()
      if (isOver) {
        lent.release()
        throw timeoutError(timeoutMs)
      }
      client = lent
      watchClient(lent)
      return use(lent)
    }
    try {
      const value = await within(timeoutMs, connectAndUse())
      client?.release(undefined)
      return value
    } catch (error) {
      client?.release(isBroken(error) ? asError(error) : undefined)
      throw error
    } finally {
      isOver = true
    }
  }
}

/**
 * An error event without a listener would end the host's process. It can be ignored: a running statement fails with the same
 * error, the pool drops an idle connection automatically, and the next statement reports an unavailable server.
 */
function watchPool(pool: PostgresPool): void {
  if (watched.has(pool)) return
  watched.add(pool)
  pool.on?.('error', ignore)
  // Here already, because a new connection may break before the pool has handed it over.
  pool.on?.('connect', watchClient)
}

function watchClient(client: PostgresClient): void {
  if (watched.has(client)) return
  watched.add(client)
  client.on?.('error', ignore)
}

function ignore(): void {}

/** Runs statements between BEGIN and COMMIT. */
function inside<Value>(run: (session: PostgresSession) => Promise<Value>): Use<Value> {
  return async (session) => {
    await session.query('BEGIN')
    try {
      const value = await run(session)
      await session.query('COMMIT')
      return value
    } catch (error) {
      try {
        await session.query('ROLLBACK')
      } catch {
        // Not the error of a statement, so that the connection is closed instead of reused inside a transaction.
        throw new Error('a transaction on PostgreSQL failed and could not be undone', { cause: error })
      }
      throw error
    }
  }
}

/** Read-only transaction: the connection leads to a standby, such as a primary before its failover. */
const READ_ONLY = '25006'

/**
 * After an error of severity ERROR the server waits for the next statement; after any other the connection is gone. A connection
 * to a read-only server is closed too, because a new one may find the writable server.
 */
function isBroken(error: unknown): boolean {
  const isRefusal = typeof error === 'object' && error !== null && 'severity' in error && error.severity === 'ERROR'
  return !isRefusal || codeOf(error) === READ_ONLY
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** Code of an error after the time limit of a statement; Node.js uses it, too. */
export const TIMEOUT = 'ETIMEDOUT'

function timeoutError(timeoutMs: number): Error {
  return Object.assign(new Error(`PostgreSQL did not answer within ${timeoutMs} ms`), { code: TIMEOUT })
}

function within<Value>(timeoutMs: number, work: PromiseLike<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = systemClock.schedule(timeoutMs, () => reject(timeoutError(timeoutMs)))
    work.then(
      (value) => {
        timer.cancel()
        resolve(value)
      },
      (error) => {
        timer.cancel()
        reject(error)
      },
    )
  })
}

/** Returns Unix milliseconds as a parameter. Clocks may return fractions; the column stores whole numbers. */
export function timeParameter(timeMs: number): string {
  return BigInt(Math.floor(timeMs)).toString()
}

/** Returns the time of a journal line as a parameter; null uses the server's clock. */
export function journalTime(clock: 'database' | 'caller', nowMs: number): string | null {
  return clock === 'caller' ? timeParameter(nowMs) : null
}

/** Returns the details of a charge as a parameter. */
export function detailsParameter(details: ChargeDetails | undefined): string | null {
  return details === undefined ? null : JSON.stringify(details)
}

/** Whether a column can store a text. U+0000 is not allowed (PostgreSQL, "Character Types"). */
export function isStorable(text: string): boolean {
  return !text.includes('\u0000')
}

/** Returns a caller's search text as a parameter; null, which equals nothing, if no column can store it. */
export function textParameter(text: string): string | null {
  return isStorable(text) ? text : null
}

/** Columns of the type `outcome`. */
export const RESERVATION_COLUMNS = 'o.status, o.counter, o.answer_status, o.answer_headers, o.answer_body'

/** Returns the result of claiming an idempotency key. */
export function claimResultOf(row: PostgresRow): ClaimResult {
  return row['status'] === 'replay'
    ? { status: 'replay', answer: answerOf(row) }
    : { status: row['status'] as Exclude<ClaimResult['status'], 'replay'> }
}

/** Returns status, headers and body as three parameters; nulls for no answer. */
export function answerParameters(answer: StoredAnswer | undefined): unknown[] {
  return answer === undefined ? [null, null, null] : answerValues(answer)
}
