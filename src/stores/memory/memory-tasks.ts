import { assertAmount } from '../ledger.ts'
import type { ResponseStore } from '../response-store.ts'
import type { StoredUsage } from '../sql-rows.ts'
import type { TaskChange, TaskChangeResult, TaskRecord, TaskStore } from '../task-store.ts'
import {
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookDelivery,
  type WebhookSecret,
  type WebhookStore,
} from '../webhook-store.ts'
import { longestOverdue, newestFirst } from './account-shares.ts'
import type { MemoryClaims } from './memory-cache.ts'
import type { MemoryLedger } from './memory-ledger.ts'
import { MemoryTable } from './memory-table.ts'
import type { MemoryTaskTable, TaskEntry } from './memory-task-table.ts'

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
      table.replace(changed(entry.record, set))
      if (delivery !== undefined) webhooks.add(delivery)
      return result
    },

    discard(id, claim, nowMs) {
      const entry = table.get(id)
      if (entry?.record.state !== 'submitting') return false
      endHold(entry.record, { kind: 'void' }, nowMs)
      if (claim !== undefined) claims.release(claim)
      table.remove(id)
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
      for (const { record } of purged) {
        table.remove(record.id)
        webhooks.purge(record.id)
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
  const given = Object.entries(set).filter(([, value]) => value !== undefined)
  return { ...task, ...Object.fromEntries(given) }
}

/** Number of tasks of each vendor account that were leased in the current window of time. */
class PollBudget {
  readonly #windows = new Map<string, { startMs: number; taken: number }>()

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

/** Limits of stored messages. */
export interface MemoryWebhooksOptions {
  /** Maximum number of finished messages; the oldest of accounts with more than their share are dropped first. Default 10,000. */
  readonly maxFinishedDeliveries?: number | undefined
}

/** Messages in this process, and the function that queues messages of the same store's tasks. */
export interface MemoryWebhooks extends WebhookStore {
  /** Queues a message; an existing one with the same id stays unchanged. */
  add(delivery: NewDelivery): void
  /** Whether a message about a task waits for delivery. */
  isAnyPending(taskId: string): boolean
  /** Returns the number of an account's secrets that have not expired. */
  stored(accountId: string, nowMs: number): StoredUsage
  /** Deletes the messages about a task. None of them may wait for delivery. */
  purge(taskId: string): void
}

interface Entry {
  readonly accountId: string
  readonly delivery: WebhookDelivery
  leaseUntilMs: number
}

/** Messages and secrets in this process; synchronous. */
export function memoryWebhooks(options: MemoryWebhooksOptions = {}): MemoryWebhooks {
  const entries = new MemoryTable<Entry, 'task' | 'pending'>({
    nameOf: ({ delivery }) => delivery.id,
    maxCount: options.maxFinishedDeliveries ?? 10_000,
    isLimited: ({ delivery }) => delivery.state !== 'pending',
    indexes: {
      task: ({ delivery }) => [delivery.taskId],
      pending: ({ delivery }) => (delivery.state === 'pending' ? [''] : []),
    },
  })
  const secretsByAccount = new Map<string, WebhookSecret[]>()

  const replace = (delivery: WebhookDelivery, leaseUntilMs: number): void =>
    entries.set({ accountId: delivery.accountId, delivery, leaseUntilMs })

  const ofTask = (taskId: string): WebhookDelivery[] =>
    Array.from(entries.by('task', taskId), ({ delivery }) => delivery)

  const liveSecrets = (accountId: string, nowMs: number): readonly WebhookSecret[] =>
    (secretsByAccount.get(accountId) ?? []).filter(({ expiresAtMs = Number.POSITIVE_INFINITY }) => expiresAtMs > nowMs)

  return {
    add(delivery) {
      if (entries.get(delivery.id) === undefined)
        replace({ ...delivery, state: 'pending', attempts: [], resentAtMs: undefined }, 0)
    },

    isAnyPending: (taskId) => ofTask(taskId).some(({ state }) => state === 'pending'),

    purge(taskId) {
      for (const { id } of ofTask(taskId)) entries.delete(id)
    },

    leaseDue({ nowMs, leaseUntilMs, limit }) {
      const timeOf = (entry: Entry): number | undefined =>
        entry.leaseUntilMs > nowMs ? undefined : entry.delivery.nextAttemptAtMs
      const due = longestOverdue(entries.by('pending', ''), timeOf, nowMs, limit)
      for (const entry of due) entry.leaseUntilMs = leaseUntilMs
      return due.map((entry) => entry.delivery)
    },

    record(id, { attempt, state, nextAttemptAtMs }) {
      const delivery = entries.get(id)?.delivery
      if (delivery === undefined) return
      // An attempt that outlived its lease may report after another one. It must not reopen the message, but a success still
      // counts. An attempt that began before its owner resent the message does not delay the resend.
      const isBefore = delivery.resentAtMs !== undefined && attempt.atMs < delivery.resentAtMs
      const isLate = state !== 'delivered' && (delivery.state !== 'pending' || isBefore)
      const attempts = [...delivery.attempts, attempt].slice(-MAX_ATTEMPTS_KEPT)
      replace(isLate ? { ...delivery, attempts } : { ...delivery, attempts, state, nextAttemptAtMs }, 0)
    },

    release(ids) {
      for (const id of ids) {
        const entry = entries.get(id)
        if (entry !== undefined) entry.leaseUntilMs = 0
      }
    },

    list: (accountId, taskId) =>
      ofTask(taskId)
        .filter((delivery) => delivery.accountId === accountId)
        .sort((one, other) => one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1)),

    listAll: (query) =>
      newestFirst(
        Array.from(entries.all(), ({ delivery }) => delivery),
        query,
      ),

    resend(accountId, id, nowMs) {
      const entry = entries.get(id)
      if (entry === undefined || entry.accountId !== accountId) return false
      const again = { nextAttemptAtMs: nowMs, resentAtMs: nowMs }
      replace({ ...entry.delivery, ...again, state: 'pending' }, entry.leaseUntilMs)
      return true
    },

    secrets: liveSecrets,

    stored(accountId, nowMs) {
      const live = liveSecrets(accountId, nowMs)
      return { count: live.length, byteLength: live.reduce((sum, { secret }) => sum + secret.length, 0) }
    },

    ensureSecret(accountId, secret) {
      const known = secretsByAccount.get(accountId) ?? []
      const current = known.find(({ expiresAtMs }) => expiresAtMs === undefined)
      if (current !== undefined) return current.secret
      secretsByAccount.set(accountId, [{ secret, expiresAtMs: undefined }, ...known])
      return secret
    },

    replaceSecret(accountId, secret, overlapUntilMs, nowMs) {
      const older = liveSecrets(accountId, nowMs)
        .filter((known) => known.secret !== secret)
        .map((known) => ({
          secret: known.secret,
          // Never extended: a secret that has expired, or soon does, stays so.
          expiresAtMs: Math.min(known.expiresAtMs ?? overlapUntilMs, overlapUntilMs),
        }))
      secretsByAccount.set(accountId, [{ secret, expiresAtMs: undefined }, ...older])
    },
  }
}
