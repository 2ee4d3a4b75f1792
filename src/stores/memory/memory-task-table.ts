import { Buffer } from 'node:buffer'
import { byAge } from '../resolution.ts'
import type { StoredUsage } from '../sql-rows.ts'
import { OPEN_TASK_STATES, type TaskPage, type TaskRecord } from '../task-store.ts'
import { accountKey } from './account-shares.ts'
import { MemoryTable } from './memory-table.ts'

/** Limits of stored tasks. */
export interface MemoryTasksOptions {
  /**
   * Maximum number of ended tasks; of accounts with more than their share, those that ended first are dropped first. Default 10,000.
   */
  readonly maxFinishedTasks?: number | undefined
}

/** Task and its lease. */
export interface TaskEntry {
  readonly accountId: string
  readonly record: TaskRecord
  /** Unix milliseconds, or zero without a lease. */
  leaseUntilMs: number
}

/** Tasks in this process, shared by the memory ledger and the memory task store. Open tasks are never dropped. */
export class MemoryTaskTable {
  readonly #entries: MemoryTable<TaskEntry, 'account' | 'upstream' | 'polled' | 'unpolled' | 'finished'>

  constructor(options: MemoryTasksOptions = {}) {
    this.#entries = new MemoryTable({
      nameOf: ({ record }) => record.id,
      maxCount: options.maxFinishedTasks ?? 10_000,
      isLimited: ({ record }) => !isOpen(record),
      indexes: {
        account: ({ accountId }) => [accountId],
        upstream: ({ accountId, record: { upstreamId } }) =>
          upstreamId === undefined ? [] : [accountKey(accountId, upstreamId)],
        polled: ({ record }) => (isPolled(record) ? [record.credentialId] : []),
        unpolled: ({ record }) => (isOpen(record) && !isPolled(record) ? [''] : []),
        finished: ({ record }) => (isOpen(record) ? [] : ['']),
      },
    })
  }

  /** Adds a task; an existing one with the same id stays unchanged. */
  insert(record: TaskRecord): void {
    if (this.get(record.id) === undefined) this.#entries.set({ accountId: record.accountId, record, leaseUntilMs: 0 })
  }

  get(id: string): TaskEntry | undefined {
    return this.#entries.get(id)
  }

  find(accountId: string, id: string): TaskRecord | undefined {
    const record = this.get(id)?.record
    if (record?.accountId === accountId) return record
    return [...this.#entries.by('upstream', accountKey(accountId, id))].at(-1)?.record
  }

  /** Counts the tasks of an account, and the bytes of waiting requests, which are the only large part. */
  stored(accountId: string): StoredUsage {
    const sizes = this.#ofAccount(accountId).map(({ details }) => Buffer.byteLength(details.deferred?.body ?? ''))
    return { count: sizes.length, byteLength: sizes.reduce((sum, size) => sum + size, 0) }
  }

  isOpen(id: string): boolean {
    const entry = this.get(id)
    return entry !== undefined && isOpen(entry.record)
  }

  *all(): Iterable<TaskRecord> {
    for (const { record } of this.#entries.all()) yield record
  }

  /** Returns open tasks of all vendor accounts. */
  *open(): Iterable<TaskEntry> {
    yield* this.#entries.by('unpolled', '')
    for (const credentialId of this.credentialIds()) yield* this.#entries.by('polled', credentialId)
  }

  /** Returns tasks that have ended, the earliest end first. */
  finished(): Iterable<TaskEntry> {
    return this.#entries.by('finished', '')
  }

  /** Returns the credential ids of tasks in state `queued` or `in_progress`. */
  credentialIds(): readonly string[] {
    return [...this.#entries.keys('polled')]
  }

  /** Returns tasks in state `queued` or `in_progress`, or one of them. */
  polled(credentialId: string, id?: string): Iterable<TaskEntry> {
    if (id === undefined) return this.#entries.by('polled', credentialId)
    const entry = this.get(id)
    return entry !== undefined && isPolled(entry.record) && entry.record.credentialId === credentialId ? [entry] : []
  }

  /** Replaces a task; its lease ends. */
  replace(record: TaskRecord): void {
    this.#entries.set({ accountId: record.accountId, record, leaseUntilMs: 0 })
  }

  remove(id: string): void {
    this.#entries.delete(id)
  }

  list(accountId: string, page: { limit: number; after?: string | undefined; before?: string | undefined }): TaskPage {
    const tasks = this.#ofAccount(accountId).sort((one, other) => byAge(other, one))
    const after = page.after === undefined ? -1 : tasks.findIndex(({ id }) => id === page.after)
    const before = page.before === undefined ? tasks.length : tasks.findIndex(({ id }) => id === page.before)
    if (before === -1 || (page.after !== undefined && after === -1)) return { tasks: [], hasMore: false }
    const between = tasks.slice(after + 1, Math.max(before, after + 1))
    const count = Math.max(0, page.limit)
    const isBackwards = page.after === undefined && page.before !== undefined
    return {
      tasks: isBackwards ? between.slice(Math.max(0, between.length - count)) : between.slice(0, count),
      hasMore: between.length > count,
    }
  }

  #ofAccount(accountId: string): TaskRecord[] {
    return Array.from(this.#entries.by('account', accountId), ({ record }) => record)
  }
}

function isOpen({ state }: TaskRecord): boolean {
  return OPEN_TASK_STATES.includes(state)
}

function isPolled({ state }: TaskRecord): boolean {
  return state === 'queued' || state === 'in_progress'
}
