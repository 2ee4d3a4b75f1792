import { plausibleUsage } from '../catalog/prices/plausible-usage.ts'
import { andThen, type MaybePromise, settled } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import type { Resolution } from '../stores/ledger.ts'
import { leave } from './admit.ts'
import { chargeFor } from './charge-for.ts'
import { fillUsage } from './estimated-usage.ts'
import type { CallEnding, Candidate, Hold, Reserved, Settled } from './records.ts'
import { settleLater, tellGivenUp, type UnsettledHold } from './settle-later.ts'
import { emit, reportFault, type StageContext } from './stage-context.ts'

/** What settling needs to know of a call that is over. */
export interface Settling {
  readonly ending: CallEnding
  readonly candidate: Candidate | undefined
  /** HTTP status the caller gets or got. */
  readonly status: number
  /** Kept under the caller's Idempotency-Key when the call was charged, or completed with billing off. */
  readonly answer: StoredAnswer | undefined
}

/**
 * Ends what `reserve` and `admit` began: the hold is charged or voided, the caller's place and unused tokens go back, and
 * the host is told. The one place for whole answers, streams and failures alike. Never throws: an answer that a vendor has
 * given is not withheld because a store is down: the settlement is tried again until the hold has expired, and the host gets
 * an `internal-error` event; and `settlement-given-up` when it can be made no more.
 */
export function settle(context: StageContext, reserved: Reserved, settling: Settling): MaybePromise<Settled> {
  const usage = chargeableUsage(context, reserved, settling)
  const resolve = (): MaybePromise<Resolution | undefined> => resolveHold(context, reserved, settling, usage)
  return settled(
    resolve,
    (resolution) => {
      if (resolution?.resolved === false) noteEndedHold(context, reserved, settling, usage)
      return giveBack(context, reserved, settling, usage, resolution?.charged)
    },
    (error) => {
      reportFault(context, reserved.requestId, 'settle', error)
      resolveLater(context, reserved, settling, { usage, error })
      return giveBack(context, reserved, settling, usage, undefined)
    },
  )
}

/** What cannot be made later either is left to the sweep, which frees the hold: the call goes uncharged. */
function resolveLater(
  context: StageContext,
  reserved: Reserved,
  settling: Settling,
  { usage, error }: { readonly usage: Usage | undefined; readonly error: unknown },
): void {
  const run = async (): Promise<void> => {
    const resolution = await resolveHold(context, reserved, settling, usage)
    if (resolution?.resolved === false) noteEndedHold(context, reserved, settling, usage)
  }
  const untilMs = context.clock.now() + context.holdTtlMs
  settleLater(context, unsettled(reserved, settling, usage), { run, untilMs, error })
}

/**
 * The hold had ended before: by an earlier try whose acknowledgement was lost, which does no harm; or, once its time was over,
 * perhaps by a sweep, which gave the money back.
 */
function noteEndedHold(context: StageContext, reserved: Reserved, settling: Settling, usage: Usage | undefined): void {
  if (context.clock.now() < reserved.startedAtMs + context.holdTtlMs) return
  const hold = unsettled(reserved, settling, usage)
  if (hold.amountNanoDollars > 0n) tellGivenUp(context, hold, 'hold-ended', undefined)
}

function unsettled(reserved: Reserved, settling: Settling, usage: Usage | undefined): UnsettledHold {
  const { requestId, hold, principal } = reserved
  const { accountId, keyId } = principal
  const amountNanoDollars = hold === undefined ? 0n : (amountOf(reserved, hold, settling, usage) ?? 0n)
  return { requestId, holdId: hold?.id, taskId: undefined, accountId, keyId, amountNanoDollars }
}

/** What is charged; undefined: nothing, the hold is voided. */
function amountOf(
  reserved: Reserved,
  hold: Hold,
  { candidate }: Settling,
  usage: Usage | undefined,
): bigint | undefined {
  if (usage === undefined || candidate === undefined) return undefined
  // A modality that has no price cannot appear after a hold was priced, unless the vendor adds it; the hold bounds it then.
  return chargeFor(reserved, candidate, usage) ?? hold.amount
}

function giveBack(
  context: StageContext,
  reserved: Reserved,
  settling: Settling,
  usage: Usage | undefined,
  charged: bigint | undefined,
): MaybePromise<Settled> {
  const tell = (): Settled => {
    if (context.onEvent !== undefined) tellEnded(context, reserved, settling, usage, charged ?? 0n)
    return { costNanoDollars: charged, usage }
  }
  const tokensUsed = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0)
  return andThen(leave(context, reserved, tokensUsed), tell)
}

function tellEnded(
  context: StageContext,
  reserved: Reserved,
  settling: Settling,
  usage: Usage | undefined,
  costNanoDollars: bigint,
): void {
  emit(context, {
    type: 'request-ended',
    requestId: reserved.requestId,
    endpoint: reserved.endpoint.id,
    accountId: reserved.principal.accountId,
    keyId: reserved.principal.keyId,
    model: settling.candidate?.model.id ?? reserved.body.model,
    vendor: settling.candidate?.vendor.id,
    ending: settling.ending.kind,
    status: settling.status,
    code: settling.ending.error?.code,
    usage,
    costNanoDollars,
    durationMs: context.clock.now() - reserved.startedAtMs,
  })
}

/** What the vendor reported, made plausible and whole; else what was estimated; undefined when nothing is charged. */
function chargeableUsage(
  context: StageContext,
  reserved: Reserved,
  { ending, candidate }: Settling,
): Usage | undefined {
  if (ending.usage === undefined || candidate === undefined) return ending.estimatedUsage
  const { limits } = candidate.model
  const { usage, implausible } = plausibleUsage(ending.usage, { hold: reserved.estimate, limits })
  const filled = fillUsage(usage, ending.estimatedUsage ?? {})
  if (implausible.length > 0 || filled.missing.length > 0) {
    const { requestId } = reserved
    const fields = [...implausible, ...filled.missing]
    emit(context, {
      type: 'usage-implausible',
      requestId,
      vendor: candidate.vendor.id,
      model: candidate.model.id,
      fields,
    })
  }
  return filled.usage
}

/** Gives what the ledger says; undefined where there was no hold. */
function resolveHold(
  context: StageContext,
  reserved: Reserved,
  settling: Settling,
  usage: Usage | undefined,
): MaybePromise<Resolution | undefined> {
  const { hold, claim } = reserved
  const { candidate, answer, ending } = settling
  if (hold === undefined) return claim === undefined ? undefined : resolveClaim(context, claim, ending, answer)
  const nowMs = context.clock.now()
  const amount = amountOf(reserved, hold, settling, usage)
  if (amount === undefined || candidate === undefined) return context.store.ledger.void(hold.id, nowMs)
  const description = `${reserved.endpoint.id} ${candidate.model.id}`
  return context.store.ledger.settle({ holdId: hold.id, amount, description, answer }, nowMs)
}

async function resolveClaim(
  context: StageContext,
  claim: IdempotencyClaim,
  ending: CallEnding,
  answer: StoredAnswer | undefined,
): Promise<undefined> {
  const isKept = answer !== undefined && ending.kind === 'completed'
  await (isKept ? context.store.idempotency.complete(claim, answer) : context.store.idempotency.release(claim))
}
