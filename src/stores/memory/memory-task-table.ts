import { Buffer } from 'node:buffer'
import type { StoredUsage } from '../sql-rows.ts'
import { OPEN_TASK_STATES, type TaskPage, type TaskRecord } from '../task-store.ts'
import { AccountShares } from './account-shares.ts'

/** Limits of stored tasks. */
export interface MemoryTasksOptions {
  /**
   * Maximum number of ended tasks; of accounts with more than their share, those that ended first are dropped first. Default 10,000.
   */
  readonly maxFinishedTasks?: number | undefined
}

/** Task and its lease. */
export interface TaskEntry {
  record: TaskRecord
  /** Unix milliseconds, or zero without a lease. */
  leaseUntilMs: number
}

/** Tasks of one account. */
class AccountTasks {
  /** Entries, oldest first. */
  readonly entries: TaskEntry[] = []
  readonly byUpstreamId = new Map<string, TaskEntry>()
}

/** Tasks in this process, shared by the memory ledger and the memory task store. Open tasks are never dropped. */
export class MemoryTaskTable {
  readonly #entries = new Map<string, TaskEntry>()
  readonly #accounts = new Map<string, AccountTasks>()
  /** Open tasks that a vendor is polled about, by credential id. */
  readonly #polled = new Map<string, Set<TaskEntry>>()
  /** Open tasks that no vendor is polled about. Each is in only one set, because inserting into a large set is expensive. */
  readonly #unpolled = new Set<TaskEntry>()
  readonly #finished = new Set<TaskEntry>()
  readonly #finishedShares: AccountShares

  constructor(options: MemoryTasksOptions = {}) {
    this.#finishedShares = new AccountShares(options.maxFinishedTasks ?? 10_000)
  }

  /** Adds a task; an existing one with the same id stays unchanged. */
  insert(record: TaskRecord): void {
    if (this.#entries.has(record.id)) return
    const entry: TaskEntry = { record, leaseUntilMs: 0 }
    this.#entries.set(record.id, entry)
    const account = this.#accounts.get(record.accountId) ?? this.#addAccount(record.accountId)
    insertByAge(account.entries, entry)
    if (record.upstreamId !== undefined) account.byUpstreamId.set(record.upstreamId, entry)
    this.#enter(entry)
  }

  get(id: string): TaskEntry | undefined {
    return this.#entries.get(id)
  }

  find(accountId: string, id: string): TaskRecord | undefined {
    const record = this.#entries.get(id)?.record
    return record?.accountId === accountId ? record : this.#accounts.get(accountId)?.byUpstreamId.get(id)?.record
  }

  /** Counts the tasks of an account, and the bytes of waiting requests, which are the only large part. */
  stored(accountId: string): StoredUsage {
    const entries = this.#accounts.get(accountId)?.entries ?? []
    const sizes = entries.map(({ record }) => Buffer.byteLength(record.details.deferred?.body ?? ''))
    return { count: entries.length, byteLength: sizes.reduce((sum, size) => sum + size, 0) }
  }

  isOpen(id: string): boolean {
    const entry = this.#entries.get(id)
    return entry !== undefined && OPEN_TASK_STATES.includes(entry.record.state)
  }

  *all(): Iterable<TaskRecord> {
    for (const entry of this.#entries.values()) yield entry.record
  }

  /** Returns open tasks of all vendor accounts. */
  *open(): Iterable<TaskEntry> {
    for (const entry of this.#unpolled) yield entry
    for (const polled of this.#polled.values()) for (const entry of polled) yield entry
  }

  /** Returns tasks that have ended, the earliest end first. */
  finished(): Iterable<TaskEntry> {
    return this.#finished
  }

  /** Returns the credential ids of tasks in state `queued` or `in_progress`. */
  credentialIds(): readonly string[] {
    return [...this.#polled.keys()]
  }

  /** Returns tasks in state `queued` or `in_progress`, or one of them. */
  polled(credentialId: string, id?: string): Iterable<TaskEntry> {
    const polled = this.#polled.get(credentialId) ?? new Set()
    if (id === undefined) return polled
    const entry = this.#entries.get(id)
    return entry !== undefined && polled.has(entry) ? [entry] : []
  }

  /**
   * Replaces a task; its lease ends. Account, id and creation time stay. Only changed keys are indexed again, because most
   * changes only set the next poll.
   */
  replace(entry: TaskEntry, record: TaskRecord): void {
    const before = entry.record
    entry.record = record
    entry.leaseUntilMs = 0
    if (record.upstreamId !== before.upstreamId) this.#renameUpstream(entry, before.upstreamId)
    const place = placeOfState(record)
    const isAskedElsewhere = place === 'polled' && record.credentialId !== before.credentialId
    if (place === placeOfState(before) && !isAskedElsewhere) return
    this.#unindex(entry, before)
    this.#enter(entry)
  }

  remove(entry: TaskEntry): void {
    const { id, accountId, upstreamId } = entry.record
    this.#unindex(entry, entry.record)
    this.#entries.delete(id)
    const account = this.#accounts.get(accountId)
    if (account === undefined) return
    const { entries, byUpstreamId } = account
    entries.splice(placeOf(entries, entry.record), 1)
    if (entries.length === 0) this.#accounts.delete(accountId)
    else if (upstreamId !== undefined && byUpstreamId.get(upstreamId) === entry) byUpstreamId.delete(upstreamId)
  }

  list(accountId: string, page: { limit: number; after?: string | undefined; before?: string | undefined }): TaskPage {
    const siblings = this.#accounts.get(accountId)?.entries ?? []
    const after = page.after === undefined ? siblings.length : this.#place(siblings, accountId, page.after)
    const before = page.before === undefined ? -1 : this.#place(siblings, accountId, page.before)
    if (after === undefined || before === undefined) return { tasks: [], hasMore: false }
    const low = before + 1
    const count = Math.max(0, Math.min(page.limit, after - low))
    const start = page.after === undefined && page.before !== undefined ? low : after - count
    const tasks = siblings.slice(start, start + count).map((entry) => entry.record)
    return { tasks: tasks.reverse(), hasMore: after - low > count }
  }

  #place(siblings: readonly TaskEntry[], accountId: string, id: string): number | undefined {
    const record = this.#entries.get(id)?.record
    return record?.accountId === accountId ? placeOf(siblings, record) : undefined
  }

  #addAccount(accountId: string): AccountTasks {
    const account = new AccountTasks()
    this.#accounts.set(accountId, account)
    return account
  }

  #renameUpstream(entry: TaskEntry, before: string | undefined): void {
    const { accountId, upstreamId } = entry.record
    const byUpstreamId = this.#accounts.get(accountId)?.byUpstreamId
    if (before !== undefined && byUpstreamId?.get(before) === entry) byUpstreamId.delete(before)
    if (upstreamId !== undefined) byUpstreamId?.set(upstreamId, entry)
  }

  #enter(entry: TaskEntry): void {
    const { credentialId } = entry.record
    switch (placeOfState(entry.record)) {
      case 'unpolled':
        this.#unpolled.add(entry)
        break
      case 'polled': {
        const polled = this.#polled.get(credentialId)
        if (polled === undefined) this.#polled.set(credentialId, new Set([entry]))
        else polled.add(entry)
        break
      }
      case 'finished': {
        const { accountId, id } = entry.record
        this.#finished.add(entry)
        this.#finishedShares.set(accountId, id)
        for (const surplus of this.#finishedShares.surplus(accountId)) this.remove(this.#entries.get(surplus)!)
      }
    }
  }

  #unindex(entry: TaskEntry, before: TaskRecord): void {
    const place = placeOfState(before)
    if (place === 'unpolled') this.#unpolled.delete(entry)
    else if (place === 'finished') {
      this.#finished.delete(entry)
      this.#finishedShares.delete(before.accountId, before.id)
    } else this.#removePolled(entry, before.credentialId)
  }

  #removePolled(entry: TaskEntry, credentialId: string): void {
    const polled = this.#polled.get(credentialId)
    polled?.delete(entry)
    if (polled?.size === 0) this.#polled.delete(credentialId)
  }
}

/** Returns the table's set that contains a task. */
function placeOfState({ state }: TaskRecord): 'unpolled' | 'polled' | 'finished' {
  if (state === 'queued' || state === 'in_progress') return 'polled'
  return OPEN_TASK_STATES.includes(state) ? 'unpolled' : 'finished'
}

function insertByAge(siblings: TaskEntry[], entry: TaskEntry): void {
  const place = placeOf(siblings, entry.record)
  if (place === siblings.length) siblings.push(entry)
  else siblings.splice(place, 0, entry)
}

/** Number of youngest tasks that are searched first: a new task is younger than all except those of the same millisecond. */
const YOUNGEST = 32

/** Returns the position of a task, or of a new one, among those of its account, oldest first. */
function placeOf(siblings: readonly TaskEntry[], record: TaskRecord): number {
  const beforeYoungest = siblings.length - YOUNGEST
  const isYoung = beforeYoungest > 0 && isOlder(siblings[beforeYoungest - 1]!.record, record)
  let low = isYoung ? beforeYoungest : 0
  let high = siblings.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isOlder(siblings[middle]!.record, record)) low = middle + 1
    else high = middle
  }
  return low
}

function isOlder(one: TaskRecord, other: TaskRecord): boolean {
  return one.createdAtMs < other.createdAtMs || (one.createdAtMs === other.createdAtMs && one.id < other.id)
}
