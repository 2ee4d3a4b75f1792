import type { Usage } from '../core/usage.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { type AttemptFailure, mayStillRun } from './error-classification.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { emitUnbilledUsage, estimateUnreported, type FailedOperation } from './unbilled-usage.ts'
import { cutUsage, estimatedUsage, mostUsage } from './usage-estimate.ts'
import type { CallEnding } from './vendor-response.ts'

/** An attempt that failed, and what its vendor may bill. */
export interface FailedAttempt<Asked extends Candidate = Candidate> {
  readonly failure: AttemptFailure
  readonly candidate: Asked
  /** What the vendor may bill for it, though it reported nothing; undefined: nothing. */
  readonly unreported: Usage | undefined
  /** Has an event told what the vendor may bill? Then it is not charged. */
  readonly isTold?: boolean
}

/** An attempt that has failed just now. */
export function failedAttempt<Asked extends Candidate>(
  call: Reserved,
  candidate: Asked,
  failure: AttemptFailure,
  operation: FailedOperation,
): FailedAttempt<Asked> {
  return { failure, candidate, unreported: estimateUnreported(call, failure, operation) }
}

/** Emits what the vendor may bill for an attempt that no account is charged for. */
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

/** Is a caller charged for what a vendor broke off? */
export function chargesBroken({ chargeBrokenAnswers }: PipelineContext, { hold }: Reserved): boolean {
  return chargeBrokenAnswers && hold !== undefined
}

/** The usage of a call that failed: what its caller is charged for, and what only the operator is told of. */
type FailedUsage = Pick<CallEnding, 'usage' | 'estimatedUsage' | 'unbilled' | 'unreportedUsage'>

/** What a caller pays whom no vendor answered: nothing, unless the host charges for what the last vendor may bill. */
export function failedUsage(context: PipelineContext, call: Reserved, last: FailedAttempt | undefined): FailedUsage {
  if (last === undefined || last.isTold === true) return NOTHING_CHARGED
  const { failure, unreported: unreportedUsage } = last
  const { billedUsage, isBillCounted: isEstimated = false, isPartDone, answerBytes, refusedBytes, outcome } = failure
  // What the gateway itself cut off, because it closes, is no fault of the vendor.
  const isCharged = chargesBroken(context, call) && outcome !== 'ignored'
  if (billedUsage === undefined && isCharged && ((answerBytes ?? refusedBytes) !== undefined || mayStillRun(failure)))
    return { usage: undefined, estimatedUsage: unreportedUsage }
  // Beside parts that were answered, what was sent and not answered is not charged.
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
 * Usage that a disconnected caller pays for: as for any other call if the vendor failed or a time-out ended it. If the call was stopped
 * because its caller disconnected, it is the prompt and what the model has written in that time. Vendors go on with a whole answer,
 * so {@link WHOLE_ANSWER_WAIT_MS} after the caller has disconnected count at least.
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
  // The report is of the parts that were answered, and the others were sent too.
  const usage = isPartDone === true ? mostUsage(billedUsage, estimated) : cutUsage(billedUsage, estimated)
  return { usage, estimatedUsage: estimated }
}
