import type { TaskOperation, TaskReport } from '../endpoints/task.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { type CalledVendor, callVendor, type TaskResponse } from './call-vendor.ts'
import { behaviourOf } from './new-task.ts'

/** Vendor and operator key that a task was submitted with. */
export interface TaskVendor extends CalledVendor {
  readonly operation: TaskOperation
  /** Whether another key of the vendor is used because the key that submitted the task is no longer configured. */
  readonly isSubstitute: boolean
}

/**
 * Finds the key that submitted a task, or another key of its vendor: keys of one account see the same tasks. Returns `undefined` if
 * the vendor has no key.
 */
export function vendorOf(context: PipelineContext, task: TaskRecord): TaskVendor | undefined {
  const routed = context.routes.vendor(task.details.vendor)
  const own = routed?.keys.find(({ credentialId }) => credentialId === task.credentialId)
  const key = own ?? routed?.keys[task.details.polls % routed.keys.length]
  if (routed === undefined || key === undefined) return undefined
  const operation = behaviourOf(context, task)?.operation(routed.vendor)
  const { apiKey, credentials } = key
  return operation && { vendor: routed.vendor, operation, apiKey, credentials, isSubstitute: own === undefined }
}

/** Polls a task. */
export function readTaskReport(
  context: PipelineContext,
  asked: TaskVendor,
  upstreamId: string,
): Promise<TaskResponse<TaskReport>> {
  const { operation, apiKey } = asked
  return callVendor(context, asked, operation.read(upstreamId, apiKey), (answer) => operation.report(answer))
}

/** Asks the vendor to cancel a task. Only the vendor's confirmation counts. */
export function cancelAtVendor(
  context: PipelineContext,
  asked: TaskVendor,
  upstreamId: string,
): Promise<TaskResponse<true>> {
  const { operation, apiKey } = asked
  return callVendor(context, asked, operation.cancel(upstreamId, apiKey), (answer) =>
    operation.confirmsCancel?.(answer) === false ? undefined : true,
  )
}
