import type { UnbilledUsage, Usage } from '../core/usage.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { type AttemptFailure, mayStillRun } from './error-classification.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { estimatedUsage, isSetByRequest, usagePart } from './usage-estimate.ts'
import type { CallEnding } from './vendor-response.ts'

/** A call that its vendor bills, or may bill. */
export interface UsedCall extends UnbilledUsage {
  readonly reserved: Reserved
  readonly candidate: Candidate
}

/** Tells the operator what a vendor has billed and no account is charged for. */
export function emitUnbilledUsage(
  context: PipelineContext,
  { requestId, principal }: Reserved,
  { vendor, model }: Candidate,
  { usage, isEstimated }: UnbilledUsage,
): void {
  emit(context, {
    type: 'unbilled-usage',
    requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    vendor: vendor.id,
    model: model.id,
    usage,
    isEstimated,
  })
}

/** Tells what of a call that is over is not charged for. */
export function emitUnbilledEnding(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  { unbilled, unreportedUsage: usage }: CallEnding,
): void {
  if (usage !== undefined) emitUnbilledUsage(context, call, candidate, { usage, isEstimated: true })
  if (unbilled !== undefined) emitUnbilledUsage(context, call, candidate, unbilled)
}

/** Bytes of a whole answer that are no text: JSON around it has at least so many. */
const ENVELOPE_BYTES = 200

/** What is known of the operation of an attempt. */
export interface FailedOperation {
  readonly reasonsUnseen: boolean
  /** Is it a whole answer of tokens, which is made before any of it comes? */
  readonly isMaking: boolean
}

/**
 * What a vendor may bill for an attempt that failed without a report: it did not refuse, bills what it refuses, or has parts that it
 * did not refuse. A whole answer that took too long, or that was stopped, may still be made, so that its output counts as held.
 * Undefined: nothing.
 */
export function estimateUnreported(
  call: Reserved,
  failure: AttemptFailure,
  { reasonsUnseen, isMaking }: FailedOperation,
): Usage | undefined {
  const { mayHaveBegun, outcome, billedUsage, answerBytes, refusedBytes, begunShare } = failure
  const { endpoint } = call
  if (begunShare === undefined && refusedBytes === undefined && (!mayHaveBegun || billedUsage !== undefined))
    return undefined
  // A task is followed.
  const isFree = endpoint.isFree === true || (endpoint.isFree === 'unless-priced' && call.hold === undefined)
  if (endpoint.task !== undefined || isFree) return undefined
  if (refusedBytes !== undefined) return refusedUsage(call, refusedBytes)
  const isOurs = outcome === 'ignored'
  const isStopped = isMaking && answerBytes === undefined && (isOurs || mayStillRun(failure))
  const outputBytes = Math.max(0, (answerBytes ?? 0) - ENVELOPE_BYTES)
  const isUnseen = reasonsUnseen || isStopped
  const usage = estimatedUsage(call, { outputBytes, isUnseen, isStopped: isOurs || isStopped })
  return begunShare === undefined ? usage : usagePart(usage, begunShare)
}

/** The prompt and the text that was made. Pictures and speech, which are known from the request, were not made. */
function refusedUsage(call: Reserved, outputBytes: number): Usage | undefined {
  return isSetByRequest(call.estimate) ? undefined : estimatedUsage(call, { outputBytes, isUnseen: false })
}
