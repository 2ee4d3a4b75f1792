import type { VideoRequest } from '../endpoints/videos/video-request.ts'
import type { Admitted, Candidate } from '../stages/records.ts'
import type { StageContext } from '../stages/stage-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { type FrozenPrices, freezePrices } from './frozen-prices.ts'
import { draftOf, type TaskDetailsDraft } from './task-details-draft.ts'

/** Time for the answer to a submission beyond the longest that the request itself may take. */
const SUBMISSION_GRACE_MS = 60_000

/** A task about to be submitted, and the prices of each model that may render it. */
export interface PlannedTask {
  readonly task: TaskRecord
  readonly pricesByModel: ReadonlyMap<string, FrozenPrices>
}

/** Writes a submission down as a task, before any vendor is asked. */
export function planTask(context: StageContext, admitted: Admitted): PlannedTask {
  const { prices } = context
  const nowMs = context.clock.now()
  const request = admitted.body as VideoRequest
  const pricesByModel = new Map<string, FrozenPrices>()
  if (prices !== undefined) {
    for (const model of admitted.chain) pricesByModel.set(model.id, freezePrices(prices, model, admitted.billingFields))
  }
  const seed = request.parameters?.['seed']
  const model = admitted.chain[0]!
  const frozen = pricesByModel.get(model.id)
  const details: TaskDetailsDraft = {
    requestId: admitted.requestId,
    model: model.id,
    vendor: model.vendor,
    heldUsage: admitted.estimate,
    resolution: request.resolution,
    polls: 0,
    unknownReports: 0,
  }
  if (frozen !== undefined) details.prices = frozen
  if (typeof seed === 'number') details.seed = seed
  // As it is called: a text that URLs allow and databases do not would keep the task from ever ending.
  if (request.webhook_url !== undefined) details.webhookUrl = new URL(request.webhook_url).href
  if (admitted.claim !== undefined) details.claim = admitted.claim
  const task: TaskRecord = {
    id: context.ids.next('task'),
    accountId: admitted.principal.accountId,
    keyId: admitted.principal.keyId,
    state: 'submitting',
    upstreamId: undefined,
    vendorAccount: '',
    holdId: prices === undefined ? undefined : admitted.requestId,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs,
    deadlineAtMs: nowMs + context.timeouts.totalMs + SUBMISSION_GRACE_MS,
    details,
  }
  return { task, pricesByModel }
}

/** How long a vendor is left alone before it is asked about a task, whether or not it is configured still. */
export function pollIntervalOf(context: StageContext, vendorId: string): number {
  return context.taskPollIntervalMs ?? context.vendors.get(vendorId)?.videos?.pollIntervalMs ?? 15_000
}

/** The task as it stands once its vendor has taken it, or may have. */
export function taskAt(
  context: StageContext,
  planned: PlannedTask,
  outcome: {
    readonly candidate: Candidate
    readonly state: 'queued' | 'unknown'
    readonly upstreamId: string | undefined
    readonly output: unknown
  },
): TaskRecord {
  const { task, pricesByModel } = planned
  const { candidate, state, upstreamId, output } = outcome
  const { model, vendor } = candidate
  const nowMs = context.clock.now()
  const frozen = pricesByModel.get(model.id)
  const details = draftOf(task.details)
  details.model = model.id
  details.vendor = vendor.id
  if (frozen !== undefined) details.prices = frozen
  if (output !== undefined) details.output = output
  return {
    ...task,
    state,
    upstreamId,
    vendorAccount: candidate.account,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs + pollIntervalOf(context, vendor.id),
    deadlineAtMs: task.createdAtMs + context.taskDeadlineMs,
    details,
  }
}
