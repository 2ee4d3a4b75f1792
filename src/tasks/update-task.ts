import type { ConfigurationWarning } from '../pipeline/configuration-warnings.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import { emitShortfall } from '../pipeline/settle.ts'
import type { TaskRecord, TaskState } from '../stores/task-store.ts'
import { type UsageDraft, usageRecord } from '../usage/usage-record.ts'
import { applyReport, type ReportFacts, type ReportOutcome, type TaskEnd } from './apply-report.ts'
import { readTaskReport, vendorOf } from './ask-vendor.ts'
import { frozenCharge } from './frozen-prices.ts'
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
    context.warnings.warn(missingKey(task.credentialId))
    return await askLater(context, task, facts)
  }
  const answer = await readTaskReport(context, asked, task.upstreamId)
  // A key of another account does not see the task, which says nothing about it.
  if (
    asked.isSubstitute &&
    (answer.kind === 'refused' || (answer.kind === 'answer' && answer.value.status === 'unknown'))
  )
    context.warnings.warn(missingKey(task.credentialId))
  if (asked.isSubstitute && answer.kind === 'answer' && answer.value.status === 'unknown')
    return await askLater(context, task, facts)
  if (answer.kind === 'answer') return await commit(context, task, applyReport(task, answer.value, facts), wake)
  if (answer.kind === 'refused' && answer.failure.kind === 'operator') {
    const { status, code, message } = answer.failure
    const { requestId } = task.details
    emit(context, { type: 'vendor-account-problem', requestId, vendor: asked.vendor.id, status, code, message })
  }
  return await askLater(context, task, facts)
}

/** What the operator reads when no key can follow the tasks of one that was taken away. */
export function missingKey(credentialId: string): ConfigurationWarning {
  const vendor = credentialId.slice(0, credentialId.lastIndexOf(':'))
  const message = `No configured key of the vendor ${JSON.stringify(vendor)} can follow the tasks that were submitted with the key ${JSON.stringify(credentialId)}: configure it again, or another one of its account.`
  return { code: 'task-key-missing', message }
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
  const record = ended && context.usage && taskDraft(outcome.task, ended, nowMs)
  const { set, resolve } = outcome.change
  const isCharged = resolve?.kind === 'settle'
  const isMade = await context.store.tasks.change(
    { id: task.id, from: [task.state], set, resolve: isCharged ? { ...resolve, record } : resolve, delivery },
    nowMs,
  )
  if (!isMade) return (await context.store.tasks.find(task.accountId, task.id)) ?? task
  if (record !== undefined && isCharged) context.usage?.noted()
  else if (record !== undefined)
    context.usage?.add(usageRecord(record, { endedAtMs: nowMs, dueNanoDollars: 0n, chargedNanoDollars: 0n }))
  if (ended !== undefined) emitEnded(context, outcome.task, ended, await owedOf(context, task, ended))
  if (delivery !== undefined) wake()
  return outcome.task
}

/** What is recorded of a task that has ended. */
function taskDraft(task: TaskRecord, { state, usage }: TaskEnd, nowMs: number): UsageDraft {
  const { details } = task
  const isCompleted = state === 'completed'
  return {
    id: details.requestId,
    accountId: task.accountId,
    keyId: task.keyId,
    endUser: details.attribution?.endUser,
    tags: details.attribution?.tags ?? [],
    endpoint: details.endpoint,
    model: details.model,
    requestedModel: details.model,
    vendor: details.vendor,
    credentialId: task.credentialId,
    vendorRequestId: task.upstreamId,
    ending: isCompleted ? 'completed' : state === 'cancelled' ? 'abandoned' : 'failed',
    status: 200,
    code: details.error?.code,
    isStream: false,
    usage: usage ?? {},
    isEstimated: false,
    durationMs: nowMs - task.createdAtMs,
    firstByteMs: undefined,
  }
}

async function askLater(context: PipelineContext, task: TaskRecord, facts: ReportFacts): Promise<TaskRecord> {
  const details = { ...task.details, polls: task.details.polls + 1 }
  const delayMs = Math.min(MAX_RETRY_DELAY_MS, facts.pollIntervalMs * (task.details.polls + 1))
  const nextPollAtMs = facts.nowMs + delayMs
  await context.store.tasks.change({ id: task.id, from: [task.state], set: { details, nextPollAtMs } }, facts.nowMs)
  return { ...task, details, nextPollAtMs }
}

/** What of a task's cost the balance did not cover, and is owed. The journal says it; only a cost above the hold can be. */
async function owedOf(context: PipelineContext, task: TaskRecord, { costNanoDollars }: TaskEnd): Promise<bigint> {
  const { details, holdId, accountId } = task
  if (holdId === undefined || costNanoDollars <= (frozenCharge(details, details.variant, details.heldUsage) ?? 0n))
    return 0n
  try {
    const entries = await context.store.ledger.entries(accountId, NEWEST_ENTRIES)
    const own = entries.filter((entry) => entry.holdId === holdId && entry.kind === 'owed')
    return own.reduce((sum, { owed }) => sum + owed, 0n)
  } catch (error) {
    // The change is made; only its report is incomplete.
    reportFault(context, details.requestId, 'tasks', error)
    return 0n
  }
}

/** The entries of a settlement that was just made are among so many of its account. */
const NEWEST_ENTRIES = 100

function emitEnded(context: PipelineContext, task: TaskRecord, ended: TaskEnd, owed: bigint): void {
  const { details } = task
  const { requestId, model, vendor } = details
  const { implausible: fields } = ended
  const charged = ended.costNanoDollars - owed
  const { accountId, keyId } = task
  emitShortfall(context, { requestId, taskId: task.id, accountId, keyId }, { charged, shortfall: owed })
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
    costNanoDollars: charged,
    dueNanoDollars: ended.costNanoDollars,
    durationMs: context.clock.now() - task.createdAtMs,
  })
}
