import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { release } from '../pipeline/admit.ts'
import type { Admitted, Parsed, Reserved } from '../pipeline/call-record.ts'
import type { Completion } from '../pipeline/completion.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { PricedRequest } from '../pipeline/pricing.ts'
import { type ReserveOutcome, reserve, StoredReplay, type TaskPlan } from '../pipeline/reserve.ts'
import { respondWhole, taskHead } from '../pipeline/respond.ts'
import { settleLater, type UnsettledHold } from '../pipeline/settle.ts'
import type { VendorResponse } from '../pipeline/vendor-response.ts'
import type { IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { endTask } from './apply-report.ts'
import { behaviourOf, type PlannedTask, planTask, taskAt } from './new-task.ts'
import { commit } from './update-task.ts'
import { signingSecrets } from './webhook-signature.ts'

/** The hold of a task outlives the task, so that it is never freed under it. */
export const HOLD_GRACE_MS = 60 * 60_000

/**
 * The submission of one task: money and task are written down together before the vendor is asked, and the caller gets the
 * task's id in every case in which the vendor may be at work. Otherwise the hold is freed and the task is gone.
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
      // Rendering takes no place among the caller's requests and no tokens.
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
  const receipt = receiptResponse(context, taken)
  await note(context, reserved, taken, receipt)
  // From here on it is a task; a fault of the caller's side is no refusal.
  reserved.announced()
  const { status, body } = receipt
  const dropped = response.kind === 'failed' ? [] : response.dropped
  const headers = taskHead(reserved, { vendorId: taken.details.vendor, dropped, byteLength: body.byteLength })
  respondWhole(reserved.sink, { status, headers }, [body])
}

const RECEIPT_HEADERS = ['content-type', 'application/json']

/** The answer to a submission, as its caller gets it and as its Idempotency-Key replays it: 202 and the receipt. */
export function receiptResponse(context: PipelineContext, task: TaskRecord): StoredAnswer {
  const receipt = behaviourOf(context, task)?.receipt(task) ?? { id: task.id }
  return { status: 202, headers: RECEIPT_HEADERS, body: Buffer.from(JSON.stringify(receipt)) }
}

/**
 * Sees to a secret before anything is held, so that the receiver can be given it while the task runs.
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
 * Holds the money, claims the Idempotency-Key and stores the task. A failing store may still have done it, or may do it
 * after the gateway has stopped waiting. Nothing was sent to a vendor, so it is undone as soon as the store answers.
 * @param priced What is held, where it is not the price of the request.
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
      undoLater(context, admitted, plan, { cause, makeSure: () => reserveAgain(context, admitted, plan, priced) })
    throw cause
  }
}

/**
 * Reserving the same id again returns the first outcome, or decides it: a reservation that is still on its way then finds
 * the hold taken. Otherwise the reservation could be made after it was undone.
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
    // A refusal is an outcome too; then there is nothing to undo.
    if (isStoreFault(cause)) throw cause
  }
}

/**
 * Without a hold there is no shared transaction. The key comes first, so that a crash leaves no task without its key. Once the task is
 * written down, the key is its own for its whole time: whatever becomes of this process, another one finds the task and completes the key.
 */
async function claimAndInsert(context: PipelineContext, admitted: Admitted, plan: TaskPlan): Promise<ReserveOutcome> {
  const outcome = await reserve(context, admitted, plan)
  if (outcome instanceof StoredReplay) return outcome
  const { claim } = admitted
  const insert = async (): Promise<void> => context.store.tasks.insert(plan.task)
  try {
    await insert()
    if (claim !== undefined) await keepClaim(context, claim)
  } catch (cause) {
    // The key is this request's own, but it is freed with the task only: so the task must be there.
    undoLater(context, admitted, plan, { cause, makeSure: insert })
    throw new GatewayError('store_unavailable', { cause })
  }
  return outcome
}

/** @throws Error if the key is not this request's any more: its task is none that anyone may find by the key. */
async function keepClaim({ store, clock }: PipelineContext, claim: IdempotencyClaim): Promise<void> {
  const { status } = await store.idempotency.claim(claim, clock.now())
  if (status !== 'claimed') throw new Error('an Idempotency-Key was free again before its task was written down')
}

/** The parts to undo. */
interface Unsure {
  readonly cause: unknown
  /** Brings the task about, once: were it brought about again, another request's key could be freed with it. */
  readonly makeSure: () => Promise<void>
}

function undoLater(
  context: PipelineContext,
  { claim, requestId }: Admitted,
  { task }: TaskPlan,
  { cause, makeSure }: Unsure,
): void {
  let isSure = false
  const run = async (): Promise<void> => {
    if (!isSure) await makeSure()
    isSure = true
    await context.store.tasks.discard(task.id, claim, context.clock.now())
  }
  // Afterwards the task, if there is one, is taken for lost.
  settleLater(context, unsettled(requestId, task, 0n), { run, untilMs: task.deadlineAtMs, error: cause })
}

function isStoreFault(cause: unknown): boolean {
  return GatewayError.isInstance(cause) && cause.code === 'store_unavailable'
}

/** The task that the vendor has taken, or may have; undefined when it certainly has not. */
function takenTask(context: PipelineContext, planned: PlannedTask, response: VendorResponse): TaskRecord | undefined {
  const { candidate } = response
  if (candidate === undefined) return undefined
  if (response.kind === 'json' && response.body.task !== undefined) {
    const { upstreamId, output } = response.body.task
    return taskAt(context, planned, { candidate, state: 'queued', upstreamId, output })
  }
  if (response.kind === 'failed' && !response.mayHaveBegun) return undefined
  return taskAt(context, planned, { candidate, state: 'unknown', upstreamId: undefined, output: undefined })
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
        // A sweeper elsewhere may have taken a slow submission for lost.
        from: ['submitting', 'unknown'],
        set: { state, upstreamId, credentialId, updatedAtMs, nextPollAtMs, deadlineAtMs, details },
        answered: claim === undefined ? undefined : { claim, answer: receipt },
      },
      context.clock.now(),
    )
  // Without its vendor id the task cannot be followed, and it ends uncharged.
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
 * The vendor has refused: the task is removed, and its hold and key are released. If a sweeper marked the submission as
 * lost before that was stored, a caller may have the id by the key; the task then fails with the refusal.
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

/** The hold of a task, for reports about a settlement that fails. */
export function unsettled(requestId: string, task: TaskRecord, amountNanoDollars: bigint): UnsettledHold {
  const { id, holdId, accountId, keyId } = task
  return { requestId, holdId, taskId: id, accountId, keyId, amountNanoDollars }
}

/** Changes the store; a change that fails is made again until `untilMs`. Never throws. */
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
