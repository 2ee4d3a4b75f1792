// See docs/decisions/0011-sqlite.md.

import { workAtEndOfTurn } from '../../core/calls-in-flight.ts'
import {
  explained,
  isBusy,
  rollBack,
  type SqliteDatabase,
  type SqliteStatement,
  SqliteStoreError,
} from './sqlite-database.ts'

/** Maximum number of operations per transaction, so that the event loop is blocked for only some milliseconds. */
const MAX_OPERATIONS = 512

/** Maximum delay before a retry of a busy lock. The delay is random. */
export const MAX_RETRY_DELAY_MS = 5

/** Writes that operations buffer inside their transaction, so that several reach the database together. */
export interface WriteBuffer {
  /** Writes the buffer. If it throws, the transaction is undone. */
  flush(): void
  /** Drops the buffer, because its operations are undone. */
  discard(): void
}

/** Flushes committed data to the disk without blocking, and calls back once. */
export type Flush = (done: (error: Error | null) => void) => void

/** Log that a database commits to, if a commit alone is not on the disk. */
export interface CommitLog {
  readonly flush: Flush
  /**
   * Writes the content of the log into the database itself, flushed, after a flush of the log has failed. Returns false if
   * another connection reads an older state, so that it must be retried. Throws the errors of the engine.
   */
  empty(): boolean
}

/** Waiting time for the lock, and the database's name in errors. */
export interface GroupCommitSettings {
  readonly label: string
  readonly busyTimeoutMs: number
  /** Commit log. If omitted, committed data is on the disk. */
  readonly log?: CommitLog | undefined
}

interface Waiting {
  readonly operation: () => unknown
  readonly hostStatements: (() => Promise<void>) | undefined
  readonly isFlushed: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Group commit: the operations of one turn of the event loop share one transaction, and so one flush. None is resolved before all
 * of them are on disk. Operations that arrive during a flush share the next one, so that groups grow with the load instead of a
 * delay. If an operation throws, the group is rolled back and run again with a savepoint for each operation, so that only the
 * failing one is rejected; savepoints are too expensive for every group. While another process writes, the group waits without
 * blocking this one.
 */
export class GroupCommit {
  readonly #database: SqliteDatabase
  readonly #options: GroupCommitSettings
  readonly #buffer: WriteBuffer
  readonly #begin: SqliteStatement
  readonly #savepoint: SqliteStatement
  readonly #release: SqliteStatement
  readonly #rollBackTo: SqliteStatement
  readonly #commit: SqliteStatement
  #waiting: Waiting[] = []
  #isScheduled = false
  /** Whether a flush or a transaction of the host is in progress, so that no group may begin. */
  #isOccupied = false
  /** Whether a flush has failed: committed data, which later operations read, may not be on the disk. */
  #isLogInDoubt = false
  /** Whether the next group begins with operations of which one has failed before. */
  #needsSavepoints = false
  #busySinceMs: number | undefined
  #idle: (() => void)[] = []

  constructor(database: SqliteDatabase, options: GroupCommitSettings, buffer: WriteBuffer) {
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
   * Runs a synchronous operation in the next group, and resolves with its result when that is durable. It must only read and
   * write the database, because it may be rolled back and run again.
   *
   * @param isFlushed Whether to wait for a flush. If false, it resolves after the commit, and the next flush includes it.
   * @param hostStatements Statements of the host, which run once before the operation, in a transaction of both. Other writes wait.
   */
  write<Value>(operation: () => Value, isFlushed = true, hostStatements?: () => Promise<void>): Promise<Value> {
    return new Promise<Value>((resolved, reject) => {
      const resolve = resolved as (value: unknown) => void
      this.#waiting.push({ operation, hostStatements, isFlushed, resolve, reject })
      this.#schedule()
    })
  }

  /** Resolves when no operation waits. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#schedule()
    })
  }

  #schedule(delayMs?: number): void {
    if (this.#isScheduled || this.#isOccupied) return
    this.#isScheduled = true
    const run = (): void => {
      this.#isScheduled = false
      this.#writeGroup()
    }
    if (delayMs === undefined) workAtEndOfTurn(run)
    else setTimeout(run, delayMs)
  }

  #writeGroup(): void {
    if (this.#waiting.length > 0 && this.#isReady()) {
      const hosted = this.#waiting.findIndex(({ hostStatements }) => hostStatements !== undefined)
      if (hosted === 0) void this.#runHosted(this.#waiting.shift()!)
      else this.#runGroup(this.#waiting.splice(0, hosted < 0 ? MAX_OPERATIONS : Math.min(hosted, MAX_OPERATIONS)))
    }
    if (!this.#isOccupied) this.#goOn()
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

  /** Begins the transaction. Returns false if that must wait; a retry is then scheduled, or all waiting operations were rejected. */
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

  /** Always returns false: waits for another connection, and rejects everything after the time limit. */
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
    this.#commitGroup(group, values)
  }

  /** Runs statements of the host; then their operation and the commit, in one turn. Never rejects. */
  async #runHosted(waiting: Waiting): Promise<void> {
    this.#isOccupied = true
    try {
      this.#savepoint.run()
      await waiting.hostStatements!()
      // Throws if the host has ended the transaction, and with it the savepoint.
      this.#release.run()
      const value = waiting.operation()
      this.#buffer.flush()
      this.#isOccupied = false
      this.#commitGroup([waiting], [value])
    } catch (error) {
      this.#isOccupied = false
      this.#undo()
      this.#rejectAll([waiting], error)
    }
    if (!this.#isOccupied) this.#goOn()
  }

  #commitGroup(group: readonly Waiting[], values: readonly unknown[]): void {
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
    this.#isOccupied = true
    log.flush((error) => {
      this.#isOccupied = false
      this.#isLogInDoubt ||= error !== null
      // Committed data may be lost or kept: as after a connection that breaks during a commit, the caller cannot know.
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
        // SQLite has rolled back the whole transaction, so the others are undone too, for the same reason.
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

/** Result of a failed operation of a group. */
class Refused {
  readonly reason: unknown

  constructor(reason: unknown) {
    this.reason = reason
  }
}

/** Passes the result of an operation to its caller, after the commit. */
function answer({ resolve, reject }: Waiting, value: unknown): void {
  if (value instanceof Refused) reject(value.reason)
  else resolve(value)
}
