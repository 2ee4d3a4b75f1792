import { assertAmount } from '../ledger.ts'
import type { StoredResponse } from '../response-store.ts'
import { type SqlWebhooks, sqlTasks, taskColumns, taskOf } from '../sql/sql-tasks.ts'
import { allOf, type SqlStore, type SqlWork } from '../sql/statements.ts'
import type { DueQuery, TaskChange, TaskChangeResult, TaskRecord, TaskStore } from '../task-store.ts'
import type { SqliteMoney } from './sqlite-books.ts'
import type { SqliteClaims } from './sqlite-expiring.ts'
import { SQLITE_DIALECT } from './sqlite-statements.ts'

/** Other tables that a change of a task changes. */
export interface SqliteTasksParts {
  /** Returns the synchronous tables of the open database. */
  readonly session: () => { readonly money: SqliteMoney; readonly claims: SqliteClaims }
  readonly webhooks: SqlWebhooks
  readonly saveResponse: (turn: StoredResponse) => SqlWork<void>
}

const { isIn } = SQLITE_DIALECT
const COLUMNS = taskColumns(SQLITE_DIALECT)

/** Creates the store of tasks on SQLite. */
export function sqliteTasks({ session, webhooks, saveResponse }: SqliteTasksParts): SqlStore<TaskStore> {
  const tasks = sqlTasks(SQLITE_DIALECT)

  function endHold(holdId: string | null, resolve: TaskChange['resolve'], nowMs: number): TaskChangeResult {
    if (holdId === null || resolve === undefined) return {}
    const { money } = session()
    if (resolve.kind === 'settle') return { charge: money.settle({ holdId, ...resolve }, nowMs) }
    money.void(holdId, nowMs)
    return {}
  }

  return {
    ...tasks,
    idle: {
      ...tasks.idle,
      *leaseDue(query) {
        return (yield* selectDue(query, 1)).length === 0 ? [] : undefined
      },
    },
    work: {
      ...tasks.work,

      *change({ id, from, set, resolve, answered, keeps, delivery }, nowMs) {
        if (resolve?.kind === 'settle') assertAmount(resolve.amount)
        const [row] = yield [
          `UPDATE signalbox_tasks SET
             state = coalesce($3, state), upstream_id = coalesce($4, upstream_id),
             vendor_account = coalesce($5, vendor_account), updated_at_ms = coalesce($6, updated_at_ms),
             next_poll_at_ms = coalesce($7, next_poll_at_ms), deadline_at_ms = coalesce($8, deadline_at_ms),
             details = coalesce($9, details), lease_until_ms = 0
           WHERE id = $1 AND ${isIn('state', '$2')} RETURNING hold_id`,
          [
            id,
            from,
            set.state ?? null,
            set.upstreamId ?? null,
            set.credentialId ?? null,
            timeOrNull(set.updatedAtMs),
            timeOrNull(set.nextPollAtMs),
            timeOrNull(set.deadlineAtMs),
            set.details === undefined ? null : JSON.stringify(set.details),
          ],
        ]
        if (row === undefined) return undefined
        const { claims } = session()
        // Before the hold ends, because a key with its answer is not freed with the hold.
        if (answered !== undefined)
          claims.complete(answered.claim, answered.answer, claims.endOf(answered.claim.expiresAtMs, nowMs))
        const result = endHold(row['hold_id'] as string | null, resolve, nowMs)
        if (keeps !== undefined) yield* saveResponse(keeps)
        if (delivery !== undefined) yield* webhooks.add(delivery)
        return result
      },

      *discard(id, claim, nowMs) {
        const [row] = yield [
          `DELETE FROM signalbox_tasks WHERE id = $1 AND state = 'submitting' RETURNING hold_id`,
          [id],
        ]
        if (row === undefined) return false
        endHold(row['hold_id'] as string | null, { kind: 'void' }, nowMs)
        if (claim !== undefined) session().claims.release(claim)
        return true
      },

      *leaseDue(query) {
        const { credentialId, nowMs, leaseUntilMs, limit, budget } = query
        const taken = yield* takenInWindow(credentialId, nowMs, budget.windowMs)
        const due = yield* selectDue(query, Math.max(0, Math.min(limit, budget.takes - taken)))
        yield [
          'UPDATE signalbox_poll_budgets SET taken = taken + $2 WHERE vendor_account = $1',
          [credentialId, due.length],
        ]
        const ids = due.map(({ id }) => id)
        yield [
          `UPDATE signalbox_tasks SET lease_until_ms = $1 WHERE ${isIn('id', '$2')}`,
          [Math.floor(leaseUntilMs), ids],
        ]
        return due
      },
    },
  }
}

/** Opens the current window of a budget, and returns how many tasks were leased in it. */
function* takenInWindow(credentialId: string, nowMs: number, windowMs: number): SqlWork<number> {
  // A process with a slow clock counts in the window that others opened. A window that begins later than the next one was opened
  // by a wrong clock.
  yield [
    `INSERT INTO signalbox_poll_budgets (vendor_account, window_start_ms, taken) VALUES ($1, $2, 0)
     ON CONFLICT (vendor_account) DO UPDATE SET window_start_ms = excluded.window_start_ms, taken = 0
     WHERE window_start_ms < excluded.window_start_ms OR window_start_ms > excluded.window_start_ms + $3`,
    [credentialId, Math.floor(Math.floor(nowMs / windowMs) * windowMs), windowMs],
  ]
  const [row] = yield ['SELECT taken FROM signalbox_poll_budgets WHERE vendor_account = $1', [credentialId]]
  return Number(row!['taken'])
}

function selectDue(
  { credentialId, nowMs, id, exceptAccounts = [] }: DueQuery,
  limit: number,
): SqlWork<readonly TaskRecord[]> {
  const [isDue, order] = id === undefined ? ['next_poll_at_ms <= $2', 'ORDER BY next_poll_at_ms'] : ['id = $5', '']
  return allOf(
    taskOf,
    `SELECT ${COLUMNS} FROM signalbox_tasks AS t WHERE vendor_account = $1 AND state IN ('queued', 'in_progress')
       AND ${isDue} AND lease_until_ms <= $2 AND NOT ${isIn('account_id', '$3')} ${order} LIMIT $4`,
    [credentialId, nowMs, exceptAccounts, limit, id ?? null],
  )
}

function timeOrNull(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.floor(timeMs)
}
