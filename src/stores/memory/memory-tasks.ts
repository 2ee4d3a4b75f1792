import { assertAmount } from '../ledger.ts'
import type { ResponseStore } from '../response-store.ts'
import type { TaskChange, TaskChangeResult, TaskRecord, TaskStore } from '../task-store.ts'
import { longestOverdue, newestFirst } from './map-scans.ts'
import type { MemoryLedger } from './memory-by-hand.ts'
import type { MemoryClaims } from './memory-claims.ts'
import type { MemoryTaskTable, TaskEntry } from './memory-task-table.ts'
import type { MemoryWebhooks } from './memory-webhooks.ts'

/** Parts that tasks share with the rest of a memory store, so that a change and its consequences are one step. */
export interface MemoryTasksParts {
  /** Table that the ledger writes to. */
  readonly table: MemoryTaskTable
  readonly ledger: MemoryLedger
  readonly claims: MemoryClaims
  readonly webhooks: MemoryWebhooks
  readonly responses: Pick<ResponseStore, 'save'>
}

/** Tasks in this process; synchronous. */
export function memoryTasks({ table, ledger, claims, webhooks, responses }: MemoryTasksParts): TaskStore {
  const budgets = new PollBudget()

  function endHold({ holdId }: TaskRecord, resolve: TaskChange['resolve'], nowMs: number): TaskChangeResult {
    if (holdId === undefined || resolve === undefined) return {}
    if (resolve.kind === 'settle') return { charge: ledger.settle({ holdId, ...resolve }, nowMs) }
    ledger.void(holdId, nowMs)
    return {}
  }

  return {
    insert: (task) => table.insert(task),

    find: (accountId, id) => table.find(accountId, id),

    list: (accountId, page) => table.list(accountId, page),

    listAll: (query) => newestFirst(table.all(), query),

    change({ id, from, set, resolve, answered, keeps, delivery }, nowMs) {
      if (resolve?.kind === 'settle') assertAmount(resolve.amount)
      const entry = table.get(id)
      if (entry === undefined || !from.includes(entry.record.state)) return undefined
      // First, so that a failure to store the answer leaves everything unchanged.
      if (keeps !== undefined) responses.save(keeps)
      // Before the hold ends, because a key with its answer is not freed with the hold.
      if (answered !== undefined) claims.complete(answered.claim, answered.answer)
      const result = endHold(entry.record, resolve, nowMs)
      table.replace(entry, changed(entry.record, set))
      if (delivery !== undefined) webhooks.add(delivery)
      return result
    },

    discard(id, claim, nowMs) {
      const entry = table.get(id)
      if (entry?.record.state !== 'submitting') return false
      endHold(entry.record, { kind: 'void' }, nowMs)
      if (claim !== undefined) claims.release(claim)
      table.remove(entry)
      return true
    },

    leaseDue({ credentialId, nowMs, leaseUntilMs, limit, budget, id, exceptAccounts = [] }) {
      const left = Math.min(limit, budgets.left(credentialId, budget, nowMs))
      const timeOf = (entry: TaskEntry): number | undefined => {
        if (entry.leaseUntilMs > nowMs || exceptAccounts.includes(entry.record.accountId)) return undefined
        return id === undefined ? entry.record.nextPollAtMs : nowMs
      }
      const taken = longestOverdue(table.polled(credentialId, id), timeOf, nowMs, left)
      budgets.count(credentialId, taken.length, budget.windowMs, nowMs)
      return lease(taken, leaseUntilMs)
    },

    credentialIds: () => table.credentialIds(),

    leaseExpired({ nowMs, leaseUntilMs, limit }) {
      const timeOf = (entry: TaskEntry): number | undefined =>
        entry.leaseUntilMs > nowMs ? undefined : entry.record.deadlineAtMs
      return lease(longestOverdue(table.open(), timeOf, nowMs, limit), leaseUntilMs)
    },

    purge({ changedUntilMs, limit }) {
      const timeOf = ({ record }: TaskEntry): number | undefined =>
        webhooks.isAnyPending(record.id) ? undefined : record.updatedAtMs
      const purged = longestOverdue(table.finished(), timeOf, changedUntilMs, limit)
      for (const entry of purged) {
        table.remove(entry)
        webhooks.purge(entry.record.id)
      }
      return purged.length
    },
  }
}

function lease(entries: readonly TaskEntry[], leaseUntilMs: number): readonly TaskRecord[] {
  for (const entry of entries) entry.leaseUntilMs = leaseUntilMs
  return entries.map((entry) => entry.record)
}

/** Returns the task with the members that have a value: undefined means unchanged, even if it is explicit. */
function changed(task: TaskRecord, set: TaskChange['set']): TaskRecord {
  return {
    id: task.id,
    accountId: task.accountId,
    keyId: task.keyId,
    state: set.state ?? task.state,
    upstreamId: set.upstreamId ?? task.upstreamId,
    credentialId: set.credentialId ?? task.credentialId,
    holdId: task.holdId,
    createdAtMs: task.createdAtMs,
    updatedAtMs: set.updatedAtMs ?? task.updatedAtMs,
    nextPollAtMs: set.nextPollAtMs ?? task.nextPollAtMs,
    deadlineAtMs: set.deadlineAtMs ?? task.deadlineAtMs,
    details: set.details ?? task.details,
  }
}

interface Window {
  startMs: number
  taken: number
}

/** Number of tasks of each vendor account that were leased in the current window of time. */
class PollBudget {
  readonly #windows = new Map<string, Window>()

  /** Returns how many tasks may still be leased. */
  left(credentialId: string, budget: { readonly takes: number; readonly windowMs: number }, nowMs: number): number {
    const startMs = Math.floor(nowMs / budget.windowMs) * budget.windowMs
    const window = this.#windows.get(credentialId)
    return budget.takes - (window?.startMs === startMs ? window.taken : 0)
  }

  count(credentialId: string, taken: number, windowMs: number, nowMs: number): void {
    if (taken === 0) return
    const startMs = Math.floor(nowMs / windowMs) * windowMs
    const window = this.#windows.get(credentialId)
    if (window?.startMs === startMs) window.taken += taken
    else this.#windows.set(credentialId, { startMs, taken })
  }
}
