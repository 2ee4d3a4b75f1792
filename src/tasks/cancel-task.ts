import { GatewayError } from '../core/errors.ts'
import type { StageContext } from '../stages/stage-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { endTask } from './apply-report.ts'
import { cancelAtVendor, vendorOf } from './ask-vendor.ts'
import { commit, type WakeWebhooks } from './update-task.ts'

/**
 * Cancels a task that has not begun to run, at the vendor first: only the vendor's consent frees the money.
 * @throws GatewayError `task_not_cancellable` when it runs or has ended; `upstream_unavailable` when the vendor cannot be
 *   asked.
 */
export async function cancelTask(context: StageContext, task: TaskRecord, wake: WakeWebhooks): Promise<TaskRecord> {
  const asked = vendorOf(context, task)
  if (task.state !== 'queued' || task.upstreamId === undefined || asked === undefined)
    throw new GatewayError('task_not_cancellable')
  const answer = await cancelAtVendor(context, asked, task.upstreamId)
  if (answer.kind === 'refused' && answer.failure.kind === 'caller') throw new GatewayError('task_not_cancellable')
  if (answer.kind !== 'answer') throw new GatewayError('upstream_unavailable')
  const nowMs = context.clock.now()
  const cancelled = await commit(context, task, endTask(task, task.details, { state: 'cancelled', nowMs }), wake)
  // A report may have come in between: then the task is what the report made it.
  if (cancelled.state !== 'cancelled') throw new GatewayError('task_not_cancellable')
  return cancelled
}
