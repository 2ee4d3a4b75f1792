import { formatDollars } from '../core/money.ts'
import { type UnbilledUsage, type Usage, usedOf, withHookUnits } from '../core/usage.ts'
import type { TaskReport } from '../endpoints/task.ts'
import type { TaskChange, TaskDetails, TaskRecord, TaskState } from '../stores/task-store.ts'
import { frozenCharge } from './new-task.ts'

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
      return goesOn(task, { ...details, unknownReports: 0 }, report.status, facts)
    case 'unknown': {
      const unknownReports = details.unknownReports + 1
      if (unknownReports < UNKNOWN_REPORTS_BELIEVED)
        return goesOn(
          task,
          { ...task.details, polls: details.polls, unansweredPolls: undefined, unknownReports },
          task.state,
          facts,
        )
      const error = { code: 'task_expired', message: 'The model vendor no longer knows the task.' }
      const end = { state: 'failed', nowMs: facts.nowMs, unbilled: unbilledAsHeld(details) } as const
      return endTask(task, { ...details, unknownReports, error }, end)
    }
    case 'completed':
      return completed(task, details, report, facts)
    case 'failed': {
      const error = report.error ?? { code: 'task_failed', message: 'The model vendor could not complete the task.' }
      const end = { state: 'failed', nowMs: facts.nowMs, unbilled: unbilledAsReported(report, facts) } as const
      return endTask(task, { ...details, error }, end)
    }
    case 'cancelled': {
      const end = { state: 'cancelled', nowMs: facts.nowMs, unbilled: unbilledAsReported(report, facts) } as const
      return endTask(task, details, end)
    }
  }
}

/** Returns the usage of a task that the vendor did not complete. */
function unbilledAsReported({ billed }: TaskReport, facts: ReportFacts): UnbilledUsage | undefined {
  const usage = usedOf(billed && facts.billedUsage(billed))
  return usage && { usage, isEstimated: false }
}

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
  const set = { state: end.state, updatedAtMs: end.nowMs, details }
  return {
    task: { ...task, ...set },
    change: { set, resolve: task.holdId === undefined ? undefined : { kind: 'void' } },
    ended: {
      state: end.state,
      usage: undefined,
      costNanoDollars: 0n,
      implausible: [],
      unbilled: end.unbilled,
    },
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

function goesOn(task: TaskRecord, details: TaskDetails, state: TaskState, facts: ReportFacts): ReportOutcome {
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
