import { GatewayError } from '../core/errors.ts'
import { type MaybePromise, settled } from '../core/maybe-promise.ts'
import type { Admitted, ReserveOutcome } from '../stages/records.ts'
import { reserve, type TaskPlan } from '../stages/reserve.ts'
import { settleLater } from '../stages/settle-later.ts'
import type { StageContext } from '../stages/stage-context.ts'
import { StoredReplay } from '../stages/stored-replay.ts'

/**
 * Sets money aside, claims the Idempotency-Key and writes the task down. A store that fails may have done it all the same, or
 * may do it after the gateway has stopped waiting: nothing was sent to a vendor, so it is undone as soon as the store answers.
 * @throws GatewayError as {@link reserve} does.
 */
export function reserveTask(context: StageContext, admitted: Admitted, plan: TaskPlan): MaybePromise<ReserveOutcome> {
  return context.prices === undefined ? claimAndInsert(context, admitted, plan) : holdWithTask(context, admitted, plan)
}

function holdWithTask(context: StageContext, admitted: Admitted, plan: TaskPlan): MaybePromise<ReserveOutcome> {
  return settled(
    () => reserve(context, admitted, plan),
    (outcome) => outcome,
    (cause) => {
      if (isStoreFault(cause))
        undoLater(context, admitted, plan, { cause, makeSure: () => reservedAgain(context, admitted, plan) })
      throw cause
    },
  )
}

/**
 * Reserving the same id again gives the first outcome, or decides it: a reservation that the store has not come to yet finds
 * the hold taken. Without it, what is undone too early would be done afterwards, and nobody would know.
 */
async function reservedAgain(context: StageContext, admitted: Admitted, plan: TaskPlan): Promise<void> {
  try {
    await reserve(context, admitted, plan)
  } catch (cause) {
    // A refusal is an outcome too, and there is nothing to be undone then.
    if (isStoreFault(cause)) throw cause
  }
}

/** Without a hold there is no transaction to share. The key comes first, so that a crash leaves no task nobody can claim. */
async function claimAndInsert(context: StageContext, admitted: Admitted, plan: TaskPlan): Promise<ReserveOutcome> {
  const outcome = await reserve(context, admitted)
  if (outcome instanceof StoredReplay) return outcome
  const insert = async (): Promise<void> => context.store.tasks.insert(plan.task)
  try {
    await insert()
  } catch (cause) {
    // The key is this request's own, but it is freed with the task only: so the task must be there.
    undoLater(context, admitted, plan, { cause, makeSure: insert })
    throw new GatewayError('store_unavailable', { cause })
  }
  return outcome
}

/** What is to be undone. */
interface Unsure {
  readonly cause: unknown
  /** Brings the task about, once: were it brought about again, another request's key could be freed with it. */
  readonly makeSure: () => Promise<void>
}

function undoLater(
  context: StageContext,
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
  const { id: taskId, holdId, accountId, keyId } = task
  const hold = { requestId, holdId, taskId, accountId, keyId, amountNanoDollars: 0n }
  // Afterwards the task, if there is one, is taken for lost.
  settleLater(context, hold, { run, untilMs: task.deadlineAtMs, error: cause })
}

function isStoreFault(cause: unknown): boolean {
  return GatewayError.isInstance(cause) && cause.code === 'store_unavailable'
}
