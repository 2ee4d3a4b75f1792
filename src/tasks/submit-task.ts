import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { exactJsonText } from '../core/exact-json.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { release } from '../pipeline/admission.ts'
import type { Admitted, Parsed, Reserved } from '../pipeline/call-record.ts'
import { settleLater, type UnsettledHold } from '../pipeline/charge.ts'
import type { Completion } from '../pipeline/completion.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import { type PricedRequest, priceRequest } from '../pipeline/pricing.ts'
import { boundedForLater, type ReserveOutcome, reserve, StoredReplay, type TaskPlan } from '../pipeline/reserve.ts'
import { respondReplay, respondWhole, taskHead } from '../pipeline/respond.ts'
import type { VendorResponse } from '../pipeline/vendor-response.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { DeferredRequest, TaskRecord } from '../stores/task-store.ts'
import {
  DEFERRED_CREDENTIAL_ID,
  detailsOf,
  newTask,
  type PlannedTask,
  planTask,
  receiptOf,
  taskAt,
} from './task-record.ts'
import { commit, endTask } from './update-task.ts'
import { signingSecrets } from './webhook-payload.ts'

/** The hold of a task outlives the task by this time, so that it never expires before the task ends. */
export const HOLD_GRACE_MS = 60 * 60_000

/**
 * Submission of one task. Money and task are stored together before the vendor is called. The caller gets the task's id whenever the
 * vendor may be working on it; otherwise the hold is released and the task is removed.
 */
export class TaskSubmission implements Completion {
  #planned: PlannedTask | undefined

  check(context: PipelineContext, parsed: Parsed): Promise<void> {
    const { endpoint, body, principal } = parsed
    return ensureWebhookSecret(context, principal.accountId, endpoint.task?.settings(body).webhookUrl)
  }

  async reserve(context: PipelineContext, admitted: Admitted): Promise<ReserveOutcome> {
    const planned = planTask(context, admitted)
    const { task } = planned
    this.#planned = planned
    const holdExpiresAtMs = task.createdAtMs + context.taskDeadlineMs + HOLD_GRACE_MS
    return await reserveTask(context, admitted, { task, holdExpiresAtMs })
  }

  async end(context: PipelineContext, reserved: Reserved, response: VendorResponse): Promise<void> {
    try {
      if (this.#planned === undefined) throw new TypeError('a task ends after it was reserved')
      await endSubmission(context, reserved, this.#planned, response)
    } finally {
      // Rendering does not count against the caller's limits of concurrent requests and tokens.
      await release(context, reserved, 0)
    }
  }
}

async function endSubmission(
  context: PipelineContext,
  reserved: Reserved,
  planned: PlannedTask,
  response: VendorResponse,
): Promise<void> {
  const taken = takenTask(context, planned, response)
  if (taken === undefined) {
    const error = response.kind === 'failed' ? response.error : new GatewayError('upstream_invalid_response')
    await discard(context, reserved, planned.task, error)
    throw error
  }
  const receipt = receiptOf(context, taken)
  await note(context, reserved, taken, receipt)
  // The task exists from here on, so an error on the caller's side is not a rejection.
  reserved.announced()
  const { status, body } = receipt
  const dropped = response.kind === 'failed' ? [] : response.dropped
  const headers = taskHead(reserved, { vendorId: taken.details.vendor, dropped, byteLength: body.byteLength })
  respondWhole(reserved.sink, { status, headers }, [body])
}

/**
 * Ensures that there is a secret before anything is held, so that the receiver can be configured while the task runs.
 * @throws GatewayError `store_unavailable`.
 */
export async function ensureWebhookSecret(
  { store, webhookSecret, clock }: PipelineContext,
  accountId: string,
  webhookUrl: string | undefined,
): Promise<void> {
  if (webhookSecret !== undefined || webhookUrl === undefined) return
  try {
    await signingSecrets(store.webhooks, { accountId, webhookSecret, nowMs: clock.now() })
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
}

/**
 * Holds the money, claims the Idempotency-Key and stores the task. A failing store may have saved them anyway, or may do so later.
 * Nothing was sent to a vendor, so the reservation is undone as soon as the store answers.
 * @param priced Price to hold, if it is not the price of the request.
 * @throws GatewayError as {@link reserve} does.
 */
export async function reserveTask(
  context: PipelineContext,
  admitted: Admitted,
  plan: TaskPlan,
  priced?: PricedRequest,
): Promise<ReserveOutcome> {
  if (context.prices === undefined) return await claimAndInsert(context, admitted, plan)
  try {
    return await reserve(context, admitted, plan, priced)
  } catch (cause) {
    if (isStoreFault(cause))
      undoLater(context, admitted, plan, cause, () => reserveAgain(context, admitted, plan, priced))
    throw cause
  }
}

/**
 * Reserves the same id again, which returns the first outcome or decides it: a delayed first reservation then finds the hold taken.
 * Otherwise it could succeed after it was undone.
 */
async function reserveAgain(
  context: PipelineContext,
  admitted: Admitted,
  plan: TaskPlan,
  priced: PricedRequest | undefined,
): Promise<void> {
  try {
    await reserve(context, admitted, plan, priced)
  } catch (cause) {
    // A rejection is an outcome too; then there is nothing to undo.
    if (isStoreFault(cause)) throw cause
  }
}

/**
 * Without a hold there is no shared transaction. The key is claimed first, so that a crash never leaves a task without its key. Once
 * the task is stored, its key cannot be taken by another request: after a crash, another process finds the task and completes the
 * key.
 */
async function claimAndInsert(context: PipelineContext, admitted: Admitted, plan: TaskPlan): Promise<ReserveOutcome> {
  const outcome = await reserve(context, admitted, plan)
  if (outcome instanceof StoredReplay) return outcome
  const { claim } = admitted
  const insert = async (): Promise<void> => context.store.tasks.insert(plan.task)
  try {
    await insert()
    if (claim === undefined) return outcome
    const { status } = await context.store.idempotency.claim(claim, context.clock.now())
    // Nobody could find the task by its key.
    if (status !== 'claimed') throw new Error('an Idempotency-Key was free again before its task was stored')
  } catch (cause) {
    // The key belongs to this request, but only the removal of the task frees it, so the task must exist.
    undoLater(context, admitted, plan, cause, insert)
    throw new GatewayError('store_unavailable', { cause })
  }
  return outcome
}

/** @param makeSure Creates the task, once. A second creation could free the key of another request. */
function undoLater(
  context: PipelineContext,
  { claim, requestId }: Admitted,
  { task }: TaskPlan,
  cause: unknown,
  makeSure: () => Promise<void>,
): void {
  let isSure = false
  const run = async (): Promise<void> => {
    if (!isSure) await makeSure()
    isSure = true
    await context.store.tasks.discard(task.id, claim, context.clock.now())
  }
  // After the deadline, a remaining task counts as lost.
  settleLater(context, unsettled(requestId, task, 0n), { run, untilMs: task.deadlineAtMs, error: cause })
}

function isStoreFault(cause: unknown): boolean {
  return GatewayError.isInstance(cause) && cause.code === 'store_unavailable'
}

/** Returns the task that the vendor has accepted, or may have; `undefined` if it certainly has not. */
function takenTask(context: PipelineContext, planned: PlannedTask, response: VendorResponse): TaskRecord | undefined {
  const { candidate } = response
  if (candidate === undefined) return undefined
  if (response.kind === 'failed' && !response.mayHaveBegun) return undefined
  return taskAt(context, planned, { candidate, accepted: response.kind === 'json' ? response.body.task : undefined })
}

/**
 * Stores the vendor's id and completes the caller's Idempotency-Key. If the store is down, it retries until the deadline.
 */
export async function note(
  context: PipelineContext,
  { claim, hold, requestId }: Reserved,
  taken: TaskRecord,
  receipt: StoredAnswer,
): Promise<void> {
  const { state, upstreamId, credentialId, updatedAtMs, nextPollAtMs, deadlineAtMs, details } = taken
  const change = async (): Promise<unknown> =>
    context.store.tasks.change(
      {
        id: taken.id,
        // A sweeper in another process may have marked a slow submission as lost.
        from: ['submitting', 'unknown'],
        set: { state, upstreamId, credentialId, updatedAtMs, nextPollAtMs, deadlineAtMs, details },
        answered: claim === undefined ? undefined : { claim, answer: receipt },
      },
      context.clock.now(),
    )
  // Without its vendor id the task cannot be polled, and it ends uncharged.
  const lost = unsettled(requestId, taken, state === 'queued' ? (hold?.amount ?? 0n) : 0n)
  await runOrRetry(context, lost, change, taken.deadlineAtMs)
  emit(context, {
    type: 'task-submitted',
    requestId: details.requestId,
    taskId: taken.id,
    accountId: taken.accountId,
    keyId: taken.keyId,
    model: details.model,
    vendor: details.vendor,
    state: state === 'queued' ? 'queued' : 'unknown',
  })
}

/**
 * Handles a rejection by the vendor: the task is removed, and its hold and key are released. If a sweeper marked the submission as
 * lost before, a caller may have the id by the key; the task then fails with the rejection.
 */
async function discard(
  context: PipelineContext,
  { claim, requestId }: Reserved,
  task: TaskRecord,
  refused: GatewayError,
): Promise<void> {
  const run = async (): Promise<void> => {
    const nowMs = context.clock.now()
    if (await context.store.tasks.discard(task.id, claim, nowMs)) return
    const error = { code: refused.publicCode, message: refused.message }
    const failed = endTask(task, { ...task.details, error }, { state: 'failed', nowMs })
    // The deliverer finds the message by itself.
    await commit(context, { ...task, state: 'unknown' }, failed, () => undefined)
  }
  await runOrRetry(context, unsettled(requestId, task, 0n), run, task.createdAtMs + context.taskDeadlineMs)
}

/** Hold of a task, for reports about a failing settlement. */
export function unsettled(requestId: string, task: TaskRecord, amountNanoDollars: bigint): UnsettledHold {
  const { id, holdId, accountId, keyId } = task
  return { requestId, holdId, taskId: id, accountId, keyId, amountNanoDollars }
}

/** Changes the store. A failing change is repeated until `untilMs`. Never throws. */
export async function runOrRetry(
  context: PipelineContext,
  hold: UnsettledHold,
  run: () => Promise<unknown>,
  untilMs: number,
): Promise<void> {
  try {
    await run()
  } catch (error) {
    reportFault(context, hold.requestId, 'tasks', error)
    settleLater(context, hold, { run, untilMs, error })
  }
}

/** After this time, a submission that is not yet queued counts as abandoned by a process that died. */
export const SUBMISSION_MS = 60_000

/** Parts of the runner of deferred answers that a submission needs. */
export interface DeferredQueue {
  /** Looks for work immediately. */
  wake(): void
  /** Sends a task to its caller as events until it has ended. */
  follow(
    context: PipelineContext,
    exchange: Pick<Reserved, 'sink' | 'requestId'>,
    task: TaskRecord,
    startingAfter?: number,
    headers?: readonly string[],
  ): Promise<void>
  /** Sends the task of an earlier request with the same Idempotency-Key, which may have ended. */
  followAgain(context: PipelineContext, repeated: Admitted, taskId: string): Promise<void>
}

/**
 * Request whose answer is generated after the request has ended. Money and request are stored together, and the caller gets the id of
 * the answer, or its events. The runner does the rest.
 */
export class DeferredSubmission implements Completion {
  readonly #queue: DeferredQueue
  #task: TaskRecord | undefined
  #follows = false

  constructor(queue: DeferredQueue) {
    this.#queue = queue
  }

  check(context: PipelineContext, { endpoint, body, principal }: Parsed): Promise<void> {
    if (!context.keptAnswers.keeps)
      throw new GatewayError('unsupported_parameter', {
        message: 'background: this gateway does not store answers',
        param: 'background',
      })
    return ensureWebhookSecret(context, principal.accountId, deferralOf(endpoint).webhookUrl(body))
  }

  async reserve(context: PipelineContext, admitted: Admitted): Promise<ReserveOutcome> {
    await boundedForLater(context, admitted)
    const task = planDeferred(context, admitted)
    this.#task = task
    this.#follows = admitted.isStream
    return await reserveTask(context, admitted, {
      task,
      holdExpiresAtMs: task.createdAtMs + context.taskDeadlineMs + HOLD_GRACE_MS,
    })
  }

  async accept(context: PipelineContext, reserved: Reserved): Promise<void> {
    if (this.#task === undefined) throw new TypeError('a deferred answer is accepted after it was reserved')
    const queued = queuedTask(context, this.#task)
    const receipt = receiptOf(context, queued)
    try {
      await note(context, reserved, queued, receipt)
      reserved.announced()
    } finally {
      // Its run counts against the caller's limits of concurrent requests and tokens.
      await release(context, reserved, 0)
    }
    this.#queue.wake()
    const dropped = deferralOf(reserved.endpoint).dropped?.(reserved.body) ?? []
    if (this.#follows) {
      const headers = dropped.length === 0 ? [] : ['x-signalbox-dropped', dropped.join(', ')]
      return await this.#queue.follow(context, reserved, queued, -1, headers)
    }
    const { status, body } = receipt
    const facts = { vendorId: queued.details.vendor, dropped, byteLength: body.byteLength }
    respondWhole(reserved.sink, { status, headers: taskHead(reserved, facts) }, [body])
  }

  async replay(context: PipelineContext, admitted: Admitted, answer: StoredAnswer): Promise<void> {
    if (!admitted.isStream) return respondReplay(admitted.sink, answer, admitted.requestId)
    const { id } = JSON.parse(Buffer.from(answer.body).toString('utf8')) as { readonly id: string }
    await this.#queue.followAgain(context, admitted, id)
  }

  end(): never {
    throw new TypeError('a submission asks no vendor')
  }
}

function deferralOf({ deferral, path }: Endpoint): NonNullable<Endpoint['deferral']> {
  if (deferral === undefined) throw new TypeError(`answers of ${path} are not deferred`)
  return deferral
}

function planDeferred(context: PipelineContext, admitted: Admitted): TaskRecord {
  const { endpoint, chain, principal, continued, fittedOutputTokens: bound } = admitted
  const deferral = deferralOf(endpoint)
  const priced = priceRequest(context, admitted, admitted.estimate)
  if (priced?.rates.some(({ otherModels }) => otherModels !== undefined) === true)
    throw new GatewayError('unsupported_parameter', {
      message: 'Tools that use other models cannot be used in the background.',
      param: 'tools',
    })
  const model = priced?.chain[0] ?? chain[0]!
  // The request is stored as its caller wrote it: references are resolved when it runs.
  const original = continued?.recalled?.original?.request
  const { outputBound } = endpoint
  const isBounded = bound !== undefined && outputBound !== undefined
  const request = original && isBounded ? { ...original, [outputBound.member]: bound } : (original ?? admitted.body)
  const id = context.ids.next(endpoint.kept?.idPrefix ?? 'task')
  const nowMs = context.clock.now()
  return newTask({
    id,
    nowMs,
    principal,
    credentialId: DEFERRED_CREDENTIAL_ID,
    submissionMs: SUBMISSION_MS,
    details: {
      ...detailsOf(admitted),
      model: model.id,
      vendor: model.vendor,
      // Prices of each model that may answer. A later price list does not change the cost of the answer.
      prices: priced && Object.fromEntries(priced.chain.map(({ id }, index) => [id, priced.rates[index]!.prices])),
      variant: model.id,
      facts: {},
      webhookUrl: deferral.webhookUrl(request),
      deferred: {
        body: exactJsonText(deferral.runnable(request)),
        begun: deferral.begun(request, { id, model: model.id, nowMs }),
        principal: deferredPrincipal(principal),
      },
    },
  })
}

/** Returns the members of a caller that its request needs when it runs. */
export function deferredPrincipal(principal: Principal): DeferredRequest['principal'] {
  const { tier, limits, plan, endUser, namesEndUsers, tags } = principal
  return { tier, limits, plan, endUser, namesEndUsers, tags }
}

/** Returns the task in its queued state. */
export function queuedTask({ clock, taskDeadlineMs }: PipelineContext, task: TaskRecord): TaskRecord {
  const nowMs = clock.now()
  const deadlineAtMs = task.details.deferred?.deadlineAtMs ?? task.createdAtMs + taskDeadlineMs
  return { ...task, state: 'queued', updatedAtMs: nowMs, nextPollAtMs: nowMs, deadlineAtMs }
}
