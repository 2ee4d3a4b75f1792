import { GatewayError } from '../core/errors.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../stores/task-store.ts'
import { isBatch } from '../tasks/batches/batch-record.ts'
import type { DeferredAnswers } from '../tasks/deferred-answers.ts'
import { DEFERRED_CREDENTIAL_ID } from '../tasks/deferred-end.ts'
import { cancelTask } from '../tasks/task-requests.ts'
import type { WakeWebhooks } from '../tasks/update-task.ts'
import type { LoadedBatches } from './loaded-batches.ts'

/** Parts of a gateway that run its tasks. */
export interface TaskRunners {
  readonly deferred: DeferredAnswers
  /** Returns `undefined` if the gateway has no batches. */
  readonly batches: () => LoadedBatches | undefined
  readonly wakeWebhooks: WakeWebhooks
}

/**
 * Cancels a task as its owner would.
 * @throws GatewayError `task_not_cancellable` if it has ended, or a vendor runs it already; `upstream_unavailable` if its vendor
 *   cannot be reached.
 */
export async function cancelAnyTask(
  context: PipelineContext,
  { deferred, batches, wakeWebhooks }: TaskRunners,
  task: TaskRecord,
): Promise<void> {
  const loaded = batches()
  if (!OPEN_TASK_STATES.includes(task.state)) throw new GatewayError('task_not_cancellable')
  if (task.credentialId === DEFERRED_CREDENTIAL_ID) await deferred.cancel(context, task)
  else if (!isBatch(task)) await cancelTask(context, task, wakeWebhooks)
  else if (loaded !== undefined) await loaded.engine.cancelBatch(context, loaded.runner, task)
  else throw new GatewayError('task_not_cancellable', { message: 'This gateway has no batches.' })
}
