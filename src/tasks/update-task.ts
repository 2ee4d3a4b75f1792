import { emit, type PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskRecord, TaskState } from '../stores/task-store.ts'
import { applyReport, type ReportFacts, type ReportOutcome, type TaskEnd } from './apply-report.ts'
import { readTaskReport, vendorOf } from './ask-vendor.ts'
import { behaviourOf, pollIntervalOf } from './new-task.ts'
import { newDelivery } from './webhook-payload.ts'

/** States in which a task is polled. */
export const POLLED_STATES: readonly TaskState[] = ['queued', 'in_progress']

/** After an unsuccessful poll the wait grows by this for each poll so far, up to the maximum. */
const MAX_RETRY_DELAY_MS = 5 * 60_000

/** Called when a message was queued. */
export type WakeWebhooks = () => void

/**
 * Polls a task that this process holds a lease on, and stores the result. Returns the updated task.
 * @throws whatever the store throws; the lease then expires.
 */
export async function refreshTask(context: PipelineContext, task: TaskRecord, wake: WakeWebhooks): Promise<TaskRecord> {
  const facts = reportFacts(context, task)
  const asked = vendorOf(context, task)
  if (asked === undefined || task.upstreamId === undefined) {
    context.logger.error("a task's vendor key is not configured any more", { taskId: task.id })
    return await askLater(context, task, facts)
  }
  const answer = await readTaskReport(context, asked, task.upstreamId)
  if (answer.kind === 'answer') return await commit(context, task, applyReport(task, answer.value, facts), wake)
  if (answer.kind === 'refused' && answer.failure.kind === 'operator') {
    const { status, code, message } = answer.failure
    const { requestId } = task.details
    emit(context, { type: 'vendor-account-problem', requestId, vendor: asked.vendor.id, status, code, message })
  }
  return await askLater(context, task, facts)
}

/** What a report about a task is measured by. */
export function reportFacts(context: PipelineContext, task: TaskRecord): ReportFacts {
  const model = context.catalog.find(task.details.model)
  return {
    nowMs: context.clock.now(),
    pollIntervalMs: pollIntervalOf(context, task.details),
    billedUsage: (billed) => behaviourOf(context, task)?.billedUsage(billed, model),
  }
}

/**
 * Makes a change, with its settlement and its webhook in one transaction. A concurrent second change has no effect and
 * returns the task as the first one left it.
 */
export async function commit(
  context: PipelineContext,
  task: TaskRecord,
  outcome: ReportOutcome,
  wake: WakeWebhooks,
): Promise<TaskRecord> {
  const { ended } = outcome
  const nowMs = context.clock.now()
  const delivery =
    ended === undefined
      ? undefined
      : newDelivery({ ids: context.ids, nowMs, task: outcome.task, behaviour: behaviourOf(context, task) })
  const isMade = await context.store.tasks.change(
    { id: task.id, from: [task.state], set: outcome.change.set, resolve: outcome.change.resolve, delivery },
    nowMs,
  )
  if (!isMade) return (await context.store.tasks.find(task.accountId, task.id)) ?? task
  if (ended !== undefined) emitEnded(context, outcome.task, ended)
  if (delivery !== undefined) wake()
  return outcome.task
}

async function askLater(context: PipelineContext, task: TaskRecord, facts: ReportFacts): Promise<TaskRecord> {
  const details = { ...task.details, polls: task.details.polls + 1 }
  const delayMs = Math.min(MAX_RETRY_DELAY_MS, facts.pollIntervalMs * (task.details.polls + 1))
  const nextPollAtMs = facts.nowMs + delayMs
  await context.store.tasks.change({ id: task.id, from: [task.state], set: { details, nextPollAtMs } }, facts.nowMs)
  return { ...task, details, nextPollAtMs }
}

function emitEnded(context: PipelineContext, task: TaskRecord, ended: TaskEnd): void {
  const { details } = task
  const { requestId, model, vendor } = details
  const { implausible: fields } = ended
  if (fields.length > 0) emit(context, { type: 'usage-implausible', requestId, vendor, model, fields })
  emit(context, {
    type: 'task-ended',
    requestId,
    taskId: task.id,
    accountId: task.accountId,
    keyId: task.keyId,
    model,
    vendor,
    state: ended.state,
    code: details.error?.code,
    usage: ended.usage,
    costNanoDollars: ended.costNanoDollars,
    durationMs: context.clock.now() - task.createdAtMs,
  })
}
