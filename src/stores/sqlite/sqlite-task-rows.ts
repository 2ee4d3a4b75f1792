import type { TaskDetails, TaskRecord, TaskState } from '../task-store.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import { wholeMilliseconds } from './whole-milliseconds.ts'

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
