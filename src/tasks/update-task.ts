import { formatDollars } from '../core/money.ts'
import { type UnbilledUsage, type Usage, usedOf, withHookUnits } from '../core/usage.ts'
import type { TaskReport } from '../endpoints/task.ts'
import { emitCrossings, emitGivenUp, emitShortfall, membersOf } from '../pipeline/charge.ts'
import type { ConfigurationWarning } from '../pipeline/notices.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { Resolution } from '../stores/resolution.ts'
import type { TaskChange, TaskDetails, TaskRecord, TaskState } from '../stores/task-store.ts'
import { type UsageDraft, usageRecord } from '../usage/usage-record.ts'
import { readTaskReport, reportAccountProblem, reportUnanswered, vendorOf } from './call-vendor.ts'
import { behaviourOf, frozenCharge, kindOf, pollIntervalOf } from './task-record.ts'
import { newDelivery } from './webhook-payload.ts'

/** States in which a task is polled. */
export const POLLED_STATES: readonly TaskState[] = ['queued', 'in_progress']

/** Maximum wait after polls that the vendor did not answer, in milliseconds. */
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
    return await scheduleNextPoll(context, task, facts)
  }
  const answer = await readTaskReport(context, asked, task.upstreamId)
  const report = answer.kind === 'answer' ? answer.value : undefined
  // A key of another account cannot see the task, so its answer proves nothing.
  const isForeign = asked.isSubstitute && (answer.kind === 'refused' || report?.status === 'unknown')
  if (isForeign) context.warnings.warn(missingKey(task.credentialId))
  if (isForeign && report !== undefined) return await scheduleNextPoll(context, task, facts)
  const { requestId, model } = task.details
  const named = { requestId, taskId: task.id, vendor: asked.vendor.id, model }
  if (answer.kind !== 'answer') {
    reportUnanswered(context, named, 'a vendor did not report the state of a task; the query is repeated', answer)
    return await scheduleNextPoll(context, task, facts)
  }
  const problem = answer.value.accountProblem
  if (problem !== undefined) {
    // The owner of the task must not read the vendor's message.
    reportAccountProblem(context, named, problem)
    const text = "a vendor gave a task up because of the operator's account"
    context.logger.error(text, { ...named, vendorCode: problem.code })
  }
  return await commit(context, task, applyReport(task, answer.value, facts), wake)
}

/** Warning for the operator: no key can poll the tasks of a removed key. */
export function missingKey(credentialId: string): ConfigurationWarning {
  const vendor = credentialId.slice(0, credentialId.lastIndexOf(':'))
  const message = `No configured key of the vendor ${JSON.stringify(vendor)} can follow the tasks that were submitted with the key ${JSON.stringify(credentialId)}: configure it again, or another one of its account.`
  return { code: 'task-key-missing', message }
}

/** Facts that a report about a task is evaluated with. */
export function reportFacts(context: PipelineContext, task: TaskRecord): ReportFacts {
  const model = context.catalog.find(task.details.model)
  return {
    nowMs: context.clock.now(),
    pollIntervalMs: pollIntervalOf(context, task.details),
    billedUsage: (billed) => behaviourOf(context, task)?.billedUsage(billed, model),
  }
}

/**
 * Stores a change, with its settlement and its webhook, in one transaction. A concurrent second change has no effect and returns the
 * task as the first one left it.
 */
export async function commit(
  context: PipelineContext,
  task: TaskRecord,
  reported: ReportOutcome,
  wake: WakeWebhooks,
): Promise<TaskRecord> {
  const outcome = closeDeferred(context, reported)
  const { ended } = outcome
  const nowMs = context.clock.now()
  const delivery =
    ended === undefined
      ? undefined
      : newDelivery({ ids: context.ids, nowMs, task: outcome.task, message: kindOf(task).message(context, task) })
  const record = ended && context.usage && taskDraft(outcome.task, ended, nowMs)
  const { set, resolve, keeps } = outcome.change
  const thresholds = context.onEvent === undefined ? undefined : context.spendingThresholds
  const told = resolve?.kind === 'settle' ? { ...resolve, record, thresholds } : resolve
  const made = await context.store.tasks.change(
    { id: task.id, from: [task.state], set, resolve: told, keeps, delivery },
    nowMs,
  )
  if (made === undefined) return (await context.store.tasks.find(task.accountId, task.id)) ?? task
  if (record !== undefined) noteRecord(context, record, nowMs, made.charge, ended?.costNanoDollars ?? 0n)
  if (ended !== undefined) emitEnded(context, outcome.task, ended, made.charge)
  if (delivery !== undefined) wake()
  return outcome.task
}

/** Whether a stored end is the one that was offered. A store may have saved it without confirming, and then gets it again. */
export function isSameEnd(now: TaskRecord, end: TaskRecord): boolean {
  return now.state === end.state && now.updatedAtMs === end.updatedAtMs && now.details.polls === end.details.polls
}

/** Usage record of a finished task. */
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
    attempts: undefined,
  }
}

async function scheduleNextPoll(context: PipelineContext, task: TaskRecord, facts: ReportFacts): Promise<TaskRecord> {
  const unansweredPolls = (task.details.unansweredPolls ?? 0) + 1
  const details = { ...task.details, polls: task.details.polls + 1, unansweredPolls }
  const delayMs = Math.min(MAX_RETRY_DELAY_MS, facts.pollIntervalMs * unansweredPolls)
  const nextPollAtMs = facts.nowMs + delayMs
  await context.store.tasks.change({ id: task.id, from: [task.state], set: { details, nextPollAtMs } }, facts.nowMs)
  return { ...task, details, nextPollAtMs }
}

/** Writes a record without a charge. The record of a charge is written together with the charge. */
function noteRecord(
  context: PipelineContext,
  record: UsageDraft,
  nowMs: number,
  charge: Resolution | undefined,
  dueNanoDollars: bigint,
): void {
  if (charge?.recordFault !== undefined) reportFault(context, record.id, 'usage', charge.recordFault)
  if (charge?.resolved === true || charge?.endedBy === 'settled') context.usage?.noted()
  else context.usage?.add(usageRecord(record, { endedAtMs: nowMs, dueNanoDollars, chargedNanoDollars: 0n }))
}

/** Emits the result of a task's charge. If its hold had expired, the task cannot be charged. */
function emitCharge(context: PipelineContext, task: TaskRecord, due: bigint, charge: Resolution): void {
  const { accountId, keyId, holdId, id: taskId } = task
  const { requestId } = task.details
  const named = { requestId, taskId, accountId, keyId }
  if (charge.resolved) {
    emitShortfall(context, named, charge)
    emitCrossings(context, named, charge.crossings)
  } else if (charge.endedBy !== 'settled' && due > 0n)
    emitGivenUp(context, { ...named, holdId, amountNanoDollars: due }, 'hold-ended', undefined)
}

function emitEnded(context: PipelineContext, task: TaskRecord, ended: TaskEnd, charge: Resolution | undefined): void {
  const { details } = task
  const { requestId, model, vendor } = details
  const { implausible: fields, costNanoDollars: due, usage = {}, reported = {} } = ended
  if (charge !== undefined) emitCharge(context, task, due, charge)
  if (fields.length > 0)
    emit(context, {
      type: 'usage-implausible',
      ...{ requestId, vendor, model, fields },
      reported: membersOf(reported, fields),
      charged: membersOf(usage, fields),
      reportedNanoDollars: undefined,
      dueNanoDollars: task.holdId === undefined ? undefined : due,
    })
  if (ended.unbilled !== undefined) {
    const { accountId, keyId } = task
    emit(context, { type: 'unbilled-usage', requestId, accountId, keyId, vendor, model, ...ended.unbilled })
  }
  emit(context, {
    type: 'task-ended',
    endpoint: details.endpoint,
    requestId,
    taskId: task.id,
    accountId: task.accountId,
    keyId: task.keyId,
    model,
    vendor,
    state: ended.state,
    code: details.error?.code,
    usage: ended.usage,
    costNanoDollars: charge?.charged ?? 0n,
    dueNanoDollars: due,
    durationMs: context.clock.now() - task.createdAtMs,
    tags: details.attribution?.tags ?? [],
  })
}

/**
 * Removes the request from the task of a deferred answer at its end, and stores the final answer for its owner. Any other outcome is
 * returned unchanged.
 */
function closeDeferred(context: PipelineContext, outcome: ReportOutcome): ReportOutcome {
  const { task, change, ended } = outcome
  const { deferred, ...details } = task.details
  const deferral = context.endpoints.deferring(details.endpoint)?.deferral
  if (ended === undefined || deferred === undefined || deferral === undefined) return outcome
  const nowMs = context.clock.now()
  const keeps =
    change.keeps ??
    (ended.state === 'completed'
      ? undefined
      : {
          ...deferral.unmade(task, { state: ended.state, nowMs }),
          id: task.id,
          accountId: task.accountId,
          vendor: details.vendor,
          credentialId: task.credentialId,
          upstreamId: undefined,
          model: details.model,
          createdAtMs: nowMs,
          expiresAtMs: nowMs + context.keptAnswers.retentionMs,
        })
  return { ...outcome, task: { ...task, details }, change: { ...change, set: { ...change.set, details }, keeps } }
}

/** Number of consecutive reports that the vendor does not know a task after which the task expires. */
const UNKNOWN_REPORTS_BELIEVED = 3

/** Number of polls after which the interval grows, up to four times as long. */
const POLLS_BEFORE_SLOWING = 10
const MAX_SLOWING = 4

/** Facts that a change of a task needs in addition to the task. */
export interface ReportFacts {
  readonly nowMs: number
  readonly pollIntervalMs: number
  /** Returns the usage to charge for a report, or `undefined` if the report is implausible. */
  readonly billedUsage: (billed: Usage) => Usage | undefined
}

export interface ReportOutcome {
  /** Task after the report. */
  readonly task: TaskRecord
  readonly change: Pick<TaskChange, 'set' | 'resolve' | 'keeps'>
  /** End of the task, if the report ended it. */
  readonly ended: TaskEnd | undefined
}

/** Until a vendor reports a failure, it may have completed the task and may bill everything that was held for. */
export function unbilledAsHeld({ heldUsage: { hookUnits: _, ...usage } }: TaskDetails): UnbilledUsage {
  return { usage, isEstimated: true }
}

/** How a task ended. */
export interface TaskEnd {
  readonly state: 'completed' | 'failed' | 'cancelled'
  readonly usage: Usage | undefined
  readonly costNanoDollars: bigint
  /** Implausible fields of the vendor's report; if there are any, the held usage was charged. Empty if there are none. */
  readonly implausible: readonly string[]
  /** The vendor's report, if it is implausible. */
  readonly reported?: Usage | undefined
  /** Usage that the vendor bills, or may bill, although nobody is charged for it, if any. */
  readonly unbilled?: UnbilledUsage | undefined
}

/** Returns the time of the next poll of a task, in Unix milliseconds. */
export function nextPollAtMs(task: TaskRecord, { nowMs, pollIntervalMs }: ReportFacts): number {
  return nowMs + pollIntervalMs * Math.min(MAX_SLOWING, 1 + Math.floor(task.details.polls / POLLS_BEFORE_SLOWING))
}

/** Returns the changes that a report makes. Pure. */
export function applyReport(task: TaskRecord, report: TaskReport, facts: ReportFacts): ReportOutcome {
  const details = withReport(task.details, report)
  switch (report.status) {
    case 'queued':
    case 'in_progress':
      return continueTask(task, { ...details, unknownReports: 0 }, report.status, facts)
    case 'unknown': {
      const unknownReports = details.unknownReports + 1
      const { polls } = details
      const counted = { ...task.details, polls, unansweredPolls: undefined, unknownReports }
      if (unknownReports < UNKNOWN_REPORTS_BELIEVED) return continueTask(task, counted, task.state, facts)
      const error = { code: 'task_expired', message: 'The model vendor no longer knows the task.' }
      const end = { state: 'failed', nowMs: facts.nowMs, unbilled: unbilledAsHeld(details) } as const
      return endTask(task, { ...details, unknownReports, error }, end)
    }
    case 'completed':
      return completed(task, details, report, facts)
    case 'failed':
    case 'cancelled': {
      const { status: state, error = FAILED, billed } = report
      // The vendor did not complete the task, and may bill a part of it.
      const usage = usedOf(billed && facts.billedUsage(billed))
      const end = { state, nowMs: facts.nowMs, unbilled: usage && { usage, isEstimated: false } }
      return endTask(task, state === 'failed' ? { ...details, error } : details, end)
    }
  }
}

const FAILED = { code: 'task_failed', message: 'The model vendor could not complete the task.' }

/** Ends a task without a charge. */
export function endTask(
  task: TaskRecord,
  details: TaskDetails,
  end: {
    readonly state: 'failed' | 'cancelled'
    readonly nowMs: number
    readonly unbilled?: UnbilledUsage | undefined
  },
): ReportOutcome {
  const { state, nowMs, unbilled } = end
  const set = { state, updatedAtMs: nowMs, details }
  return {
    task: { ...task, ...set },
    change: { set, resolve: task.holdId === undefined ? undefined : { kind: 'void' } },
    ended: { state, usage: undefined, costNanoDollars: 0n, implausible: [], unbilled },
  }
}

function withReport(details: TaskDetails, { output, usage, facts }: TaskReport): TaskDetails {
  return {
    ...details,
    polls: details.polls + 1,
    unansweredPolls: undefined,
    ...(output !== undefined && { output }),
    ...(usage !== undefined && { usage }),
    ...(facts !== undefined && { facts: { ...details.facts, ...facts } }),
  }
}

function continueTask(task: TaskRecord, details: TaskDetails, state: TaskState, facts: ReportFacts): ReportOutcome {
  const set = {
    state,
    details,
    nextPollAtMs: nextPollAtMs({ ...task, details }, facts),
    ...(state === task.state ? {} : { updatedAtMs: facts.nowMs }),
  }
  return { task: { ...task, ...set }, change: { set }, ended: undefined }
}

function completed(task: TaskRecord, details: TaskDetails, report: TaskReport, facts: ReportFacts): ReportOutcome {
  const { billed: reported, contentUrl, variant } = report
  const billed = reported && facts.billedUsage(reported)
  const { heldUsage } = details
  // A vendor's report does not contain the units that hooks charged at the submission.
  const usage = billed === undefined ? heldUsage : withHookUnits(billed, heldUsage.hookUnits ?? 0)
  const implausible = billed === undefined ? Object.keys(reported ?? {}) : []
  const end = {
    state: 'completed',
    nowMs: facts.nowMs,
    details: contentUrl === undefined ? details : { ...details, contentUrl },
  } as const
  return chargedEnd(task, end, { usage, amount: frozenCharge(details, variant, usage), implausible, reported })
}

/** Charge at the end of a task. */
export interface TaskCharge extends Partial<Pick<TaskEnd, 'implausible' | 'reported'>> {
  readonly usage: Usage
  /** Charge in nano-dollars, or `undefined` if billing is off. */
  readonly amount: bigint | undefined
}

/** Ends a task with a charge: for its result, or for the usage of a run without one. */
export function chargedEnd(
  task: TaskRecord,
  { state, nowMs, details: given }: Pick<TaskEnd, 'state'> & { readonly nowMs: number; readonly details: TaskDetails },
  { usage, amount, implausible = [], reported }: TaskCharge,
): ReportOutcome {
  const costNanoDollars = amount ?? 0n
  const { endpoint, model, vendor } = given
  const details = amount === undefined ? given : { ...given, cost: formatDollars(amount) }
  const set = { state, updatedAtMs: nowMs, details }
  const charge = { keyId: task.keyId, endpoint, model, vendor, usage }
  const settle = {
    kind: 'settle',
    amount: costNanoDollars,
    description: `${endpoint} ${model}`,
    details: charge,
  } as const
  return {
    task: { ...task, ...set },
    change: { set, resolve: task.holdId === undefined ? undefined : settle },
    ended: { state, usage, costNanoDollars, implausible, reported },
  }
}
