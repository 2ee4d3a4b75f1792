import type { DueQuery, TaskStore } from '../task-store.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import { type TaskRow, taskOf } from './sqlite-task-rows.ts'
import { wholeMilliseconds } from './whole-milliseconds.ts'

type Taken = Awaited<ReturnType<TaskStore['takeDue']>>
type OverdueQuery = Parameters<TaskStore['takeOverdue']>[0]

/** How processes share tasks out among themselves, inside the transaction of whoever calls. */
export interface SqliteTaskTaking {
  /** Is there anything to take, budget aside? */
  isAnyDue(query: DueQuery): boolean
  takeDue(query: DueQuery): Taken
  /** Is there anything to take? */
  isAnyOverdue(nowMs: number): boolean
  takeOverdue(query: OverdueQuery): Taken
}

/** Prepares the statements of {@link SqliteTaskTaking}. */
export function sqliteTaskTaking(database: SqliteDatabase): SqliteTaskTaking {
  const selectDue = database.prepare(
    `SELECT * FROM signalbox_tasks WHERE vendor_account = ? AND state IN ('queued', 'in_progress')
       AND next_poll_at_ms <= ? AND lease_until_ms <= ? ORDER BY next_poll_at_ms LIMIT ?`,
  )
  const selectOne = database.prepare(
    `SELECT * FROM signalbox_tasks WHERE vendor_account = ? AND id = ? AND state IN ('queued', 'in_progress')
       AND lease_until_ms <= ? LIMIT ?`,
  )
  const selectOverdue = database.prepare(
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

  function leased(rows: readonly TaskRow[], leaseUntilMs: number): Taken {
    for (const { id } of rows) lease.run(wholeMilliseconds(leaseUntilMs), id)
    return rows.map(taskOf)
  }

  return {
    isAnyDue: (query) => due(query, 1).length > 0,

    takeDue(query) {
      const { vendorAccount, nowMs, leaseUntilMs, limit, budget } = query
      const startMs = wholeMilliseconds(Math.floor(nowMs / budget.windowMs) * budget.windowMs)
      openWindow.run(vendorAccount, startMs, budget.windowMs)
      const { taken } = selectTaken.get(vendorAccount) as { readonly taken: number }
      const rows = due(query, Math.max(0, Math.min(limit, budget.takes - taken)))
      if (rows.length > 0) countTaken.run(rows.length, vendorAccount)
      return leased(rows, leaseUntilMs)
    },

    isAnyOverdue: (nowMs) => selectOverdue.get(nowMs, nowMs, 1) !== undefined,

    takeOverdue({ nowMs, leaseUntilMs, limit }) {
      return leased(selectOverdue.all(nowMs, nowMs, Math.max(0, limit)) as TaskRow[], leaseUntilMs)
    },
  }
}
