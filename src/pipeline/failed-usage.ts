import type { Usage } from '../core/usage.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { type AttemptFailure, mayStillRun } from './error-classification.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { emitUnbilledUsage, estimateUnreported, type FailedOperation } from './unbilled-usage.ts'
import { cutUsage, estimatedUsage, mostUsage } from './usage-estimate.ts'
import type { CallEnding } from './vendor-response.ts'

/** Failed attempt, and the usage that its vendor may bill. */
export interface FailedAttempt<Asked extends Candidate = Candidate> {
  readonly failure: AttemptFailure
  readonly candidate: Asked
  /** Usage that the vendor may bill without a report, or `undefined` for none. */
  readonly unreported: Usage | undefined
  /** Whether an event has reported the usage that the vendor may bill. It is not charged then. */
  readonly isTold?: boolean
}

/** Returns a failed attempt with its usage. */
export function failedAttempt<Asked extends Candidate>(
  call: Reserved,
  candidate: Asked,
  failure: AttemptFailure,
  operation: FailedOperation,
): FailedAttempt<Asked> {
  return { failure, candidate, unreported: estimateUnreported(call, failure, operation) }
}

/** Emits the usage that the vendor may bill for an attempt that no account is charged for. */
export function told<Asked extends Candidate>(
  context: PipelineContext,
  call: Reserved,
  attempt: FailedAttempt<Asked>,
): FailedAttempt<Asked> {
  const { failure, candidate, unreported } = attempt
  const { billedUsage, isBillCounted: isEstimated = false } = failure
  if (billedUsage !== undefined) emitUnbilledUsage(context, call, candidate, { usage: billedUsage, isEstimated })
  if (unreported !== undefined) emitUnbilledUsage(context, call, candidate, { usage: unreported, isEstimated: true })
  return { ...attempt, isTold: true }
}

/** Whether a caller is charged for answers that a vendor broke off. */
export function chargesBroken({ chargeBrokenAnswers }: PipelineContext, { hold }: Reserved): boolean {
  return chargeBrokenAnswers && hold !== undefined
}

/** Usage of a failed call: the charged part, and the part that only the operator sees. */
type FailedUsage = Pick<CallEnding, 'usage' | 'estimatedUsage' | 'unbilled' | 'unreportedUsage'>

/** Returns the usage to charge if no vendor answered: none, unless the host charges for the usage that the last vendor may bill. */
export function failedUsage(context: PipelineContext, call: Reserved, last: FailedAttempt | undefined): FailedUsage {
  if (last === undefined || last.isTold === true) return NOTHING_CHARGED
  const { failure, unreported: unreportedUsage } = last
  const { billedUsage, isBillCounted: isEstimated = false, isPartDone, answerBytes, refusedBytes, outcome } = failure
  // A call that the gateway ended because it closes is not a fault of the vendor.
  const isCharged = chargesBroken(context, call) && outcome !== 'ignored'
  if (billedUsage === undefined && isCharged && ((answerBytes ?? refusedBytes) !== undefined || mayStillRun(failure)))
    return { usage: undefined, estimatedUsage: unreportedUsage }
  // If parts were answered, the parts that were sent and not answered are not charged.
  if (billedUsage === undefined) return { ...NOTHING_CHARGED, unreportedUsage }
  return (isPartDone === true ? context.chargePartialBatches : isCharged)
    ? { ...(isEstimated ? estimate(billedUsage) : { usage: billedUsage, estimatedUsage: undefined }), unreportedUsage }
    : { ...NOTHING_CHARGED, unbilled: { usage: billedUsage, isEstimated }, unreportedUsage }
}

function estimate(usage: Usage): Pick<CallEnding, 'usage' | 'estimatedUsage'> {
  return { usage: undefined, estimatedUsage: usage }
}

const NOTHING_CHARGED = { usage: undefined, estimatedUsage: undefined }

/** Time for which a paid whole answer is awaited after its caller has disconnected, unless the policy drains; at most `drainMs`. */
export const WHOLE_ANSWER_WAIT_MS = 10_000

/**
 * Returns the usage that a disconnected caller pays for. If the vendor failed or timed out, it is the same as for any other call.
 * If the call was stopped because its caller disconnected, it is the prompt and the output written in that time. Vendors continue
 * with a whole answer, so at least {@link WHOLE_ANSWER_WAIT_MS} after the disconnect count.
 */
export function abandonedUsage(
  context: PipelineContext,
  call: Reserved,
  last: FailedAttempt | undefined,
  { reasonsUnseen, isMaking }: { readonly reasonsUnseen: boolean; readonly isMaking: boolean },
): FailedUsage {
  if (last === undefined || last.isTold === true) return failedUsage(context, call, last)
  const { mayHaveBegun, billedUsage, isBillCounted, outcome, isPartDone } = last.failure
  // Some parts were answered, and the others were stopped before they were sent.
  if (!mayHaveBegun && outcome === 'ignored' && isPartDone === true)
    return { usage: billedUsage, estimatedUsage: undefined }
  if (!mayHaveBegun || outcome !== 'ignored') return failedUsage(context, call, last)
  const nowMs = context.clock.now()
  const unwaitedMs = isMaking ? Math.max(0, WHOLE_ANSWER_WAIT_MS - call.calls.readOnMs(nowMs)) : 0
  const stoppedAfterMs = nowMs - call.startedAtMs + unwaitedMs
  const isUnseen = reasonsUnseen || isMaking
  const estimated = estimatedUsage(call, { outputBytes: 0, isUnseen, isStopped: true, stoppedAfterMs })
  if (billedUsage === undefined) return estimate(estimated)
  if (isBillCounted === true) return estimate(cutUsage(billedUsage, estimated))
  // The report covers the answered parts, and the others were sent too.
  const usage = isPartDone === true ? mostUsage(billedUsage, estimated) : cutUsage(billedUsage, estimated)
  return { usage, estimatedUsage: estimated }
}
