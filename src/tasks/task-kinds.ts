import { Buffer } from 'node:buffer'
import type { TaskBehaviour } from '../endpoints/task.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { TaskChange, TaskDetails, TaskRecord } from '../stores/task-store.ts'
import { BATCH_CREDENTIAL_ID, batchTasks } from './batches/batch-record.ts'
import type { TaskKind } from './webhook-payload.ts'

/** Credential id of deferred answers, which the gateway runs itself. No credential id of a vendor starts this way. */
export const DEFERRED_CREDENTIAL_ID = '-'

const vendorTasks: TaskKind = {
  receiptStatus: 202,
  receipt: (context, task) => behaviourOf(context, task)?.receipt(task),
  message(context, task) {
    const behaviour = behaviourOf(context, task)
    return behaviour && { eventType: (state) => behaviour.eventType(state), eventData: (end) => behaviour.record(end) }
  },
}

const deferredAnswers: TaskKind = {
  receiptStatus: 200,
  receipt: ({ endpoints }, task) => endpoints.deferring(task.details.endpoint)?.deferral?.record(task),
  message: ({ endpoints }, task) => endpoints.deferring(task.details.endpoint)?.deferral,
}

/** Kinds of tasks that the gateway runs itself, by credential id. */
const OWN_KINDS: ReadonlyMap<string, TaskKind> = new Map([
  [DEFERRED_CREDENTIAL_ID, deferredAnswers],
  [BATCH_CREDENTIAL_ID, batchTasks],
])

/** Whether the gateway runs tasks with this credential id itself. Others are at a vendor. */
export function isOwnTask({ credentialId }: Pick<TaskRecord, 'credentialId'>): boolean {
  return OWN_KINDS.has(credentialId)
}

export function kindOf({ credentialId }: TaskRecord): TaskKind {
  return OWN_KINDS.get(credentialId) ?? vendorTasks
}

/** Returns how the endpoint of a task polls and formats it, or `undefined` if the gateway no longer has that endpoint. */
export function behaviourOf(context: PipelineContext, { details }: TaskRecord): TaskBehaviour | undefined {
  return context.endpoints.taskEndpoint(details.endpoint)?.task
}

/** Returns the interval between polls of a task, even if its vendor is no longer configured. */
export function pollIntervalOf(context: PipelineContext, { endpoint, vendor: vendorId }: TaskDetails): number {
  const vendor = context.vendors.get(vendorId)
  const operation = vendor && context.endpoints.taskEndpoint(endpoint)?.task?.operation(vendor)
  return context.taskPollIntervalMs ?? operation?.pollIntervalMs ?? 15_000
}

/** Returns the response to a submission. Its Idempotency-Key replays the same response. */
export function receiptOf(context: PipelineContext, task: TaskRecord): StoredAnswer {
  const { receiptStatus: status, receipt } = kindOf(task)
  const body = Buffer.from(JSON.stringify(receipt(context, task) ?? { id: task.id }))
  return { status, headers: ['content-type', 'application/json'], body }
}

/**
 * Completes the Idempotency-Key of a task for the process that accepted it, which may have died. Returns `undefined` if there is no
 * key, or if it has expired and another request may have it.
 */
export function lateReceipt(context: PipelineContext, task: TaskRecord): TaskChange['answered'] {
  const { claim } = task.details
  if (claim === undefined || claim.expiresAtMs <= context.clock.now()) return undefined
  return { claim, answer: receiptOf(context, task) }
}
