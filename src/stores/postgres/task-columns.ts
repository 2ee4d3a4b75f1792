import type { TaskChange, TaskDetails, TaskRecord, TaskState } from '../task-store.ts'
import type { NewDelivery } from '../webhook-store.ts'
import { timeOf, timeParameter } from './column-values.ts'
import type { PostgresRow } from './postgres-connection.ts'

/** Columns of a task `t`, as {@link taskOf} needs them. */
export const TASK_COLUMNS = `t.id, t.account_id, t.key_id, t.state, t.upstream_id, t.vendor_account, t.hold_id,
  t.created_at_ms::text, t.updated_at_ms::text, t.next_poll_at_ms::text, t.deadline_at_ms::text, t.details`

export function taskOf(row: PostgresRow): TaskRecord {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    keyId: row['key_id'] as string,
    state: row['state'] as TaskState,
    upstreamId: (row['upstream_id'] as string | null) ?? undefined,
    vendorAccount: row['vendor_account'] as string,
    holdId: (row['hold_id'] as string | null) ?? undefined,
    createdAtMs: timeOf(row['created_at_ms']),
    updatedAtMs: timeOf(row['updated_at_ms']),
    nextPollAtMs: timeOf(row['next_poll_at_ms']),
    deadlineAtMs: timeOf(row['deadline_at_ms']),
    details: JSON.parse(row['details'] as string) as TaskDetails,
  }
}

/** A task as the function `reserve_with_tasks` reads it. */
export function taskRequestOf(task: TaskRecord): object {
  const { id, accountId, keyId, holdId, createdAtMs } = task
  return {
    id,
    account: accountId,
    key: keyId,
    hold: holdId,
    created: timeParameter(createdAtMs),
    ...setRequestOf(task),
  }
}

/** New values as the function `change_task` reads them. Members that are undefined are left out of JSON text. */
export function setRequestOf(set: TaskChange['set']): object {
  const time = (timeMs: number | undefined) => (timeMs === undefined ? undefined : timeParameter(timeMs))
  return {
    state: set.state,
    upstream: set.upstreamId,
    vendor_account: set.vendorAccount,
    updated: time(set.updatedAtMs),
    next_poll: time(set.nextPollAtMs),
    deadline: time(set.deadlineAtMs),
    // Text inside of the JSON: kept to the byte, where jsonb would refuse U+0000.
    details: set.details === undefined ? undefined : JSON.stringify(set.details),
  }
}

/** A message as the function `change_task` reads it. */
export function deliveryRequestOf(delivery: NewDelivery): object {
  return {
    id: delivery.id,
    account: delivery.accountId,
    task: delivery.taskId,
    url: delivery.url,
    body: delivery.body,
    created: timeParameter(delivery.createdAtMs),
    next_attempt: timeParameter(delivery.nextAttemptAtMs),
  }
}
