import { deliveryOf, optionalTimeOf, type SqlRow, TASK_COLUMNS, taskOf, taskValues } from '../sql-rows.ts'
import type { DueQuery, TaskChange, TaskChangeResult, TaskRecord, TaskStore } from '../task-store.ts'
import {
  type DeliveryAttempt,
  type DeliveryState,
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookDelivery,
  type WebhookStore,
} from '../webhook-store.ts'
import type { SqliteMoney } from './sqlite-books.ts'
import {
  listOf,
  type SqliteDatabase,
  type SqliteStatement,
  type Synchronous,
  selectNewest,
  wholeMilliseconds,
  wholeMillisecondsOrNull,
} from './sqlite-database.ts'
import type { SqliteClaims } from './sqlite-expiring.ts'
import type { SqliteResponses } from './sqlite-responses.ts'

/** Prepares inserting a task; an existing one with the same id stays unchanged. */
export function sqliteTaskInsert(database: SqliteDatabase): (task: TaskRecord) => void {
  const insert = database.prepare(
    `INSERT INTO signalbox_tasks (${TASK_COLUMNS}) VALUES (${listOf('?', 12)}) ON CONFLICT (id) DO NOTHING`,
  )
  return (task) => void insert.run(...taskValues(task, wholeMilliseconds))
}

/** Tasks, inside the caller's transaction. */
export interface SqliteTasks extends Synchronous<TaskStore> {
  /** Whether any task is due, whatever the budget. */
  isAnyDue(query: DueQuery): boolean
  isAnyExpired(nowMs: number): boolean
  isAnyToPurge(changedUntilMs: number): boolean
}

/** Other tables that a change of a task changes. */
export interface SqliteTasksParts {
  readonly money: SqliteMoney
  readonly claims: SqliteClaims
  readonly insertTask: (task: TaskRecord) => void
  readonly webhooks: SqliteWebhooks
  readonly responses: SqliteResponses
}

/** Prepares the statements of {@link SqliteTasks}. */
export function sqliteTasks(
  database: SqliteDatabase,
  { money, claims, insertTask, webhooks, responses }: SqliteTasksParts,
): SqliteTasks {
  const selectById = database.prepare('SELECT * FROM signalbox_tasks WHERE account_id = ? AND id = ?')
  const selectByUpstreamId = database.prepare(
    'SELECT * FROM signalbox_tasks WHERE account_id = ? AND upstream_id = ? ORDER BY created_at_ms DESC LIMIT 1',
  )
  // Statements for pages with and without a lower and an upper bound.
  const selectPage = [false, true].map((hasAfter) =>
    [false, true].map((hasBefore) => preparePage(database, hasAfter, hasBefore)),
  )
  const update = database.prepare(
    `UPDATE signalbox_tasks SET
       state = ifnull(?, state), upstream_id = ifnull(?, upstream_id), vendor_account = ifnull(?, vendor_account),
       updated_at_ms = ifnull(?, updated_at_ms), next_poll_at_ms = ifnull(?, next_poll_at_ms),
       deadline_at_ms = ifnull(?, deadline_at_ms), details = ifnull(?, details), lease_until_ms = 0
     WHERE id = ? AND state IN (SELECT value FROM json_each(?)) RETURNING hold_id`,
  )
  const remove = database.prepare(`DELETE FROM signalbox_tasks WHERE id = ? AND state = 'submitting' RETURNING hold_id`)

  // Skips tasks with waiting messages, so that they do not block the rest. Without an explicit name the engine chooses another
  // index, and reads every task that ended.
  const selectEnded = database.prepare(
    `SELECT id FROM signalbox_tasks AS task INDEXED BY signalbox_ended_tasks
     WHERE state IN ('completed', 'failed', 'cancelled') AND updated_at_ms <= ? AND NOT EXISTS (
       SELECT 1 FROM signalbox_deliveries AS delivery WHERE delivery.task_id = task.id AND delivery.state = 'pending'
     ) ORDER BY updated_at_ms LIMIT ?`,
  )
  const removeEnded = database.prepare('DELETE FROM signalbox_tasks WHERE id = ?')
  const removeDeliveries = database.prepare('DELETE FROM signalbox_deliveries WHERE task_id = ?')

  function endHold(holdId: string | null, resolve: TaskChange['resolve'], nowMs: number): TaskChangeResult {
    if (holdId === null || resolve === undefined) return {}
    if (resolve.kind === 'settle') return { charge: money.settle({ holdId, ...resolve }, nowMs) }
    money.void(holdId, nowMs)
    return {}
  }

  return {
    ...sqliteTaskLeases(database),

    insert: insertTask,

    find(accountId, id) {
      const row = selectById.get(accountId, id) ?? selectByUpstreamId.get(accountId, id)
      return row === undefined ? undefined : taskOf(row as SqlRow)
    },

    list(accountId, page) {
      const size = Math.max(0, page.limit)
      const bounds = [page.after, page.before].filter((id) => id !== undefined)
      const select = selectPage[Number(page.after !== undefined)]![Number(page.before !== undefined)]!
      const rows = select.all(...bounds, accountId, size + 1) as SqlRow[]
      const tasks = rows.slice(0, size).map(taskOf)
      const isBackwards = page.after === undefined && page.before !== undefined
      return { tasks: isBackwards ? tasks.reverse() : tasks, hasMore: rows.length > size }
    },

    listAll: (query) => selectNewest(database, 'signalbox_tasks', query).map(taskOf),

    change({ id, from, set, resolve, answered, keeps, delivery }, nowMs) {
      const row = update.get(
        set.state ?? null,
        set.upstreamId ?? null,
        set.credentialId ?? null,
        wholeMillisecondsOrNull(set.updatedAtMs),
        wholeMillisecondsOrNull(set.nextPollAtMs),
        wholeMillisecondsOrNull(set.deadlineAtMs),
        set.details === undefined ? null : JSON.stringify(set.details),
        id,
        JSON.stringify(from),
      ) as { readonly hold_id: string | null } | undefined
      if (row === undefined) return undefined
      // Before the hold ends, because a key with its answer is not freed with the hold.
      if (answered !== undefined)
        claims.complete(answered.claim, answered.answer, claims.endOf(answered.claim.expiresAtMs, nowMs))
      const result = endHold(row.hold_id, resolve, nowMs)
      if (keeps !== undefined) responses.save(keeps)
      if (delivery !== undefined) webhooks.add(delivery)
      return result
    },

    discard(id, claim, nowMs) {
      const row = remove.get(id) as { readonly hold_id: string | null } | undefined
      if (row === undefined) return false
      if (row.hold_id !== null) money.void(row.hold_id, nowMs)
      if (claim !== undefined) claims.release(claim)
      return true
    },

    isAnyToPurge: (changedUntilMs) => selectEnded.get(changedUntilMs, 1) !== undefined,

    purge({ changedUntilMs, limit }) {
      const rows = selectEnded.all(changedUntilMs, Math.max(0, limit)) as { readonly id: string }[]
      for (const { id } of rows) {
        removeDeliveries.run(id)
        removeEnded.run(id)
      }
      return rows.length
    },
  }
}

/** Prepares a page of an account. Its parameters are the ids that limit it, the account and the number of rows. */
function preparePage(database: SqliteDatabase, hasAfter: boolean, hasBefore: boolean): SqliteStatement {
  const bound = (name: string, relation: '<' | '>') =>
    `JOIN signalbox_tasks AS ${name} ON ${name}.id = ? AND ${name}.account_id = tasks.account_id
       AND (tasks.created_at_ms, tasks.id) ${relation} (${name}.created_at_ms, ${name}.id)`
  const direction = hasBefore && !hasAfter ? 'ASC' : 'DESC'
  return database.prepare(
    `SELECT tasks.* FROM signalbox_tasks AS tasks
     ${hasAfter ? bound('newer', '<') : ''} ${hasBefore ? bound('older', '>') : ''}
     WHERE tasks.account_id = ? ORDER BY tasks.created_at_ms ${direction}, tasks.id ${direction} LIMIT ?`,
  )
}

/** Prepares the leases by which processes share tasks. */
function sqliteTaskLeases(
  database: SqliteDatabase,
): Pick<SqliteTasks, 'isAnyDue' | 'isAnyExpired' | 'credentialIds' | 'leaseDue' | 'leaseExpired'> {
  const selectDue = database.prepare(
    `SELECT * FROM signalbox_tasks WHERE vendor_account = ? AND state IN ('queued', 'in_progress')
       AND next_poll_at_ms <= ? AND lease_until_ms <= ? AND account_id NOT IN (SELECT value FROM json_each(?))
     ORDER BY next_poll_at_ms LIMIT ?`,
  )
  const selectOne = database.prepare(
    `SELECT * FROM signalbox_tasks WHERE vendor_account = ? AND id = ? AND state IN ('queued', 'in_progress')
       AND lease_until_ms <= ? AND account_id NOT IN (SELECT value FROM json_each(?)) LIMIT ?`,
  )
  // Index by name, because the engine would choose that of the states, and read every open task.
  const selectExpired = database.prepare(
    `SELECT * FROM signalbox_tasks INDEXED BY signalbox_tasks_by_deadline WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress')
       AND deadline_at_ms <= ? AND lease_until_ms <= ? ORDER BY deadline_at_ms LIMIT ?`,
  )
  const selectCredentials = database.prepare(
    `SELECT DISTINCT vendor_account FROM signalbox_tasks INDEXED BY signalbox_tasks_due WHERE state IN ('queued', 'in_progress')`,
  )
  const lease = database.prepare('UPDATE signalbox_tasks SET lease_until_ms = ? WHERE id = ?')
  // A process with a slow clock counts in the window that others opened. A window that begins later than the next one was opened
  // by a wrong clock.
  const openWindow = database.prepare(
    `INSERT INTO signalbox_poll_budgets (vendor_account, window_start_ms, taken) VALUES (?, ?, 0)
     ON CONFLICT (vendor_account) DO UPDATE SET window_start_ms = excluded.window_start_ms, taken = 0
     WHERE window_start_ms < excluded.window_start_ms OR window_start_ms > excluded.window_start_ms + ?`,
  )
  const selectTaken = database.prepare('SELECT taken FROM signalbox_poll_budgets WHERE vendor_account = ?')
  const countTaken = database.prepare('UPDATE signalbox_poll_budgets SET taken = taken + ? WHERE vendor_account = ?')

  function due({ credentialId, nowMs, id, exceptAccounts = [] }: DueQuery, limit: number): SqlRow[] {
    const except = JSON.stringify(exceptAccounts)
    const rows =
      id === undefined
        ? selectDue.all(credentialId, nowMs, nowMs, except, limit)
        : selectOne.all(credentialId, id, nowMs, except, limit)
    return rows as SqlRow[]
  }

  function leased(rows: readonly SqlRow[], leaseUntilMs: number): readonly TaskRecord[] {
    const tasks = rows.map(taskOf)
    for (const { id } of tasks) lease.run(wholeMilliseconds(leaseUntilMs), id)
    return tasks
  }

  return {
    isAnyDue: (query) => due(query, 1).length > 0,

    leaseDue(query) {
      const { credentialId, nowMs, leaseUntilMs, limit, budget } = query
      const startMs = wholeMilliseconds(Math.floor(nowMs / budget.windowMs) * budget.windowMs)
      openWindow.run(credentialId, startMs, budget.windowMs)
      const { taken } = selectTaken.get(credentialId) as { readonly taken: number }
      const rows = due(query, Math.max(0, Math.min(limit, budget.takes - taken)))
      if (rows.length > 0) countTaken.run(rows.length, credentialId)
      return leased(rows, leaseUntilMs)
    },

    credentialIds: () =>
      (selectCredentials.all() as { readonly vendor_account: string }[]).map((row) => row.vendor_account),

    isAnyExpired: (nowMs) => selectExpired.get(nowMs, nowMs, 1) !== undefined,

    leaseExpired({ nowMs, leaseUntilMs, limit }) {
      return leased(selectExpired.all(nowMs, nowMs, Math.max(0, limit)) as SqlRow[], leaseUntilMs)
    },
  }
}

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
