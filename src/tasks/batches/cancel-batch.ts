import { GatewayError } from '../../core/errors.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { POLLED_STATES } from '../update-task.ts'
import { factsOf, isCancelling } from './batch-record.ts'

/**
 * Starts no more requests; those in flight end normally and are charged.
 * @throws GatewayError `task_not_cancellable` for a batch that has ended.
 */
export async function cancelBatch(
  context: PipelineContext,
  runner: { cancelled(batchId: string): void },
  task: TaskRecord,
): Promise<TaskRecord> {
  const { clock, store } = context
  if (!OPEN_TASK_STATES.includes(task.state))
    throw new GatewayError('task_not_cancellable', {
      message: `A batch with status ${factsOf(task).end} cannot be cancelled.`,
    })
  if (isCancelling(task)) return task
  const nowMs = clock.now()
  const details = { ...task.details, facts: { ...factsOf(task), cancellingAtMs: nowMs } }
  // A queued batch may be started and put back several times, which keeps its details.
  const from = POLLED_STATES.includes(task.state) ? POLLED_STATES : [task.state]
  const isMade = await store.tasks.change({ id: task.id, from, set: { details, updatedAtMs: nowMs } }, nowMs)
  const now = await store.tasks.find(task.accountId, task.id)
  if (now === undefined) return task
  // The batch was accepted or ended in between.
  if (!isMade) return await cancelBatch(context, runner, now)
  runner.cancelled(task.id)
  return now
}
