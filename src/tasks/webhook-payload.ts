import type { Ids } from '../core/ids.ts'
import type { TaskRecord, TaskState } from '../stores/task-store.ts'
import type { NewDelivery } from '../stores/webhook-store.ts'

/** Type of the message for each state that ends a task. */
const TYPES = new Map<TaskState, string>([
  ['completed', 'video.generation.completed'],
  ['failed', 'video.generation.failed'],
  ['cancelled', 'video.generation.cancelled'],
])

/**
 * The message that tells of a task's end: `{"type","timestamp","data"}` (Standard Webhooks 1.0, "Payload structure"), with
 * `timestamp` in ISO 8601.
 * @param end `task` as it is after the change; `record` is what `GET /v1/videos/generations/{id}` answers then.
 * @returns undefined when the caller gave no `webhook_url`.
 * @throws RangeError for a task that has not ended.
 */
export function newDelivery(end: {
  readonly ids: Ids
  readonly nowMs: number
  readonly task: TaskRecord
  readonly record: object
}): NewDelivery | undefined {
  const { ids, nowMs, task, record } = end
  const url = task.details.webhookUrl
  if (url === undefined) return undefined
  const type = TYPES.get(task.state)
  if (type === undefined) throw new RangeError(`a task in state ${task.state} has no message`)
  return {
    id: ids.next('msg'),
    accountId: task.accountId,
    taskId: task.id,
    url,
    body: JSON.stringify({ type, timestamp: new Date(nowMs).toISOString(), data: record }),
    createdAtMs: nowMs,
    nextAttemptAtMs: nowMs,
  }
}
