import { workAtEndOfTurn } from '../../core/end-of-turn.ts'
import {
  explained,
  isBusy,
  rollBack,
  type SqliteDatabase,
  type SqliteStatement,
  SqliteStoreError,
} from './sqlite-database.ts'

/** Most operations in one transaction, so that the event loop is never kept for longer than some milliseconds. */
const MAX_OPERATIONS = 512

/** A busy lock is retried after a random time up to this. */
const MAX_RETRY_DELAY_MS = 5

/** Writes that operations buffer inside their transaction, so that several go to the database together. */
export interface WriteBuffer {
  /** Writes what was buffered. When it throws, the transaction is undone. */
  flush(): void
  /** Drops what was buffered: the operations that buffered it are undone. */
  discard(): void
}

/** Puts what is committed on the disk without blocking, and calls back once. */
export type Flush = (done: (error: Error | null) => void) => void

/** The log that a database commits to, where a commit alone is not on the disk. */
export interface CommitLog {
  readonly flush: Flush
  /**
   * Writes what the log holds into the database itself, flushed, where a flush of the log has failed. False: another connection reads an
   * older state, so it has to be tried again. Throws what the engine throws.
   */
  empty(): boolean
}

/** How long to wait for the lock, and what errors call the database. */
export interface GroupCommitOptions {
  readonly label: string
  readonly busyTimeoutMs: number
  /** Absent: what is committed is on the disk. */
  readonly log?: CommitLog | undefined
}

interface Waiting {
  readonly operation: () => unknown
  readonly isFlushed: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Group commit: the operations of one turn of the event loop share one transaction, and so one flush. None is resolved
 * before all of them are on disk. Operations that come during a flush wait for its end and share the next one, so that groups grow
 * with the load and not with a delay. If an operation throws, the group is rolled back and run again with a savepoint for each
 * operation, so that only the failing one is rejected; savepoints are too expensive for every group. While another process
 * writes, the group waits without blocking this one.
 */
export class GroupCommit {
  readonly #database: SqliteDatabase
  readonly #options: GroupCommitOptions
  readonly #buffer: WriteBuffer
  readonly #begin: SqliteStatement
  readonly #savepoint: SqliteStatement
  readonly #release: SqliteStatement
  readonly #rollBackTo: SqliteStatement
  readonly #commit: SqliteStatement
  #waiting: Waiting[] = []
  #isScheduled = false
  #isFlushing = false
  /** A flush has failed: what was committed, and is read by later operations, may not be on the disk. */
  #isLogInDoubt = false
  /** The next group begins with operations of which one has failed before. */
  #needsSavepoints = false
  #busySinceMs: number | undefined
  #idle: (() => void)[] = []

  constructor(database: SqliteDatabase, options: GroupCommitOptions, buffer: WriteBuffer) {
    this.#database = database
    this.#options = options
    this.#buffer = buffer
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#savepoint = database.prepare('SAVEPOINT signalbox_operation')
    this.#release = database.prepare('RELEASE signalbox_operation')
    this.#rollBackTo = database.prepare('ROLLBACK TO signalbox_operation')
    this.#commit = database.prepare('COMMIT')
  }

  /**
   * Runs a synchronous operation in the next group; resolves with its result once that is durable. It must only read and
   * write the database, because it may be rolled back and run again.
   *
   * @param isFlushed False: it resolves once it is committed, and needs no flush of its own. The next one takes it along.
   */
  write<Value>(operation: () => Value, isFlushed = true): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.push({ operation, isFlushed, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Resolves when nothing waits. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#schedule()
    })
  }

  #schedule(delayMs?: number): void {
    if (this.#isScheduled || this.#isFlushing) return
    this.#isScheduled = true
    const run = (): void => {
      this.#isScheduled = false
      this.#writeGroup()
    }
    if (delayMs === undefined) workAtEndOfTurn(run)
    else setTimeout(run, delayMs)
  }

  #writeGroup(): void {
    if (this.#waiting.length > 0 && this.#isReady()) this.#runGroup(this.#waiting.splice(0, MAX_OPERATIONS))
    if (!this.#isFlushing) this.#goOn()
  }

  #goOn(): void {
    if (this.#waiting.length > 0) {
      this.#schedule()
      return
    }
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }

  /** Begins the transaction. False if that must wait; then a retry is scheduled, or everything that waited was rejected. */
  #isReady(): boolean {
    try {
      if (this.#isLogInDoubt && this.#options.log?.empty() === false) return this.#isRetried()
      this.#isLogInDoubt = false
      this.#begin.run()
      this.#busySinceMs = undefined
      return true
    } catch (error) {
      return isBusy(error) ? this.#isRetried(error) : this.#refuseAll(error)
    }
  }

  /** Always false: waits for another connection, and at the end of that time rejects everything. */
  #isRetried(busy?: unknown): false {
    const nowMs = performance.now()
    this.#busySinceMs ??= nowMs
    if (nowMs - this.#busySinceMs >= this.#options.busyTimeoutMs) {
      const { label } = this.#options
      return this.#refuseAll(
        busy ?? new SqliteStoreError('locked', `${label} is read by a connection that keeps its old state`),
      )
    }
    this.#schedule(Math.random() * MAX_RETRY_DELAY_MS)
    return false
  }

  #refuseAll(error: unknown): false {
    this.#busySinceMs = undefined
    this.#rejectAll(this.#waiting.splice(0), error)
    return false
  }

  #runGroup(group: readonly Waiting[]): void {
    const hasSavepoints = this.#needsSavepoints
    this.#needsSavepoints = false
    const values: unknown[] = []
    try {
      for (const waiting of group) values.push(hasSavepoints ? this.#runAlone(waiting) : waiting.operation())
      this.#buffer.flush()
    } catch (error) {
      this.#undo()
      if (hasSavepoints) {
        this.#rejectAll(group, error)
        return
      }
      // The second run with savepoints finds the failing operation and its error.
      this.#needsSavepoints = true
      this.#waiting.unshift(...group)
      return
    }
    try {
      this.#commit.run()
    } catch (error) {
      this.#undo()
      this.#rejectAll(group, error)
      return
    }
    const { log, label } = this.#options
    const flushed: number[] = []
    for (let index = 0; index < group.length; index++)
      if (log !== undefined && group[index]!.isFlushed) flushed.push(index)
      else answer(group[index]!, values[index])
    if (log === undefined || flushed.length === 0) return
    this.#isFlushing = true
    log.flush((error) => {
      this.#isFlushing = false
      this.#isLogInDoubt ||= error !== null
      // What is committed may be lost, and may stay: as after a connection that breaks during a commit, the caller knows neither.
      const fault = error && new SqliteStoreError('io', `${label} could not be flushed (${error.message})`, error)
      for (const index of flushed)
        if (fault === null) answer(group[index]!, values[index])
        else group[index]!.reject(fault)
      this.#goOn()
    })
  }

  /** Runs an operation so that only it is undone if it throws. */
  #runAlone({ operation }: Waiting): unknown {
    this.#savepoint.run()
    try {
      const value = operation()
      this.#buffer.flush()
      this.#release.run()
      return value
    } catch (error) {
      this.#buffer.discard()
      try {
        this.#rollBackTo.run()
        this.#release.run()
      } catch {
        // SQLite has given up the whole transaction, so the others are undone too, for the same reason.
        throw error
      }
      return new Refused(explained(error, this.#options.label))
    }
  }

  #undo(): void {
    rollBack(this.#database)
    this.#buffer.discard()
  }

  #rejectAll(group: readonly Waiting[], error: unknown): void {
    const reason = explained(error, this.#options.label)
    for (const { reject } of group) reject(reason)
  }
}

/** What an operation of a group that threw has instead of a value. */
class Refused {
  readonly reason: unknown

  constructor(reason: unknown) {
    this.reason = reason
  }
}

/** Tells the caller of an operation how it ended, after the commit. */
function answer({ resolve, reject }: Waiting, value: unknown): void {
  if (value instanceof Refused) reject(value.reason)
  else resolve(value)
}

/**
 * Runs something that needs no group, again and again while another connection holds the lock, for `busyTimeoutMs` at most.
 * @throws SqliteStoreError
 */
export async function retryOnBusy<Value>(
  run: () => Value,
  { label, busyTimeoutMs }: GroupCommitOptions,
): Promise<Value> {
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
