import { OPEN_TASK_STATES, type TaskPage, type TaskRecord } from '../task-store.ts'

/** Bounds of what is kept of tasks. */
export interface MemoryTasksOptions {
  /** Most tasks kept that have ended, those that ended first are dropped first; 10,000 when absent. */
  readonly maxFinishedTasks?: number | undefined
}

/** A task and who is busy with it. */
export interface TaskEntry {
  record: TaskRecord
  /** Unix milliseconds; zero: nobody. */
  leaseUntilMs: number
}

/** Tasks in this process, shared by the memory ledger and the memory task store. Open tasks are never dropped. */
export class MemoryTaskTable {
  readonly #entries = new Map<string, TaskEntry>()
  readonly #byUpstreamId = new Map<string, TaskEntry>()
  /** Of each account, oldest first. */
  readonly #byAccount = new Map<string, TaskEntry[]>()
  readonly #open = new Set<TaskEntry>()
  /** Open tasks that a vendor is asked about. */
  readonly #polled = new Map<string, Set<TaskEntry>>()
  readonly #finished = new Set<TaskEntry>()
  readonly #maxFinished: number

  constructor(options: MemoryTasksOptions = {}) {
    this.#maxFinished = options.maxFinishedTasks ?? 10_000
  }

  /** Adds a task; one of the same id stays as it is. */
  insert(record: TaskRecord): void {
    if (this.#entries.has(record.id)) return
    const entry: TaskEntry = { record, leaseUntilMs: 0 }
    this.#entries.set(record.id, entry)
    const siblings = this.#byAccount.get(record.accountId)
    if (siblings === undefined) this.#byAccount.set(record.accountId, [entry])
    else siblings.splice(placeOf(siblings, record), 0, entry)
    this.#noteUpstreamId(entry)
    this.#enterPolled(entry)
    this.#enterState(entry)
  }

  get(id: string): TaskEntry | undefined {
    return this.#entries.get(id)
  }

  find(accountId: string, id: string): TaskRecord | undefined {
    const record = this.#entries.get(id)?.record
    return record?.accountId === accountId ? record : this.#byUpstreamId.get(upstreamName(accountId, id))?.record
  }

  isOpen(id: string): boolean {
    const entry = this.#entries.get(id)
    return entry !== undefined && this.#open.has(entry)
  }

  /** Open tasks of all vendor accounts. */
  open(): Iterable<TaskEntry> {
    return this.#open
  }

  /** Tasks that have ended, those that ended first come first. */
  finished(): Iterable<TaskEntry> {
    return this.#finished
  }

  /** Tasks in state `queued` or `in_progress`, or one of them. */
  polled(vendorAccount: string, id?: string): Iterable<TaskEntry> {
    const polled = this.#polled.get(vendorAccount) ?? new Set()
    if (id === undefined) return polled
    const entry = this.#entries.get(id)
    return entry !== undefined && polled.has(entry) ? [entry] : []
  }

  /**
   * Replaces a task; its lease ends. Account, id and time of creation are those that it had. Only what has changed is entered
   * anew: most changes tell no more than when a vendor is asked next.
   */
  replace(entry: TaskEntry, record: TaskRecord): void {
    const before = entry.record
    entry.record = record
    entry.leaseUntilMs = 0
    if (record.upstreamId !== before.upstreamId) {
      this.#forgetUpstreamId(entry, before)
      this.#noteUpstreamId(entry)
    }
    if (isPolled(record) !== isPolled(before) || record.vendorAccount !== before.vendorAccount) {
      this.#leavePolled(entry, before)
      this.#enterPolled(entry)
    }
    const wasOpen = OPEN_TASK_STATES.includes(before.state)
    if (OPEN_TASK_STATES.includes(record.state) === wasOpen) return
    this.#open.delete(entry)
    this.#finished.delete(entry)
    this.#enterState(entry)
  }

  remove(entry: TaskEntry): void {
    const { id, accountId } = entry.record
    this.#open.delete(entry)
    this.#finished.delete(entry)
    this.#leavePolled(entry, entry.record)
    this.#forgetUpstreamId(entry, entry.record)
    this.#entries.delete(id)
    const siblings = this.#byAccount.get(accountId) ?? []
    siblings.splice(placeOf(siblings, entry.record), 1)
    if (siblings.length === 0) this.#byAccount.delete(accountId)
  }

  list(accountId: string, page: { limit: number; after?: string | undefined; before?: string | undefined }): TaskPage {
    const siblings = this.#byAccount.get(accountId) ?? []
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

  #noteUpstreamId(entry: TaskEntry): void {
    const { accountId, upstreamId } = entry.record
    if (upstreamId !== undefined) this.#byUpstreamId.set(upstreamName(accountId, upstreamId), entry)
  }

  #forgetUpstreamId(entry: TaskEntry, { accountId, upstreamId }: TaskRecord): void {
    if (upstreamId === undefined) return
    const name = upstreamName(accountId, upstreamId)
    if (this.#byUpstreamId.get(name) === entry) this.#byUpstreamId.delete(name)
  }

  #enterPolled(entry: TaskEntry): void {
    if (!isPolled(entry.record)) return
    const { vendorAccount } = entry.record
    const polled = this.#polled.get(vendorAccount)
    if (polled === undefined) this.#polled.set(vendorAccount, new Set([entry]))
    else polled.add(entry)
  }

  #leavePolled(entry: TaskEntry, { vendorAccount }: TaskRecord): void {
    const polled = this.#polled.get(vendorAccount)
    polled?.delete(entry)
    if (polled?.size === 0) this.#polled.delete(vendorAccount)
  }

  #enterState(entry: TaskEntry): void {
    if (OPEN_TASK_STATES.includes(entry.record.state)) {
      this.#open.add(entry)
      return
    }
    this.#finished.add(entry)
    const [oldest] = this.#finished
    if (this.#finished.size > this.#maxFinished && oldest !== undefined) this.remove(oldest)
  }
}

function isPolled({ state }: TaskRecord): boolean {
  return state === 'queued' || state === 'in_progress'
}

/** Where a task of an account stands, or belongs, among all of them, oldest first. */
function placeOf(siblings: readonly TaskEntry[], { createdAtMs, id }: TaskRecord): number {
  let low = 0
  let high = siblings.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const { record } = siblings[middle]!
    const isOlder = record.createdAtMs < createdAtMs || (record.createdAtMs === createdAtMs && record.id < id)
    if (isOlder) low = middle + 1
    else high = middle
  }
  return low
}

/** The length keeps account and id apart, whatever characters they hold. */
function upstreamName(accountId: string, upstreamId: string): string {
  return `${accountId.length}:${accountId}${upstreamId}`
}
