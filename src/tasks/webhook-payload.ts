import type { Ids } from '../core/ids.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { NewDelivery } from '../stores/webhook-store.ts'

/** Webhook message of an endpoint about the end of its tasks. */
export interface TaskMessage {
  eventType(state: 'completed' | 'failed' | 'cancelled', task: TaskRecord): string
  eventData(task: TaskRecord): object
}

/**
 * Builds the message about a task's end: `{"type","timestamp","data"}` (Standard Webhooks 1.0, "Payload structure"), with `timestamp`
 * in ISO 8601, and the other members of OpenAI's events (OpenAI API reference, "Webhook Events"), which its clients unwrap.
 * @param end `task` is the task after the change; `message` belongs to its endpoint.
 * @returns `undefined` if the caller gave no `webhook_url`, or the gateway no longer has the endpoint.
 * @throws RangeError if the task has not ended.
 */
export function newDelivery(end: {
  readonly ids: Ids
  readonly nowMs: number
  readonly task: TaskRecord
  readonly message: TaskMessage | undefined
}): NewDelivery | undefined {
  const { ids, nowMs, task, message } = end
  const url = task.details.webhookUrl
  const { state } = task
  if (url === undefined || message === undefined) return undefined
  if (state !== 'completed' && state !== 'failed' && state !== 'cancelled')
    throw new RangeError(`a task in state ${state} has no message`)
  const id = ids.next('msg')
  return {
    id,
    accountId: task.accountId,
    taskId: task.id,
    url,
    body: JSON.stringify({
      id,
      object: 'event',
      type: message.eventType(state, task),
      created_at: Math.floor(nowMs / 1000),
      timestamp: new Date(nowMs).toISOString(),
      data: message.eventData(task),
    }),
    createdAtMs: nowMs,
    nextAttemptAtMs: nowMs,
  }
}
