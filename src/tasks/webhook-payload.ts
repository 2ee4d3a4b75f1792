import type { Ids } from '../core/ids.ts'
import type { TaskBehaviour } from '../endpoints/task.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { NewDelivery } from '../stores/webhook-store.ts'

/**
 * The message about a task's end: `{"type","timestamp","data"}` (Standard Webhooks 1.0, "Payload structure"), with
 * `timestamp` in ISO 8601.
 * @param end `task` is the task after the change; `data` is its endpoint's answer.
 * @returns undefined when the caller gave no `webhook_url`, or the gateway no longer has the endpoint.
 * @throws RangeError for a task that has not ended.
 */
export function newDelivery(end: {
  readonly ids: Ids
  readonly nowMs: number
  readonly task: TaskRecord
  readonly behaviour: TaskBehaviour | undefined
}): NewDelivery | undefined {
  const { ids, nowMs, task, behaviour } = end
  const url = task.details.webhookUrl
  const { state } = task
  if (url === undefined || behaviour === undefined) return undefined
  if (state !== 'completed' && state !== 'failed' && state !== 'cancelled')
    throw new RangeError(`a task in state ${state} has no message`)
  return {
    id: ids.next('msg'),
    accountId: task.accountId,
    taskId: task.id,
    url,
    body: JSON.stringify({
      type: behaviour.eventType(state),
      timestamp: new Date(nowMs).toISOString(),
      data: behaviour.record(task),
    }),
    createdAtMs: nowMs,
    nextAttemptAtMs: nowMs,
  }
}
