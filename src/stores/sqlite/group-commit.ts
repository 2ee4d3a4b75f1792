import { rollBack } from './roll-back.ts'
import type { SqliteDatabase, SqliteStatement } from './sqlite-database.ts'
import { explained, isBusy, SqliteStoreError } from './sqlite-store-error.ts'

/** Most operations in one transaction, so that the event loop is never kept for longer than some milliseconds. */
const MAX_OPERATIONS = 512

/** The lock is asked for again after a random time up to this. */
const MAX_RETRY_DELAY_MS = 5

/** Writes that operations keep back inside their transaction, so that equal ones go to the database together. */
export interface KeptBackWrites {
  /** A transaction has begun; without `mayKeepBack` every operation writes at once. */
  begin(mayKeepBack: boolean): void
  /** Writes what was kept back. When it throws, the transaction must be undone. */
  flush(): void
  /** The transaction was committed or undone. */
  end(isCommitted: boolean): void
}

interface Waiting {
  readonly operation: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Writes together what waits together: the operations of one turn of the event loop share one transaction, and so one
 * flush of the disk. None is resolved before all of them are on the disk. An operation that throws is undone and rejected
 * alone: the group is then rolled back and done again with a savepoint for each, which costs too much to be the rule.
 * While another process writes, the group waits without blocking this one.
 */
export class GroupCommit {
  readonly #database: SqliteDatabase
  readonly #label: string
  readonly #busyTimeoutMs: number
  readonly #keptBack: KeptBackWrites
  readonly #begin: SqliteStatement
  readonly #savepoint: SqliteStatement
  readonly #release: SqliteStatement
  readonly #undo: SqliteStatement
  readonly #commit: SqliteStatement
  #waiting: Waiting[] = []
  #isScheduled = false
  /** The next group begins with operations of which one has failed before. */
  #needsSavepoints = false
  #busySinceMs: number | undefined
  #idle: (() => void)[] = []

  constructor(
    database: SqliteDatabase,
    { label, busyTimeoutMs }: { readonly label: string; readonly busyTimeoutMs: number },
    keptBack: KeptBackWrites,
  ) {
    this.#database = database
    this.#label = label
    this.#busyTimeoutMs = busyTimeoutMs
    this.#keptBack = keptBack
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#savepoint = database.prepare('SAVEPOINT signalbox_operation')
    this.#release = database.prepare('RELEASE signalbox_operation')
    this.#undo = database.prepare('ROLLBACK TO signalbox_operation')
    this.#commit = database.prepare('COMMIT')
  }

  /**
   * Runs a synchronous operation in the next group; resolves with what it returns once that is durable. It must do nothing
   * but read and write the database, since it may be rolled back and run again.
   */
  write<Value>(operation: () => Value): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.push({ operation, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Resolves once nothing waits any more. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#schedule()
    })
  }

  #schedule(delayMs?: number): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const run = (): void => {
      this.#isScheduled = false
      this.#flush()
    }
    if (delayMs === undefined) setImmediate(run)
    else setTimeout(run, delayMs)
  }

  #flush(): void {
    if (this.#waiting.length > 0 && this.#lock()) this.#commitGroup(this.#waiting.splice(0, MAX_OPERATIONS))
    if (this.#waiting.length > 0) {
      this.#schedule()
      return
    }
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }

  /** False when the lock was not to be had; then a later attempt is on its way, or all that waited was rejected. */
  #lock(): boolean {
    try {
      this.#begin.run()
      this.#busySinceMs = undefined
      return true
    } catch (error) {
      const nowMs = performance.now()
      this.#busySinceMs ??= nowMs
      if (isBusy(error) && nowMs - this.#busySinceMs < this.#busyTimeoutMs) {
        this.#schedule(Math.random() * MAX_RETRY_DELAY_MS)
        return false
      }
      this.#busySinceMs = undefined
      rejectAll(this.#waiting.splice(0), explained(error, this.#label))
      return false
    }
  }

  #commitGroup(group: readonly Waiting[]): void {
    if (this.#needsSavepoints) {
      this.#needsSavepoints = false
      this.#commitOneByOne(group)
      return
    }
    this.#keptBack.begin(true)
    let values: unknown[]
    try {
      values = group.map(({ operation }) => operation())
      this.#keptBack.flush()
    } catch {
      // Which one it was, and why, comes out when the group is done again.
      this.#undoAll()
      this.#needsSavepoints = true
      this.#waiting.unshift(...group)
      return
    }
    this.#commitAnd(group, () => {
      for (const [index, { resolve }] of group.entries()) resolve(values[index])
    })
  }

  #commitOneByOne(group: readonly Waiting[]): void {
    const answers: (() => void)[] = []
    this.#keptBack.begin(false)
    try {
      for (const waiting of group) answers.push(this.#attempt(waiting))
    } catch (error) {
      this.#undoAll()
      rejectAll(group, explained(error, this.#label))
      return
    }
    this.#commitAnd(group, () => {
      for (const answer of answers) answer()
    })
  }

  #commitAnd(group: readonly Waiting[], answer: () => void): void {
    try {
      this.#commit.run()
    } catch (error) {
      this.#undoAll()
      rejectAll(group, explained(error, this.#label))
      return
    }
    this.#keptBack.end(true)
    answer()
  }

  #undoAll(): void {
    rollBack(this.#database)
    this.#keptBack.end(false)
  }

  #attempt({ operation, resolve, reject }: Waiting): () => void {
    this.#savepoint.run()
    try {
      const value = operation()
      this.#release.run()
      return () => resolve(value)
    } catch (error) {
      try {
        this.#undo.run()
        this.#release.run()
      } catch {
        // SQLite has given up the whole transaction, so the others are undone too, for the same reason.
        throw error
      }
      return () => reject(explained(error, this.#label))
    }
  }
}

function rejectAll(group: readonly Waiting[], error: unknown): void {
  for (const { reject } of group) reject(error)
}

/**
 * Runs something that needs no group, again and again while another connection holds the lock, for `busyTimeoutMs` at most.
 * @throws SqliteStoreError
 */
export async function whenUnlocked<Value>(run: () => Value, label: string, busyTimeoutMs: number): Promise<Value> {
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
