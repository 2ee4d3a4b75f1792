import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { respondJson } from '../stages/respond.ts'
import type { StageContext } from '../stages/stage-context.ts'
import type { Principal } from '../stores/principal.ts'
import type { WebhookDelivery } from '../stores/webhook-store.ts'
import { cancelTask } from '../tasks/cancel-task.ts'
import { findTask, upToDate } from '../tasks/find-task.ts'
import { listTasks } from '../tasks/list-tasks.ts'
import { sendContent } from '../tasks/send-content.ts'
import type { WakeWebhooks } from '../tasks/update-task.ts'
import { videoRecord } from '../tasks/video-record.ts'
import { type Target, videosScope } from './routes.ts'
import { countTaskRequest } from './task-limits.ts'

/** A request about tasks, from a caller who is known. */
export interface TaskRequest {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly principal: Principal
  readonly wakeWebhooks: WakeWebhooks
}

/**
 * Answers a request about tasks. An account sees its own only; foreign, unknown and malformed ids get the same bytes.
 * @throws GatewayError as the actions do, `permission_denied` for a key that may not use the endpoint of the tasks,
 *   `rate_limited`, and `store_unavailable`.
 */
export async function serveTask(
  context: StageContext,
  asked: TaskRequest,
  target: Extract<Target, { kind: 'tasks' | 'task' }>,
): Promise<void> {
  const { principal } = asked
  if (principal.scopes?.endpoints?.includes(videosScope) === false) throw new GatewayError('permission_denied')
  await countTaskRequest(context, principal)
  try {
    await answer(context, asked, target)
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

async function answer(
  context: StageContext,
  asked: TaskRequest,
  target: Extract<Target, { kind: 'tasks' | 'task' }>,
): Promise<void> {
  const { request, sink, requestId, principal, wakeWebhooks } = asked
  const { accountId } = principal
  if (target.kind === 'tasks') return respondJson(sink, requestId, await listTasks(context, accountId, request.query))
  const task = await findTask(context, accountId, target.taskId)
  switch (target.action) {
    case 'read':
      return respondJson(sink, requestId, videoRecord(await upToDate(context, task, wakeWebhooks)))
    case 'cancel':
      return respondJson(sink, requestId, videoRecord(await cancelTask(context, task, wakeWebhooks)))
    case 'content':
      return await sendContent(context, asked, await upToDate(context, task, wakeWebhooks))
    case 'webhooks':
      return respondJson(sink, requestId, await deliveryList(context, accountId, task.id))
    case 'webhooks/resend': {
      const { webhooks } = context.store
      const nowMs = context.clock.now()
      for (const delivery of await webhooks.list(accountId, task.id))
        await webhooks.resend(accountId, delivery.id, nowMs)
      wakeWebhooks()
      return respondJson(sink, requestId, await deliveryList(context, accountId, task.id))
    }
  }
}

async function deliveryList(context: StageContext, accountId: string, taskId: string): Promise<unknown> {
  const deliveries = await context.store.webhooks.list(accountId, taskId)
  return { object: 'list', data: deliveries.map(readableDelivery), has_more: false }
}

function readableDelivery(delivery: WebhookDelivery): unknown {
  return {
    id: delivery.id,
    object: 'webhook.delivery',
    task_id: delivery.taskId,
    url: delivery.url,
    state: delivery.state,
    created_at: Math.floor(delivery.createdAtMs / 1000),
    next_attempt_at: delivery.state === 'pending' ? Math.floor(delivery.nextAttemptAtMs / 1000) : null,
    attempts: delivery.attempts.map(({ atMs, status, error, durationMs }) => ({
      at: Math.floor(atMs / 1000),
      status: status ?? null,
      error: error ?? null,
      duration_ms: durationMs,
    })),
  }
}
