import type { CatalogModel } from '../catalog/model.ts'
import { type BillingFields, charge, type MeterPrice, type Prices, type Rate } from '../catalog/prices/prices.ts'
import { createRate } from '../catalog/prices/rate.ts'
import { type Usage, withHookUnits } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { TaskBehaviour } from '../endpoints/task.ts'
import type { Admitted, Candidate } from '../pipeline/call-record.ts'
import { attributionOf } from '../pipeline/charge.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskDetails, TaskRecord } from '../stores/task-store.ts'
import { BATCH_MESSAGE, isBatch } from './batches/batch-record.ts'
import type { TaskMessage } from './webhook-payload.ts'

/** Additional time for the answer to a submission, after the longest duration of the request itself, in milliseconds. */
const SUBMISSION_GRACE_MS = 60_000

/** Task about to be submitted, and the prices of each model that may render it. */
export interface PlannedTask {
  readonly task: TaskRecord
  /** Prices by model, or `undefined` if only the model of the task can render it. */
  readonly pricesByModel: ReadonlyMap<string, FrozenPrices> | undefined
}

/** Builds the task record of a submission, before the vendor is called. */
export function planTask(context: PipelineContext, admitted: Admitted): PlannedTask {
  const { prices } = context
  const nowMs = context.clock.now()
  const { chain, billingFields, endpoint, body } = admitted
  if (endpoint.task === undefined) throw new TypeError('an endpoint without tasks submits none')
  const { variant, webhookUrl, facts } = endpoint.task.settings(body)
  const model = chain[0]!
  const details: TaskDetails = {
    requestId: admitted.requestId,
    endpoint: endpoint.id,
    model: model.id,
    vendor: model.vendor,
    prices: prices && freezePrices(prices, endpoint, model, billingFields),
    heldUsage: withHookUnits(admitted.estimate, admitted.hookUnits),
    variant,
    facts,
    // Stored in normalized form: some characters are valid in URLs but not in databases, and would keep the task from ever ending.
    webhookUrl: webhookUrl === undefined ? undefined : new URL(webhookUrl).href,
    claim: admitted.claim,
    attribution: attributionOf(admitted),
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
    credentialId: '',
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
      : new Map(chain.map((row) => [row.id, freezePrices(prices, endpoint, row, billingFields)]))
  return { task, pricesByModel }
}

/** Returns how the endpoint of a task polls and formats it, or `undefined` if the gateway no longer has that endpoint. */
export function behaviourOf(context: PipelineContext, { details }: TaskRecord): TaskBehaviour | undefined {
  return context.endpoints.taskEndpoint(details.endpoint)?.task
}

/** Returns the webhook message for the end of a task, or `undefined` if the gateway no longer has its endpoint. */
export function messageOf(context: PipelineContext, task: TaskRecord): TaskMessage | undefined {
  if (isBatch(task)) return BATCH_MESSAGE
  const { deferral } = context.endpoints.deferring(task.details.endpoint) ?? {}
  if (deferral !== undefined) return deferral
  const behaviour = behaviourOf(context, task)
  return (
    behaviour && { eventType: (state) => behaviour.eventType(state), eventData: (ended) => behaviour.record(ended) }
  )
}

/** Returns the interval between polls of a task, even if its vendor is no longer configured. */
export function pollIntervalOf(context: PipelineContext, { endpoint, vendor: vendorId }: TaskDetails): number {
  const vendor = context.vendors.get(vendorId)
  const operation = vendor && context.endpoints.taskEndpoint(endpoint)?.task?.operation(vendor)
  return context.taskPollIntervalMs ?? operation?.pollIntervalMs ?? 15_000
}

/** Returns the task after its vendor has accepted it, or may have. */
export function taskAt(
  context: PipelineContext,
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
  // Written out, because changing an object copied with `...` or `Object.assign` takes V8 some microseconds.
  return {
    id: task.id,
    accountId: task.accountId,
    keyId: task.keyId,
    state,
    upstreamId,
    credentialId: candidate.credentialId,
    holdId: task.holdId,
    createdAtMs: task.createdAtMs,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs + pollIntervalOf(context, { ...details, vendor: vendor.id }),
    deadlineAtMs: task.createdAtMs + context.taskDeadlineMs,
    details: {
      requestId: details.requestId,
      endpoint: details.endpoint,
      model: model.id,
      vendor: vendor.id,
      prices: pricesByModel?.get(model.id) ?? details.prices,
      heldUsage: details.heldUsage,
      variant: details.variant,
      facts: details.facts,
      webhookUrl: details.webhookUrl,
      claim: details.claim,
      attribution: details.attribution,
      polls: 0,
      unknownReports: 0,
      output,
    },
  }
}

/** Prices of a task by variant. The variant `''` applies to all variants without their own row. */
type FrozenPrices = NonNullable<TaskDetails['prices']>

/** Prices that were frozen last for each model, and the rates they came from. */
const lastFrozen = new WeakMap<CatalogModel, { readonly rates: readonly (Rate | undefined)[]; frozen: FrozenPrices }>()

/**
 * Freezes the current prices of every variant that the model may produce: a later price list does not change the cost of a task,
 * whatever variant the vendor reports. Tasks submitted at the same prices share one object.
 */
function freezePrices(
  prices: Prices,
  { surcharges, task }: Endpoint,
  model: CatalogModel,
  fields: BillingFields,
): FrozenPrices {
  const variants = task?.variants(model, fields) ?? []
  const asked = prices.quote(model.id, fields, surcharges)
  const rates = [asked]
  for (const [, own] of variants) rates.push(own === fields ? asked : prices.quote(model.id, own, surcharges))
  const last = lastFrozen.get(model)
  // Rates are immutable, and a new price list creates new ones.
  if (last?.rates.every((rate, index) => rate === rates[index]) === true) return last.frozen
  const frozen: Record<string, readonly MeterPrice[]> = {}
  for (const [index, rate] of rates.entries())
    if (rate !== undefined) frozen[variants[index - 1]?.[0] ?? ''] = rate.prices
  lastFrozen.set(model, { rates, frozen })
  return frozen
}

/**
 * Returns the cost of a task's usage in nano-dollars, by the prices of its submission. A variant without its own price costs the same
 * as the requested one.
 */
export function frozenCharge(details: TaskDetails, variant: string | undefined, usage: Usage): bigint | undefined {
  const { prices } = details
  if (prices === undefined) return undefined
  const made = variant ?? details.variant
  const rows = Object.hasOwn(prices, made) ? prices[made] : prices['']
  return rows === undefined ? undefined : charge(createRate(details.model, rows), usage)
}
