import type { StoredUsage } from '../stored-usage.ts'
import {
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookDelivery,
  type WebhookSecret,
  type WebhookStore,
} from '../webhook-store.ts'
import { AccountShares } from './account-shares.ts'
import { longestOverdue, newestFirst } from './map-scans.ts'

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
  delivery: WebhookDelivery
  leaseUntilMs: number
}

/** Messages and secrets in this process; synchronous. */
export function memoryWebhooks(options: MemoryWebhooksOptions = {}): MemoryWebhooks {
  const finished = new AccountShares(options.maxFinishedDeliveries ?? 10_000)
  const entries = new Map<string, Entry>()
  const byTask = new Map<string, Set<Entry>>()
  const pending = new Set<Entry>()
  const secretsByAccount = new Map<string, WebhookSecret[]>()

  function place(entry: Entry): void {
    const { accountId, id, state } = entry.delivery
    finished.delete(accountId, id)
    if (state === 'pending') return void pending.add(entry)
    pending.delete(entry)
    finished.set(accountId, id)
    for (const surplus of finished.surplus(accountId)) drop(entries.get(surplus)!)
  }

  function drop(entry: Entry): void {
    const { id, taskId, accountId } = entry.delivery
    finished.delete(accountId, id)
    entries.delete(id)
    const siblings = byTask.get(taskId)
    siblings?.delete(entry)
    if (siblings?.size === 0) byTask.delete(taskId)
  }

  const liveSecrets = (accountId: string, nowMs: number): readonly WebhookSecret[] =>
    (secretsByAccount.get(accountId) ?? []).filter(({ expiresAtMs = Number.POSITIVE_INFINITY }) => expiresAtMs > nowMs)

  return {
    add(delivery) {
      if (entries.has(delivery.id)) return
      const entry: Entry = {
        delivery: { ...delivery, state: 'pending', attempts: [], resentAtMs: undefined },
        leaseUntilMs: 0,
      }
      const siblings = byTask.get(delivery.taskId)
      entries.set(delivery.id, entry)
      if (siblings === undefined) byTask.set(delivery.taskId, new Set([entry]))
      else siblings.add(entry)
      place(entry)
    },

    isAnyPending: (taskId) => [...(byTask.get(taskId) ?? [])].some(({ delivery }) => delivery.state === 'pending'),

    purge(taskId) {
      for (const entry of [...(byTask.get(taskId) ?? [])]) drop(entry)
    },

    leaseDue({ nowMs, leaseUntilMs, limit }) {
      const timeOf = (entry: Entry): number | undefined =>
        entry.leaseUntilMs > nowMs ? undefined : entry.delivery.nextAttemptAtMs
      const due = longestOverdue(pending, timeOf, nowMs, limit)
      for (const entry of due) entry.leaseUntilMs = leaseUntilMs
      return due.map((entry) => entry.delivery)
    },

    record(id, { attempt, state, nextAttemptAtMs }) {
      const entry = entries.get(id)
      if (entry === undefined) return
      const { delivery } = entry
      // An attempt that outlived its lease may report after another one. It must not reopen the message, but a success still
      // counts. An attempt that began before its owner resent the message does not delay the resend.
      const isBefore = delivery.resentAtMs !== undefined && attempt.atMs < delivery.resentAtMs
      const isLate = state !== 'delivered' && (delivery.state !== 'pending' || isBefore)
      const attempts = [...delivery.attempts, attempt].slice(-MAX_ATTEMPTS_KEPT)
      entry.delivery = isLate ? { ...delivery, attempts } : { ...delivery, attempts, state, nextAttemptAtMs }
      entry.leaseUntilMs = 0
      place(entry)
    },

    release(ids) {
      for (const id of ids) {
        const entry = entries.get(id)
        if (entry !== undefined) entry.leaseUntilMs = 0
      }
    },

    list: (accountId, taskId) =>
      [...(byTask.get(taskId) ?? [])]
        .map((entry) => entry.delivery)
        .filter((delivery) => delivery.accountId === accountId)
        .sort((one, other) => one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1)),

    listAll: (query) =>
      newestFirst(
        [...entries.values()].map((entry) => entry.delivery),
        query,
      ),

    resend(accountId, id, nowMs) {
      const entry = entries.get(id)
      if (entry === undefined || entry.delivery.accountId !== accountId) return false
      entry.delivery = { ...entry.delivery, state: 'pending', nextAttemptAtMs: nowMs, resentAtMs: nowMs }
      place(entry)
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
