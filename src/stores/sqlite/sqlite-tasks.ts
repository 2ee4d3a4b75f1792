import { type SqlRow, TASK_COLUMNS, taskOf, taskValues } from '../sql-rows.ts'
import type { DueQuery, TaskChange, TaskChangeResult, TaskRecord, TaskStore } from '../task-store.ts'
import {
  listOf,
  type SqliteDatabase,
  type SqliteStatement,
  type Synchronous,
  wholeMilliseconds,
  wholeMillisecondsOrNull,
} from './sqlite-database.ts'
import type { SqliteClaims } from './sqlite-expiring.ts'
import type { SqliteHolds } from './sqlite-holds.ts'
import { selectNewest } from './sqlite-newest.ts'
import type { SqliteResponses } from './sqlite-responses.ts'
import type { SqliteWebhooks } from './sqlite-webhooks.ts'

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
  readonly holds: SqliteHolds
  readonly claims: SqliteClaims
  readonly insertTask: (task: TaskRecord) => void
  readonly webhooks: SqliteWebhooks
  readonly responses: SqliteResponses
}

/** Prepares the statements of {@link SqliteTasks}. */
export function sqliteTasks(
  database: SqliteDatabase,
  { holds, claims, insertTask, webhooks, responses }: SqliteTasksParts,
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
    if (resolve.kind === 'settle') return { charge: holds.settle({ holdId, ...resolve }, nowMs) }
    holds.void(holdId, nowMs)
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
      if (row.hold_id !== null) holds.void(row.hold_id, nowMs)
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
