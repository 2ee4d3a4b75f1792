import * as z from 'zod'
import type { TaskRecord } from '../../stores/task-store.ts'
import type { WebhookDelivery } from '../../stores/webhook-store.ts'
import type { Operator } from '../admin-route.ts'
import { id, timeMs } from './fields.ts'

export const taskState = z.enum(['submitting', 'unknown', 'queued', 'in_progress', 'completed', 'failed', 'cancelled'])
export const deliveryState = z.enum(['pending', 'delivered', 'failed', 'disabled'])

/**
 * Task in the format of the API. It does not contain the address of its content, and its prompt appears only in quotes by its error
 * message.
 */
export const taskSchema = z.strictObject({
  object: z.literal('task'),
  id,
  account: z.string(),
  key: z.string(),
  state: taskState,
  endpoint: z.string(),
  model: z.string(),
  vendor: z.string(),
  credential: z.string(),
  /** Id of the task at the vendor. */
  upstream: z.string().nullable(),
  request: z.string(),
  hold: z.string().nullable(),
  polls: z.int(),
  has_webhook: z.boolean(),
  /** Error. Vendors quote prompts in their messages, so `message` is null for operators without the scope `content`. */
  error: z.strictObject({ code: z.string(), message: z.string().nullable() }).nullable(),
  cost: z.string().nullable(),
  created_at_ms: timeMs,
  updated_at_ms: timeMs,
  next_poll_at_ms: timeMs,
  deadline_at_ms: timeMs,
})
export type TaskObject = z.infer<typeof taskSchema>

export function taskObject(task: TaskRecord, { can }: Operator): TaskObject {
  const { details } = task
  const { error } = details
  return {
    object: 'task',
    id: task.id,
    account: task.accountId,
    key: task.keyId,
    state: task.state,
    endpoint: details.endpoint,
    model: details.model,
    vendor: details.vendor,
    credential: task.credentialId,
    upstream: task.upstreamId ?? null,
    request: details.requestId,
    hold: task.holdId ?? null,
    polls: details.polls,
    has_webhook: details.webhookUrl !== undefined,
    error: error === undefined ? null : { code: error.code, message: can.includes('content') ? error.message : null },
    cost: details.cost ?? null,
    created_at_ms: Math.floor(task.createdAtMs),
    updated_at_ms: Math.floor(task.updatedAtMs),
    next_poll_at_ms: Math.floor(task.nextPollAtMs),
    deadline_at_ms: Math.floor(task.deadlineAtMs),
  }
}

/** Webhook message in the format of the API, without its body. */
export const deliverySchema = z.strictObject({
  object: z.literal('delivery'),
  id,
  account: z.string(),
  task: z.string(),
  /** Address of the receiver without the query, which may contain a secret. */
  url: z.string(),
  state: deliveryState,
  attempts: z.array(
    z.strictObject({
      at_ms: timeMs,
      status: z.int().nullable(),
      error: z.string().nullable(),
      duration_ms: z.number(),
    }),
  ),
  created_at_ms: timeMs,
  next_attempt_at_ms: timeMs.nullable(),
  resent_at_ms: timeMs.nullable(),
})
export type DeliveryObject = z.infer<typeof deliverySchema>

export function deliveryObject(delivery: WebhookDelivery): DeliveryObject {
  const { resentAtMs } = delivery
  return {
    object: 'delivery',
    id: delivery.id,
    account: delivery.accountId,
    task: delivery.taskId,
    url: withoutQuery(delivery.url),
    state: delivery.state,
    attempts: delivery.attempts.map(({ atMs, status, error, durationMs }) => {
      return { at_ms: Math.floor(atMs), status: status ?? null, error: error ?? null, duration_ms: durationMs }
    }),
    created_at_ms: Math.floor(delivery.createdAtMs),
    next_attempt_at_ms: delivery.state === 'pending' ? Math.floor(delivery.nextAttemptAtMs) : null,
    resent_at_ms: resentAtMs === undefined ? null : Math.floor(resentAtMs),
  }
}

function withoutQuery(address: string): string {
  if (!URL.canParse(address)) return ''
  const { origin, pathname } = new URL(address)
  return `${origin}${pathname}`
}
