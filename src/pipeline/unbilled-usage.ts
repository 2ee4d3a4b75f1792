import type { UnbilledUsage, Usage } from '../core/usage.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { type AttemptFailure, mayStillRun } from './error-classification.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { estimatedUsage, isSetByRequest, usagePart } from './usage-estimate.ts'
import type { CallEnding } from './vendor-response.ts'

/** Call that its vendor bills, or may bill. */
export interface UsedCall extends UnbilledUsage {
  readonly reserved: Reserved
  readonly candidate: Candidate
}

/** Reports usage to the operator that a vendor has billed and no account is charged for. */
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

/** Emits `unbilled-usage` for the part of an ended call that is not charged. */
export function emitUnbilledEnding(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  { unbilled, unreportedUsage: usage }: CallEnding,
): void {
  if (usage !== undefined) emitUnbilledUsage(context, call, candidate, { usage, isEstimated: true })
  if (unbilled !== undefined) emitUnbilledUsage(context, call, candidate, unbilled)
}

/** Minimum number of bytes of a whole answer that are not text, but JSON around it. */
const ENVELOPE_BYTES = 200

/** Facts of an attempt's operation. */
export interface FailedOperation {
  readonly reasonsUnseen: boolean
  /** Whether it is a whole answer of tokens, which is generated before any of it arrives. */
  readonly isMaking: boolean
}

/**
 * Returns the usage that a vendor may bill for an attempt that failed without a report: it did not reject it, bills rejections,
 * or did not reject some parts. A whole answer that took too long, or was stopped, may still be generated, so its output counts
 * as reserved. Returns `undefined` if nothing may be billed.
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
  // A task is polled until its end.
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

/** Returns the prompt and the generated text. Images and speech, which are known from the request, were not generated. */
function refusedUsage(call: Reserved, outputBytes: number): Usage | undefined {
  return isSetByRequest(call.estimate) ? undefined : estimatedUsage(call, { outputBytes, isUnseen: false })
}
