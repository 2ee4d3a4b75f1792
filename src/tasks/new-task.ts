import type { VideoRequest } from '../endpoints/videos/video-request.ts'
import type { Admitted, Candidate } from '../stages/records.ts'
import type { StageContext } from '../stages/stage-context.ts'
import type { TaskDetails, TaskRecord } from '../stores/task-store.ts'
import { type FrozenPrices, freezePrices } from './frozen-prices.ts'

/** Time for the answer to a submission beyond the longest that the request itself may take. */
const SUBMISSION_GRACE_MS = 60_000

/** A task about to be submitted, and the prices of each model that may render it. */
export interface PlannedTask {
  readonly task: TaskRecord
  /** Undefined where only the model of the task may. */
  readonly pricesByModel: ReadonlyMap<string, FrozenPrices> | undefined
}

/** Writes a submission down as a task, before any vendor is asked. */
export function planTask(context: StageContext, admitted: Admitted): PlannedTask {
  const { prices } = context
  const nowMs = context.clock.now()
  const request = admitted.body as VideoRequest
  const { chain, billingFields } = admitted
  const model = chain[0]!
  const seed = request.parameters?.['seed']
  const details: TaskDetails = {
    requestId: admitted.requestId,
    model: model.id,
    vendor: model.vendor,
    prices: prices && freezePrices(prices, model, billingFields),
    heldUsage: admitted.estimate,
    resolution: request.resolution,
    seed: typeof seed === 'number' ? seed : undefined,
    // As it is called: a text that URLs allow and databases do not would keep the task from ever ending.
    webhookUrl: request.webhook_url === undefined ? undefined : new URL(request.webhook_url).href,
    claim: admitted.claim,
    polls: 0,
    unknownReports: 0,
    output: undefined,
  }
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
  const pricesByModel =
    prices === undefined || chain.length === 1
      ? undefined
      : new Map(chain.map((row) => [row.id, freezePrices(prices, row, billingFields)]))
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
  const { details } = task
  // Written out: what V8 copies by `...` or `Object.assign` and then changes takes it some microseconds.
  return {
    id: task.id,
    accountId: task.accountId,
    keyId: task.keyId,
    state,
    upstreamId,
    vendorAccount: candidate.account,
    holdId: task.holdId,
    createdAtMs: task.createdAtMs,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs + pollIntervalOf(context, vendor.id),
    deadlineAtMs: task.createdAtMs + context.taskDeadlineMs,
    details: {
      requestId: details.requestId,
      model: model.id,
      vendor: vendor.id,
      prices: pricesByModel?.get(model.id) ?? details.prices,
      heldUsage: details.heldUsage,
      resolution: details.resolution,
      seed: details.seed,
      webhookUrl: details.webhookUrl,
      claim: details.claim,
      polls: 0,
      unknownReports: 0,
      output,
    },
  }
}
