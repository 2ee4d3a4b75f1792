import type { DueQuery, TaskChange, TaskDetails, TaskRecord, TaskState, TaskStore } from '../task-store.ts'
import {
  type SqliteDatabase,
  type SqliteStatement,
  type Synchronous,
  wholeMilliseconds,
  wholeMillisecondsOrNull,
} from './sqlite-database.ts'
import type { SqliteClaims } from './sqlite-expiring.ts'
import type { SqliteHolds } from './sqlite-holds.ts'
import type { SqliteWebhooks } from './sqlite-webhooks.ts'

/** A row of the tasks' table. */
export interface TaskRow {
  readonly id: string
  readonly account_id: string
  readonly key_id: string
  readonly state: TaskState
  readonly upstream_id: string | null
  readonly vendor_account: string
  readonly hold_id: string | null
  readonly created_at_ms: number
  readonly updated_at_ms: number
  readonly next_poll_at_ms: number
  readonly deadline_at_ms: number
  readonly details: string
}

/** Prepares the writing down of a task; one of the same id stays as it is. */
export function sqliteTaskInsert(database: SqliteDatabase): (task: TaskRecord) => void {
  const insert = database.prepare(
    `INSERT INTO signalbox_tasks (id, account_id, key_id, state, upstream_id, vendor_account, hold_id,
       created_at_ms, updated_at_ms, next_poll_at_ms, deadline_at_ms, details)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
  )
  return (task) => {
    insert.run(
      task.id,
      task.accountId,
      task.keyId,
      task.state,
      task.upstreamId ?? null,
      task.vendorAccount,
      task.holdId ?? null,
      wholeMilliseconds(task.createdAtMs),
      wholeMilliseconds(task.updatedAtMs),
      wholeMilliseconds(task.nextPollAtMs),
      wholeMilliseconds(task.deadlineAtMs),
      JSON.stringify(task.details),
    )
  }
}

export function taskOf(row: TaskRow): TaskRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    state: row.state,
    upstreamId: row.upstream_id ?? undefined,
    vendorAccount: row.vendor_account,
    holdId: row.hold_id ?? undefined,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    nextPollAtMs: row.next_poll_at_ms,
    deadlineAtMs: row.deadline_at_ms,
    details: JSON.parse(row.details) as TaskDetails,
  }
}

/** Long jobs, inside the transaction of whoever calls. */
export interface SqliteTasks extends Synchronous<TaskStore> {
  /** Is there anything to lease, budget aside? */
  isAnyDue(query: DueQuery): boolean
  isAnyExpired(nowMs: number): boolean
  isAnyToPurge(changedUntilMs: number): boolean
}

/** What a change of a task changes too. */
export interface SqliteTasksParts {
  readonly holds: SqliteHolds
  readonly claims: SqliteClaims
  readonly insertTask: (task: TaskRecord) => void
  readonly webhooks: SqliteWebhooks
}

/** Prepares the statements of {@link SqliteTasks}. */
export function sqliteTasks(
  database: SqliteDatabase,
  { holds, claims, insertTask, webhooks }: SqliteTasksParts,
): SqliteTasks {
  const selectById = database.prepare('SELECT * FROM signalbox_tasks WHERE account_id = ? AND id = ?')
  const selectByUpstreamId = database.prepare(
    'SELECT * FROM signalbox_tasks WHERE account_id = ? AND upstream_id = ? ORDER BY created_at_ms DESC LIMIT 1',
  )
  const selectPage = {
    newest: preparePage(database, false, false),
    after: preparePage(database, true, false),
    before: preparePage(database, false, true),
    between: preparePage(database, true, true),
  }
  const update = database.prepare(
    `UPDATE signalbox_tasks SET
       state = ifnull(?, state), upstream_id = ifnull(?, upstream_id), vendor_account = ifnull(?, vendor_account),
       updated_at_ms = ifnull(?, updated_at_ms), next_poll_at_ms = ifnull(?, next_poll_at_ms),
       deadline_at_ms = ifnull(?, deadline_at_ms), details = ifnull(?, details), lease_until_ms = 0
     WHERE id = ? AND state IN (SELECT value FROM json_each(?)) RETURNING hold_id`,
  )
  const remove = database.prepare(`DELETE FROM signalbox_tasks WHERE id = ? AND state = 'submitting' RETURNING hold_id`)

  // What waits for its messages is passed over, so that it does not stand in the way of the rest.
  const selectEnded = database.prepare(
    `SELECT id FROM signalbox_tasks AS task
     WHERE state IN ('completed', 'failed', 'cancelled') AND updated_at_ms <= ? AND NOT EXISTS (
       SELECT 1 FROM signalbox_deliveries AS delivery WHERE delivery.task_id = task.id AND delivery.state = 'pending'
     ) ORDER BY updated_at_ms LIMIT ?`,
  )
  const removeEnded = database.prepare('DELETE FROM signalbox_tasks WHERE id = ?')
  const removeDeliveries = database.prepare('DELETE FROM signalbox_deliveries WHERE task_id = ?')

  function endHold(holdId: string, resolve: NonNullable<TaskChange['resolve']>, nowMs: number): void {
    if (resolve.kind === 'void') holds.void(holdId, nowMs)
    else holds.settle({ holdId, amount: resolve.amount, description: resolve.description }, nowMs)
  }

  function pageRows(accountId: string, { after, before }: Parameters<TaskStore['list']>[1], count: number): unknown[] {
    if (after !== undefined && before !== undefined) return selectPage.between.all(after, before, accountId, count)
    if (after !== undefined) return selectPage.after.all(after, accountId, count)
    if (before !== undefined) return selectPage.before.all(before, accountId, count)
    return selectPage.newest.all(accountId, count)
  }

  return {
    ...sqliteTaskLeases(database),

    insert: insertTask,

    find(accountId, id) {
      const row = selectById.get(accountId, id) ?? selectByUpstreamId.get(accountId, id)
      return row === undefined ? undefined : taskOf(row as TaskRow)
    },

    list(accountId, page) {
      const size = Math.max(0, page.limit)
      const rows = pageRows(accountId, page, size + 1) as TaskRow[]
      const tasks = rows.slice(0, size).map(taskOf)
      const isBackwards = page.after === undefined && page.before !== undefined
      return { tasks: isBackwards ? tasks.reverse() : tasks, hasMore: rows.length > size }
    },

    change({ id, from, set, resolve, answered, delivery }, nowMs) {
      const row = update.get(
        set.state ?? null,
        set.upstreamId ?? null,
        set.vendorAccount ?? null,
        wholeMillisecondsOrNull(set.updatedAtMs),
        wholeMillisecondsOrNull(set.nextPollAtMs),
        wholeMillisecondsOrNull(set.deadlineAtMs),
        set.details === undefined ? null : JSON.stringify(set.details),
        id,
        JSON.stringify(from),
      ) as Pick<TaskRow, 'hold_id'> | undefined
      if (row === undefined) return false
      // Before the hold ends: a key that has its answer is not freed with the hold.
      if (answered !== undefined) claims.complete(answered.claim, answered.answer)
      if (row.hold_id !== null && resolve !== undefined) endHold(row.hold_id, resolve, nowMs)
      if (delivery !== undefined) webhooks.add(delivery)
      return true
    },

    discard(id, claim, nowMs) {
      const row = remove.get(id) as Pick<TaskRow, 'hold_id'> | undefined
      if (row === undefined) return false
      if (row.hold_id !== null) holds.void(row.hold_id, nowMs)
      if (claim !== undefined) claims.release(claim)
      return true
    },

    isAnyToPurge: (changedUntilMs) => selectEnded.get(changedUntilMs, 1) !== undefined,

    purge({ changedUntilMs, limit }) {
      const rows = selectEnded.all(changedUntilMs, Math.max(0, limit)) as Pick<TaskRow, 'id'>[]
      for (const { id } of rows) {
        removeDeliveries.run(id)
        removeEnded.run(id)
      }
      return rows.length
    },
  }
}

/** A page of an account: bound are the ids that bound it, the account and the number of rows. */
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

/** How processes share tasks out among themselves. */
function sqliteTaskLeases(
  database: SqliteDatabase,
): Pick<SqliteTasks, 'isAnyDue' | 'isAnyExpired' | 'leaseDue' | 'leaseExpired'> {
  const selectDue = database.prepare(
    `SELECT * FROM signalbox_tasks WHERE vendor_account = ? AND state IN ('queued', 'in_progress')
       AND next_poll_at_ms <= ? AND lease_until_ms <= ? ORDER BY next_poll_at_ms LIMIT ?`,
  )
  const selectOne = database.prepare(
    `SELECT * FROM signalbox_tasks WHERE vendor_account = ? AND id = ? AND state IN ('queued', 'in_progress')
       AND lease_until_ms <= ? LIMIT ?`,
  )
  const selectExpired = database.prepare(
    `SELECT * FROM signalbox_tasks WHERE state IN ('submitting', 'unknown', 'queued', 'in_progress')
       AND deadline_at_ms <= ? AND lease_until_ms <= ? ORDER BY deadline_at_ms LIMIT ?`,
  )
  const lease = database.prepare('UPDATE signalbox_tasks SET lease_until_ms = ? WHERE id = ?')
  // A process whose clock lags a little counts in the window that others opened. One that begins later than the next was
  // opened by a clock that was wrong.
  const openWindow = database.prepare(
    `INSERT INTO signalbox_poll_budgets (vendor_account, window_start_ms, taken) VALUES (?, ?, 0)
     ON CONFLICT (vendor_account) DO UPDATE SET window_start_ms = excluded.window_start_ms, taken = 0
     WHERE window_start_ms < excluded.window_start_ms OR window_start_ms > excluded.window_start_ms + ?`,
  )
  const selectTaken = database.prepare('SELECT taken FROM signalbox_poll_budgets WHERE vendor_account = ?')
  const countTaken = database.prepare('UPDATE signalbox_poll_budgets SET taken = taken + ? WHERE vendor_account = ?')

  function due({ vendorAccount, nowMs, id }: DueQuery, limit: number): TaskRow[] {
    const rows =
      id === undefined
        ? selectDue.all(vendorAccount, nowMs, nowMs, limit)
        : selectOne.all(vendorAccount, id, nowMs, limit)
    return rows as TaskRow[]
  }

  function leased(rows: readonly TaskRow[], leaseUntilMs: number): readonly TaskRecord[] {
    for (const { id } of rows) lease.run(wholeMilliseconds(leaseUntilMs), id)
    return rows.map(taskOf)
  }

  return {
    isAnyDue: (query) => due(query, 1).length > 0,

    leaseDue(query) {
      const { vendorAccount, nowMs, leaseUntilMs, limit, budget } = query
      const startMs = wholeMilliseconds(Math.floor(nowMs / budget.windowMs) * budget.windowMs)
      openWindow.run(vendorAccount, startMs, budget.windowMs)
      const { taken } = selectTaken.get(vendorAccount) as { readonly taken: number }
      const rows = due(query, Math.max(0, Math.min(limit, budget.takes - taken)))
      if (rows.length > 0) countTaken.run(rows.length, vendorAccount)
      return leased(rows, leaseUntilMs)
    },

    isAnyExpired: (nowMs) => selectExpired.get(nowMs, nowMs, 1) !== undefined,

    leaseExpired({ nowMs, leaseUntilMs, limit }) {
      return leased(selectExpired.all(nowMs, nowMs, Math.max(0, limit)) as TaskRow[], leaseUntilMs)
    },
  }
}
