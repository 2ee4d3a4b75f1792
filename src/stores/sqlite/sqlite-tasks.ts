import type { IdempotencyClaim } from '../idempotency-store.ts'
import type { TaskChange, TaskPage, TaskRecord, TaskStore } from '../task-store.ts'
import type { SqliteClaims } from './sqlite-claims.ts'
import type { SqliteDatabase, SqliteStatement } from './sqlite-database.ts'
import type { SqliteHolds } from './sqlite-holds.ts'
import { type TaskRow, taskOf } from './sqlite-task-rows.ts'
import type { SqliteWebhooks } from './sqlite-webhooks.ts'
import { wholeMillisecondsOrNull } from './whole-milliseconds.ts'

/** Records of tasks and their changes, inside the transaction of whoever calls. */
export interface SqliteTasks {
  find(accountId: string, id: string): TaskRecord | undefined
  list(accountId: string, page: Parameters<TaskStore['list']>[1]): TaskPage
  change(change: TaskChange, nowMs: number): boolean
  discard(id: string, claim: IdempotencyClaim | undefined, nowMs: number): boolean
  /** Is there anything to forget? */
  isAnyToForget(changedUntilMs: number): boolean
  forget(query: Parameters<TaskStore['forget']>[0]): number
}

/** What a change of a task changes too. */
export interface SqliteTasksParts {
  readonly holds: SqliteHolds
  readonly claims: SqliteClaims
  readonly webhooks: SqliteWebhooks
}

/** Prepares the statements of {@link SqliteTasks}. */
export function sqliteTasks(database: SqliteDatabase, { holds, claims, webhooks }: SqliteTasksParts): SqliteTasks {
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

    isAnyToForget: (changedUntilMs) => selectEnded.get(changedUntilMs, 1) !== undefined,

    forget({ changedUntilMs, limit }) {
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
