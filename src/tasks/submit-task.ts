import { GatewayError } from '../core/errors.ts'
import { andThen, type MaybePromise, settled } from '../core/maybe-promise.ts'
import type { VideoRequest } from '../endpoints/videos/video-request.ts'
import { admit, leave } from '../stages/admit.ts'
import { authenticate } from '../stages/authenticate.ts'
import { dispatch } from '../stages/dispatch/dispatch.ts'
import { failedAnswer } from '../stages/dispatch/failed-answer.ts'
import { parse } from '../stages/parse.ts'
import { receiveBody } from '../stages/receive-body.ts'
import type { Admitted, Answer, Parsed, Received, Reserved } from '../stages/records.ts'
import { taskHead } from '../stages/reply-headers.ts'
import { respondReplay, respondWhole } from '../stages/respond.ts'
import { route } from '../stages/route.ts'
import { settleLater, type UnsettledHold } from '../stages/settle-later.ts'
import { emit, reportFault, type StageContext } from '../stages/stage-context.ts'
import { StoredReplay } from '../stages/stored-replay.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { endTask } from './apply-report.ts'
import { type PlannedTask, planTask, taskAt } from './new-task.ts'
import { receiptAnswer } from './receipt-answer.ts'
import { reserveTask } from './reserve-task.ts'
import { commit } from './update-task.ts'

/** The hold of a task outlives the task, so that it is never freed under it. */
const HOLD_GRACE_MS = 60 * 60_000

/**
 * The way of a submission: authenticate → parse → admit → reserve (money and task together) → route → dispatch → note the
 * outcome → respond. The task is written down before the vendor is asked, and the caller gets its id in every case in which
 * the vendor may be at work.
 * @throws GatewayError when nothing was submitted; the hold is freed and the task is gone then.
 */
export async function submitTask(context: StageContext, received: Received): Promise<void> {
  const authenticated = await authenticate(context, received)
  const body = await receiveBody(context, authenticated)
  const parsed = parse(context, authenticated, body)
  if ((parsed.body as VideoRequest).webhook_url !== undefined) await checkWebhookSecret(context, parsed)
  const admitted = await admit(context, parsed)
  try {
    await submitAdmitted(context, admitted)
  } finally {
    // Rendering takes no place among the caller's requests and no tokens.
    await leave(context, admitted, 0)
  }
}

async function submitAdmitted(context: StageContext, admitted: Admitted): Promise<void> {
  const planned = planTask(context, admitted)
  const { task } = planned
  const holdExpiresAtMs = task.createdAtMs + context.taskDeadlineMs + HOLD_GRACE_MS
  const outcome = await reserveTask(context, admitted, { task, holdExpiresAtMs })
  if (outcome instanceof StoredReplay) {
    respondReplay(admitted.sink, outcome.answer, admitted.requestId)
    return
  }
  let answer: Answer
  try {
    answer = await dispatch(context, route(context, outcome))
  } catch (cause) {
    answer = failedAnswer(cause)
  }
  const taken = takenTask(context, planned, answer)
  if (taken === undefined) {
    const error = refusal(answer)
    await discard(context, outcome, task, error)
    throw error
  }
  const receipt = receiptAnswer(taken)
  await note(context, outcome, taken, receipt)
  // From here on it is a task; a fault of the caller's side is no refusal.
  outcome.isAnnounced = true
  const { status, body } = receipt
  const dropped = answer.kind === 'failed' ? [] : answer.dropped
  const headers = taskHead(outcome, { vendorId: taken.details.vendor, dropped, byteLength: body.byteLength })
  respondWhole(outcome.sink, { status, headers }, [body])
}

/** Without a secret nobody could verify the message, so the wish for one is refused before anything is held. */
async function checkWebhookSecret(context: StageContext, parsed: Parsed): Promise<void> {
  if (context.webhookSecret !== undefined) return
  const secrets = await settled(
    () => context.store.webhooks.secrets(parsed.principal.accountId, context.clock.now()),
    (found) => found,
    (cause) => {
      throw new GatewayError('store_unavailable', { cause })
    },
  )
  if (secrets.length > 0) return
  throw new GatewayError('invalid_request', {
    message: 'webhook_url: this account has no webhook secret, and the gateway has none for all accounts',
    param: 'webhook_url',
  })
}

/** The task that the vendor has taken, or may have; undefined when it certainly has not. */
function takenTask(context: StageContext, planned: PlannedTask, answer: Answer): TaskRecord | undefined {
  if (answer.candidate === undefined) return undefined
  const { candidate } = answer
  if (answer.kind === 'whole' && answer.task !== undefined) {
    const { upstreamId, output } = answer.task
    return taskAt(context, planned, { candidate, state: 'queued', upstreamId, output })
  }
  if (answer.kind === 'failed' && !answer.mayHaveBegun) return undefined
  return taskAt(context, planned, { candidate, state: 'unknown', upstreamId: undefined, output: undefined })
}

function refusal(answer: Answer): GatewayError {
  return answer.kind === 'failed' ? answer.error : new GatewayError('upstream_invalid_response')
}

/** Notes the vendor's id and completes the caller's Idempotency-Key. When the store is down, it is tried again for as long as it matters. */
function note(context: StageContext, reserved: Reserved, taken: TaskRecord, receipt: StoredAnswer): MaybePromise<void> {
  const { claim } = reserved
  const { state, upstreamId, vendorAccount, updatedAtMs, nextPollAtMs, deadlineAtMs, details } = taken
  const change = () =>
    context.store.tasks.change(
      {
        id: taken.id,
        // A sweeper elsewhere may have taken a slow submission for lost.
        from: ['submitting', 'unknown'],
        set: { state, upstreamId, vendorAccount, updatedAtMs, nextPollAtMs, deadlineAtMs, details },
        answered: claim === undefined ? undefined : { claim, answer: receipt },
      },
      context.clock.now(),
    )
  // Without its id at the vendor nobody can follow it, and it ends uncharged.
  const hold = unsettled(reserved, taken, state === 'queued' ? (reserved.hold?.amount ?? 0n) : 0n)
  return andThen(orLater(context, hold, change, taken.deadlineAtMs), () => tellSubmitted(context, taken))
}

function tellSubmitted(context: StageContext, taken: TaskRecord): void {
  if (context.onEvent === undefined) return
  const { details, state } = taken
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
 * The vendor has refused: nothing is left of the task, and its money and key are free again. When that could not be noted
 * before a sweeper took the submission for lost, a caller may have the id by the key: then the task fails by the refusal.
 */
function discard(
  context: StageContext,
  reserved: Reserved,
  task: TaskRecord,
  refused: GatewayError,
): MaybePromise<void> {
  const run = async (): Promise<void> => {
    const nowMs = context.clock.now()
    if (await context.store.tasks.discard(task.id, reserved.claim, nowMs)) return
    const error = { code: refused.publicCode, message: refused.message }
    const failed = endTask(task, { ...task.details, error }, { state: 'failed', nowMs })
    // The deliverer finds the message by itself.
    await commit(context, { ...task, state: 'unknown' }, failed, () => undefined)
  }
  return orLater(context, unsettled(reserved, task, 0n), run, task.createdAtMs + context.taskDeadlineMs)
}

function unsettled({ requestId }: Reserved, task: TaskRecord, amountNanoDollars: bigint): UnsettledHold {
  const { id, holdId, accountId, keyId } = task
  return { requestId, holdId, taskId: id, accountId, keyId, amountNanoDollars }
}

function orLater(
  context: StageContext,
  hold: UnsettledHold,
  run: () => MaybePromise<unknown>,
  untilMs: number,
): MaybePromise<void> {
  return settled(
    run,
    () => undefined,
    (error) => {
      reportFault(context, hold.requestId, 'tasks', error)
      settleLater(context, hold, { run, untilMs, error })
    },
  )
}
