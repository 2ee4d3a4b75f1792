import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskChange, TaskDetails, TaskRecord } from '../stores/task-store.ts'
import type { ReportOutcome } from './apply-report.ts'

/** Credential id of tasks that the gateway runs itself. No vendor's begins so. */
export const DEFERRED_CREDENTIAL_ID = '-'

/** What is charged at the end of a deferred answer. */
export interface DeferredCharge {
  readonly usage: Usage
  /** Nano-dollars; undefined: billing is off. */
  readonly amount: bigint | undefined
}

/** The end of a deferred answer that is charged: the whole answer, or what one without an answer had used. */
export function chargedEnd(
  task: TaskRecord,
  end: { readonly state: 'completed' | 'failed' | 'cancelled'; readonly nowMs: number; readonly details: TaskDetails },
  { usage, amount }: DeferredCharge,
): ReportOutcome {
  const costNanoDollars = amount ?? 0n
  const { endpoint, model, vendor } = end.details
  const details = amount === undefined ? end.details : { ...end.details, cost: formatDollars(amount) }
  const set = { state: end.state, updatedAtMs: end.nowMs, details }
  const resolve: TaskChange['resolve'] =
    task.holdId === undefined
      ? undefined
      : {
          kind: 'settle',
          amount: costNanoDollars,
          description: `${endpoint} ${model}`,
          details: { keyId: task.keyId, endpoint, model, vendor, usage },
        }
  return {
    task: { ...task, ...set },
    change: { set, resolve },
    ended: { state: end.state, usage, costNanoDollars, implausible: [] },
  }
}

/**
 * What follows from the end of a deferred answer: the request is removed from its task, and what its owner reads from then on
 * is kept with it. Any other outcome stays as it is.
 */
export function closeDeferred(context: PipelineContext, outcome: ReportOutcome): ReportOutcome {
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
