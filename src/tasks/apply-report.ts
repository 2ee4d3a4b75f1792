import { formatDollars } from '../core/money.ts'
import { type UnbilledUsage, type Usage, usedOf, withHookUnits } from '../core/usage.ts'
import type { TaskReport } from '../endpoints/task.ts'
import type { TaskChange, TaskDetails, TaskRecord, TaskState } from '../stores/task-store.ts'
import { frozenCharge } from './frozen-prices.ts'

/** A task expires after this many consecutive reports that the vendor does not know it. */
const UNKNOWN_REPORTS_BELIEVED = 3

/** After this many polls the interval grows, up to four times as long. */
const POLLS_BEFORE_SLOWING = 10
const MAX_SLOWING = 4

/** The facts that a change of a task needs besides the task. */
export interface ReportFacts {
  readonly nowMs: number
  readonly pollIntervalMs: number
  /** What of a report is charged; undefined: it cannot be believed. */
  readonly billedUsage: (billed: Usage) => Usage | undefined
}

/** The effect of a vendor's report on a task. */
export interface ReportOutcome {
  /** The task after it. */
  readonly task: TaskRecord
  readonly change: Pick<TaskChange, 'set' | 'resolve' | 'keeps'>
  /** Set when the task has ended by it. */
  readonly ended: TaskEnd | undefined
}

/** A vendor that has not said that a task failed may have made it, and bill all that was held for. */
export function unbilledAsHeld({ heldUsage: { hookUnits: _, ...usage } }: TaskDetails): UnbilledUsage {
  return { usage, isEstimated: true }
}

/** How a task ended. */
export interface TaskEnd {
  readonly state: 'completed' | 'failed' | 'cancelled'
  readonly usage: Usage | undefined
  readonly costNanoDollars: bigint
  /** Fields of the vendor's report that could not be believed, so that what was held for was charged. Empty: none. */
  readonly implausible: readonly string[]
  /** The vendor's report, if it could not be believed. */
  readonly reported?: Usage | undefined
  /** What the vendor bills, or may bill, although nobody is charged; absent: nothing. */
  readonly unbilled?: UnbilledUsage | undefined
}

/** When a task is polled next. */
export function nextPollAtMs(task: TaskRecord, { nowMs, pollIntervalMs }: ReportFacts): number {
  return nowMs + pollIntervalMs * Math.min(MAX_SLOWING, 1 + Math.floor(task.details.polls / POLLS_BEFORE_SLOWING))
}

/** Works out what a report changes. Pure. */
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

/** What a vendor reports of a task that it did not complete. */
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

function withReport(details: TaskDetails, report: TaskReport): TaskDetails {
  // A copy: what a store or a caller holds is never changed. `Object.assign` and property writes, because adding members to
  // what `...` has copied takes V8 five microseconds.
  const draft: { -readonly [Member in keyof TaskDetails]: TaskDetails[Member] } = Object.assign({}, details)
  draft.polls += 1
  if (details.unansweredPolls !== undefined) draft.unansweredPolls = undefined
  if (report.output !== undefined) draft.output = report.output
  if (report.usage !== undefined) draft.usage = report.usage
  if (report.facts !== undefined) draft.facts = { ...details.facts, ...report.facts }
  return draft
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
  const billed = report.billed === undefined ? undefined : facts.billedUsage(report.billed)
  const { heldUsage } = details
  // What hooks charged at the submission is in no report of a vendor.
  const usage = billed === undefined ? heldUsage : withHookUnits(billed, heldUsage.hookUnits ?? 0)
  const implausible = billed === undefined ? Object.keys(report.billed ?? {}) : []
  const charged = frozenCharge(details, report.variant, usage)
  const costNanoDollars = charged ?? 0n
  const set = {
    state: 'completed',
    updatedAtMs: facts.nowMs,
    details: {
      ...details,
      ...(report.contentUrl === undefined ? {} : { contentUrl: report.contentUrl }),
      ...(charged === undefined ? {} : { cost: formatDollars(charged) }),
    },
  } as const
  const { endpoint, model, vendor } = details
  const description = `${endpoint} ${model}`
  const chargeDetails = { keyId: task.keyId, endpoint, model, vendor, usage }
  return {
    task: { ...task, ...set },
    change: {
      set,
      resolve:
        task.holdId === undefined
          ? undefined
          : { kind: 'settle', amount: costNanoDollars, description, details: chargeDetails },
    },
    ended: { state: 'completed', usage, costNanoDollars, implausible, reported: report.billed },
  }
}
