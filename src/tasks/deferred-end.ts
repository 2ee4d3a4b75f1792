import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskChange, TaskDetails, TaskRecord } from '../stores/task-store.ts'
import type { ReportOutcome } from './apply-report.ts'

/** Credential id of tasks that the gateway runs itself. No credential id of a vendor starts this way. */
export const DEFERRED_CREDENTIAL_ID = '-'

/** Charge at the end of a deferred answer. */
export interface DeferredCharge {
  readonly usage: Usage
  /** Charge in nano-dollars, or `undefined` if billing is off. */
  readonly amount: bigint | undefined
}

/** Ends a deferred answer with a charge: for the whole answer, or for the usage of a run without one. */
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
 * Removes the request from the task of a deferred answer at its end, and stores the final answer for its owner. Any other outcome is
 * returned unchanged.
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
