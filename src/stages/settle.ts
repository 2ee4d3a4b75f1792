import { plausibleUsage } from '../catalog/prices/plausible-usage.ts'
import type { Usage } from '../core/usage.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import { leave } from './admit.ts'
import { chargeFor } from './charge-for.ts'
import { fillUsage } from './estimated-usage.ts'
import type { CallEnding, Candidate, Reserved, Settled } from './records.ts'
import { emit, type StageContext } from './stage-context.ts'

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
 * an `internal-error` event.
 */
export async function settle(context: StageContext, reserved: Reserved, settling: Settling): Promise<Settled> {
  const usage = chargeableUsage(context, reserved, settling)
  let costNanoDollars = 0n
  const resolve = (): Promise<bigint> => resolveHold(context, reserved, settling, usage)
  try {
    costNanoDollars = await resolve()
  } catch (error) {
    internalError(context, reserved, 'settle', error)
    context.settlementRetries.add(resolve, context.clock.now() + context.holdTtlMs)
  }
  try {
    await leave(context, reserved, (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0))
  } catch (error) {
    internalError(context, reserved, 'limits', error)
  }
  if (context.onEvent !== undefined) {
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
  return { costNanoDollars: reserved.hold === undefined ? undefined : costNanoDollars, usage }
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
  const fields = [...implausible, ...filled.missing]
  if (fields.length > 0) {
    const { requestId } = reserved
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

async function resolveHold(
  context: StageContext,
  reserved: Reserved,
  settling: Settling,
  usage: Usage | undefined,
): Promise<bigint> {
  const { hold, claim } = reserved
  const { candidate, answer } = settling
  if (hold === undefined) {
    if (claim === undefined) return 0n
    const isKept = answer !== undefined && settling.ending.kind === 'completed'
    await (isKept ? context.store.idempotency.complete(claim, answer) : context.store.idempotency.release(claim))
    return 0n
  }
  const nowMs = context.clock.now()
  if (usage === undefined || candidate === undefined) {
    await context.store.ledger.void(hold.id, nowMs)
    return 0n
  }
  // A modality that has no price cannot appear after a hold was priced, unless the vendor adds it; the hold bounds it then.
  const amount = chargeFor(reserved, candidate, usage) ?? hold.amount
  const description = `${reserved.endpoint.id} ${candidate.model.id}`
  const resolution = await context.store.ledger.settle({ holdId: hold.id, amount, description, answer }, nowMs)
  return resolution.charged
}

function internalError(context: StageContext, reserved: Reserved, where: string, error: unknown): void {
  context.logger.error('a request could not be settled', { requestId: reserved.requestId, where, error })
  emit(context, { type: 'internal-error', requestId: reserved.requestId, where, error })
}
