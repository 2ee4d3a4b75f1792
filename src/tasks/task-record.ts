import { Buffer } from 'node:buffer'
import type { CatalogModel } from '../catalog/model.ts'
import { type BillingFields, charge, type MeterPrice, type Prices, type Rate } from '../catalog/prices/prices.ts'
import { createRate } from '../catalog/prices/rate.ts'
import { type Usage, withHookUnits } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { TaskBehaviour } from '../endpoints/task.ts'
import type { Admitted, Candidate } from '../pipeline/call-record.ts'
import { attributionOf } from '../pipeline/charge.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { TaskChange, TaskDetails, TaskRecord } from '../stores/task-store.ts'
import { BATCH_CREDENTIAL_ID, batchTasks } from './batches/batch-record.ts'
import type { TaskKind } from './webhook-payload.ts'

/** Credential id of deferred answers, which the gateway runs itself. No credential id of a vendor starts this way. */
export const DEFERRED_CREDENTIAL_ID = '-'

const vendorTasks: TaskKind = {
  receiptStatus: 202,
  receipt: (context, task) => behaviourOf(context, task)?.receipt(task),
  message(context, task) {
    const behaviour = behaviourOf(context, task)
    return behaviour && { eventType: (state) => behaviour.eventType(state), eventData: (end) => behaviour.record(end) }
  },
}

const deferredAnswers: TaskKind = {
  receiptStatus: 200,
  receipt: ({ endpoints }, task) => endpoints.deferring(task.details.endpoint)?.deferral?.record(task),
  message: ({ endpoints }, task) => endpoints.deferring(task.details.endpoint)?.deferral,
}

/** Kinds of tasks that the gateway runs itself, by credential id. */
const OWN_KINDS: ReadonlyMap<string, TaskKind> = new Map([
  [DEFERRED_CREDENTIAL_ID, deferredAnswers],
  [BATCH_CREDENTIAL_ID, batchTasks],
])

/** Whether the gateway runs tasks with this credential id itself. Others are at a vendor. */
export function isOwnTask({ credentialId }: Pick<TaskRecord, 'credentialId'>): boolean {
  return OWN_KINDS.has(credentialId)
}

/** Returns the kind of a task. */
export function kindOf({ credentialId }: TaskRecord): TaskKind {
  return OWN_KINDS.get(credentialId) ?? vendorTasks
}

/** Returns how the endpoint of a task polls and formats it, or `undefined` if the gateway no longer has that endpoint. */
export function behaviourOf(context: PipelineContext, { details }: TaskRecord): TaskBehaviour | undefined {
  return context.endpoints.taskEndpoint(details.endpoint)?.task
}

/** Returns the interval between polls of a task, even if its vendor is no longer configured. */
export function pollIntervalOf(context: PipelineContext, { endpoint, vendor: vendorId }: TaskDetails): number {
  const vendor = context.vendors.get(vendorId)
  const operation = vendor && context.endpoints.taskEndpoint(endpoint)?.task?.operation(vendor)
  return context.taskPollIntervalMs ?? operation?.pollIntervalMs ?? 15_000
}

/** Returns the response to a submission. Its Idempotency-Key replays the same response. */
export function receiptOf(context: PipelineContext, task: TaskRecord): StoredAnswer {
  const { receiptStatus: status, receipt } = kindOf(task)
  const body = Buffer.from(JSON.stringify(receipt(context, task) ?? { id: task.id }))
  return { status, headers: ['content-type', 'application/json'], body }
}

/**
 * Completes the Idempotency-Key of a task for the process that accepted it, which may have died. Returns `undefined` if there is no
 * key, or if it has expired and another request may have it.
 */
export function lateReceipt(context: PipelineContext, task: TaskRecord): TaskChange['answered'] {
  const { claim } = task.details
  if (claim === undefined || claim.expiresAtMs <= context.clock.now()) return undefined
  return { claim, answer: receiptOf(context, task) }
}

/** Additional time for the answer to a submission, after the longest duration of the request itself, in milliseconds. */
const SUBMISSION_GRACE_MS = 60_000

/** Members of a task that its submission decides. */
export interface TaskDraft extends Pick<TaskRecord, 'id' | 'credentialId'> {
  readonly principal: Pick<Principal, 'accountId' | 'keyId'>
  /** Time of its creation. */
  readonly nowMs: number
  /** Time limit for the answer to the submission, in milliseconds. */
  readonly submissionMs: number
  readonly details: Omit<TaskDetails, 'polls' | 'unknownReports'>
}

/** Builds the record of a task before it is submitted. */
export function newTask(draft: TaskDraft): TaskRecord {
  const { id, credentialId, nowMs, submissionMs, details } = draft
  const { accountId, keyId } = draft.principal
  // Stored in normalized form: some characters are valid in URLs but not in databases, and would keep the task from ever ending.
  const webhookUrl = details.webhookUrl && new URL(details.webhookUrl).href
  return {
    id,
    accountId,
    keyId,
    state: 'submitting',
    upstreamId: undefined,
    credentialId,
    holdId: details.prices && details.requestId,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs,
    deadlineAtMs: nowMs + submissionMs,
    details: { ...details, webhookUrl, polls: 0, unknownReports: 0 },
  }
}

/** Returns the details of a task that every request decides in the same way. */
export function detailsOf(admitted: Admitted) {
  return {
    requestId: admitted.requestId,
    endpoint: admitted.endpoint.id,
    heldUsage: withHookUnits(admitted.estimate, admitted.hookUnits),
    claim: admitted.claim,
    attribution: attributionOf(admitted),
  }
}

/** Task about to be submitted, and the prices of each model that may render it. */
export interface PlannedTask {
  readonly task: TaskRecord
  /** Prices by model, or `undefined` if only the model of the task can render it. */
  readonly pricesByModel: ReadonlyMap<string, FrozenPrices> | undefined
}

/** Builds the task record of a submission, before the vendor is called. */
export function planTask(context: PipelineContext, admitted: Admitted): PlannedTask {
  const { prices } = context
  const { chain, billingFields, endpoint, body, principal } = admitted
  if (endpoint.task === undefined) throw new TypeError('an endpoint without tasks submits none')
  const model = chain[0]!
  const task = newTask({
    nowMs: context.clock.now(),
    id: context.ids.next('task'),
    principal,
    credentialId: '',
    submissionMs: context.timeouts.totalMs + SUBMISSION_GRACE_MS,
    details: {
      ...detailsOf(admitted),
      ...endpoint.task.settings(body),
      model: model.id,
      vendor: model.vendor,
      prices: prices && freezePrices(prices, endpoint, model, billingFields),
    },
  })
  const pricesByModel =
    prices === undefined || chain.length === 1
      ? undefined
      : new Map(chain.map((row) => [row.id, freezePrices(prices, endpoint, row, billingFields)]))
  return { task, pricesByModel }
}

/** Returns the task after its vendor has accepted it, or may have. */
export function taskAt(
  context: PipelineContext,
  { task, pricesByModel }: PlannedTask,
  outcome: {
    readonly candidate: Candidate
    readonly accepted: { readonly upstreamId: string; readonly output: unknown } | undefined
  },
): TaskRecord {
  const { candidate, accepted } = outcome
  const { model, vendor, credentialId } = candidate
  const nowMs = context.clock.now()
  const prices = pricesByModel?.get(model.id) ?? task.details.prices
  const details = { ...task.details, model: model.id, vendor: vendor.id, prices, output: accepted?.output }
  return {
    ...task,
    state: accepted === undefined ? 'unknown' : 'queued',
    upstreamId: accepted?.upstreamId,
    credentialId,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs + pollIntervalOf(context, details),
    deadlineAtMs: task.createdAtMs + context.taskDeadlineMs,
    details,
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
