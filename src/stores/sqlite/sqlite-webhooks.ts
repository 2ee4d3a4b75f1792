import { deliveryOf, optionalTimeOf, type SqlRow } from '../sql-rows.ts'
import {
  type DeliveryAttempt,
  type DeliveryState,
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookDelivery,
  type WebhookStore,
} from '../webhook-store.ts'
import { type SqliteDatabase, type Synchronous, wholeMilliseconds } from './sqlite-database.ts'
import { selectNewest } from './sqlite-newest.ts'

interface AttemptsRow {
  readonly state: DeliveryState
  readonly attempts: string
  readonly resent_at_ms: number | bigint | null
}

/** Messages and secrets, inside the caller's transaction. */
export interface SqliteWebhooks extends Synchronous<Required<WebhookStore>> {
  /** Queues a message; an existing one with the same id stays unchanged. */
  add(delivery: NewDelivery): void
  /** Whether any message is due. */
  isAnyDue(nowMs: number): boolean
}

/** Prepares the statements of {@link SqliteWebhooks}. */
export function sqliteWebhooks(database: SqliteDatabase): SqliteWebhooks {
  const insert = database.prepare(
    `INSERT INTO signalbox_deliveries (id, account_id, task_id, url, body, created_at_ms, next_attempt_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
  )
  // Index by name, because the engine would choose that of the states, and read every waiting message.
  const selectDue = database.prepare(
    `SELECT * FROM signalbox_deliveries INDEXED BY signalbox_deliveries_due WHERE state = 'pending' AND next_attempt_at_ms <= ? AND lease_until_ms <= ?
     ORDER BY next_attempt_at_ms LIMIT ?`,
  )
  const lease = database.prepare('UPDATE signalbox_deliveries SET lease_until_ms = ? WHERE id = ?')
  const selectAttempts = database.prepare('SELECT state, attempts, resent_at_ms FROM signalbox_deliveries WHERE id = ?')
  const noteAttempt = database.prepare('UPDATE signalbox_deliveries SET attempts = ?, lease_until_ms = 0 WHERE id = ?')
  const setState = database.prepare('UPDATE signalbox_deliveries SET state = ?, next_attempt_at_ms = ? WHERE id = ?')
  const selectByTask = database.prepare(
    'SELECT * FROM signalbox_deliveries WHERE account_id = ? AND task_id = ? ORDER BY created_at_ms, id',
  )
  const resend = database.prepare(
    `UPDATE signalbox_deliveries SET state = 'pending', next_attempt_at_ms = ?, resent_at_ms = ?
     WHERE account_id = ? AND id = ?`,
  )
  const selectSecrets = database.prepare(
    `SELECT secret, expires_at_ms FROM signalbox_webhook_secrets
     WHERE account_id = ? AND (expires_at_ms IS NULL OR expires_at_ms > ?) ORDER BY number DESC`,
  )
  const selectCurrent = database.prepare(
    `SELECT secret FROM signalbox_webhook_secrets WHERE account_id = ? AND expires_at_ms IS NULL
     ORDER BY number DESC LIMIT 1`,
  )
  const deleteSecrets = database.prepare(
    'DELETE FROM signalbox_webhook_secrets WHERE account_id = ? AND (secret = ? OR expires_at_ms <= ?)',
  )
  // Never extended: a secret that has expired, or soon does, stays so.
  const endSecrets = database.prepare(
    'UPDATE signalbox_webhook_secrets SET expires_at_ms = min(ifnull(expires_at_ms, ?), ?) WHERE account_id = ?',
  )
  const insertSecret = database.prepare('INSERT INTO signalbox_webhook_secrets (account_id, secret) VALUES (?, ?)')

  return {
    add({ id, accountId, taskId, url, body, createdAtMs, nextAttemptAtMs }) {
      insert.run(id, accountId, taskId, url, body, wholeMilliseconds(createdAtMs), wholeMilliseconds(nextAttemptAtMs))
    },

    isAnyDue: (nowMs) => selectDue.get(nowMs, nowMs, 1) !== undefined,

    leaseDue({ nowMs, leaseUntilMs, limit }) {
      const rows = selectDue.all(nowMs, nowMs, Math.max(0, limit)) as { readonly id: string }[]
      for (const { id } of rows) lease.run(wholeMilliseconds(leaseUntilMs), id)
      return rows.map(withAttempts)
    },

    record(id, { attempt, state, nextAttemptAtMs }) {
      const row = selectAttempts.get(id) as AttemptsRow | undefined
      if (row === undefined) return
      const attempts = [...(JSON.parse(row.attempts) as DeliveryAttempt[]), attempt].slice(-MAX_ATTEMPTS_KEPT)
      noteAttempt.run(JSON.stringify(attempts), id)
      // An attempt that outlived its lease may report after another one. It must not reopen the message, but a success still
      // counts. An attempt that began before its owner resent the message does not delay the resend.
      const isBefore = attempt.atMs < Number(row.resent_at_ms ?? 0)
      if (state === 'delivered' || (row.state === 'pending' && !isBefore))
        setState.run(state, wholeMilliseconds(nextAttemptAtMs), id)
    },

    release(ids) {
      for (const id of ids) lease.run(0, id)
    },

    list: (accountId, taskId) => (selectByTask.all(accountId, taskId) as SqlRow[]).map(withAttempts),

    listAll: (query) => selectNewest(database, 'signalbox_deliveries', query).map(withAttempts),

    resend(accountId, id, nowMs) {
      const atMs = wholeMilliseconds(nowMs)
      return Number(resend.run(atMs, atMs, accountId, id).changes) > 0
    },

    secrets: (accountId, nowMs) =>
      (selectSecrets.all(accountId, nowMs) as SqlRow[]).map((row) => ({
        secret: row['secret'] as string,
        expiresAtMs: optionalTimeOf(row['expires_at_ms']),
      })),

    ensureSecret(accountId, secret) {
      const current = selectCurrent.get(accountId) as { readonly secret: string } | undefined
      if (current !== undefined) return current.secret
      insertSecret.run(accountId, secret)
      return secret
    },

    replaceSecret(accountId, secret, overlapUntilMs, nowMs) {
      deleteSecrets.run(accountId, secret, nowMs)
      const untilMs = wholeMilliseconds(overlapUntilMs)
      endSecrets.run(untilMs, untilMs, accountId)
      insertSecret.run(accountId, secret)
    },
  }
}

function withAttempts(row: SqlRow): WebhookDelivery {
  return deliveryOf(row, JSON.parse(row['attempts'] as string) as DeliveryAttempt[])
}
