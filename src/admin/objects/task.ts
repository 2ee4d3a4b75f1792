import * as z from 'zod'
import type { TaskRecord } from '../../stores/task-store.ts'
import type { DeliveryAttempt, WebhookDelivery } from '../../stores/webhook-store.ts'
import type { Operator } from '../admin-route.ts'
import { defineObject, id, kind, optionalText, optionalTime, text, time } from './fields.ts'

export const taskState = z.enum(['submitting', 'unknown', 'queued', 'in_progress', 'completed', 'failed', 'cancelled'])
export const deliveryState = z.enum(['pending', 'delivered', 'failed', 'disabled'])

const taskError = z.strictObject({ code: z.string(), message: z.string().nullable() })

/** Task, and the operator who reads it. */
interface ReadTask {
  readonly task: TaskRecord
  readonly operator: Operator
}

/**
 * Task in the format of the API. It does not contain the address of its content, and its prompt appears only in quotes by its error
 * message.
 */
export const { schema: taskSchema, write: taskObject } = defineObject<ReadTask>()({
  object: kind('task'),
  id: [id, ({ task }) => task.id],
  account: text(({ task }) => task.accountId),
  key: text(({ task }) => task.keyId),
  state: [taskState, ({ task }) => task.state],
  endpoint: text(({ task }) => task.details.endpoint),
  model: text(({ task }) => task.details.model),
  vendor: text(({ task }) => task.details.vendor),
  credential: text(({ task }) => task.credentialId),
  /** Id of the task at the vendor. */
  upstream: optionalText(({ task }) => task.upstreamId),
  request: text(({ task }) => task.details.requestId),
  hold: optionalText(({ task }) => task.holdId),
  polls: [z.int(), ({ task }) => task.details.polls],
  has_webhook: [z.boolean(), ({ task }) => task.details.webhookUrl !== undefined],
  /** Error. Vendors quote prompts in their messages, so `message` is null for operators without the scope `content`. */
  error: [taskError.nullable(), errorOf],
  cost: optionalText(({ task }) => task.details.cost),
  created_at_ms: time(({ task }) => task.createdAtMs),
  updated_at_ms: time(({ task }) => task.updatedAtMs),
  next_poll_at_ms: time(({ task }) => task.nextPollAtMs),
  deadline_at_ms: time(({ task }) => task.deadlineAtMs),
})
export type TaskObject = z.infer<typeof taskSchema>

function errorOf({ task, operator }: ReadTask): z.infer<typeof taskError> | null {
  const { error } = task.details
  return error === undefined
    ? null
    : { code: error.code, message: operator.can.includes('content') ? error.message : null }
}

const attempt = defineObject<DeliveryAttempt>()({
  at_ms: time(({ atMs }) => atMs),
  status: [z.int().nullable(), ({ status }) => status ?? null],
  error: optionalText(({ error }) => error),
  duration_ms: [z.number(), ({ durationMs }) => durationMs],
})

/** Webhook message in the format of the API, without its body. */
export const { schema: deliverySchema, write: deliveryObject } = defineObject<WebhookDelivery>()({
  object: kind('delivery'),
  id: [id, ({ id }) => id],
  account: text(({ accountId }) => accountId),
  task: text(({ taskId }) => taskId),
  /** Address of the receiver without the query, which may contain a secret. */
  url: text(({ url }) => withoutQuery(url)),
  state: [deliveryState, ({ state }) => state],
  attempts: [z.array(attempt.schema), ({ attempts }) => attempts.map(attempt.write)],
  created_at_ms: time(({ createdAtMs }) => createdAtMs),
  next_attempt_at_ms: optionalTime(({ state, nextAttemptAtMs }) => (state === 'pending' ? nextAttemptAtMs : undefined)),
  resent_at_ms: optionalTime(({ resentAtMs }) => resentAtMs),
})
export type DeliveryObject = z.infer<typeof deliverySchema>

function withoutQuery(address: string): string {
  if (!URL.canParse(address)) return ''
  const { origin, pathname } = new URL(address)
  return `${origin}${pathname}`
}
