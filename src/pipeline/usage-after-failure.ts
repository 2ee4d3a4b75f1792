// See docs/decisions/0005-charges-without-a-report.md.

import type { UnbilledUsage, Usage } from '../core/usage.ts'
import { endUserOf } from '../stores/principal.ts'
import type { TaskDetails } from '../stores/task-store.ts'
import { storableText, tagsOf, type UsageDraft } from '../usage/usage-record.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { type AttemptFailure, mayStillRun } from './error-classification.ts'
import { cutUsage, estimatedUsage, isSetByRequest, mostUsage, usagePart } from './estimate.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
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

/** Usage of a failed call: the charged part, and the part that only the operator sees. */
type FailedUsage = Pick<CallEnding, 'usage' | 'estimatedUsage' | 'unbilled' | 'unreportedUsage'>

/** Returns the usage of a call that no vendor answered. It is not charged, and the operator sees what the vendor may bill. */
export function failedUsage(last: FailedAttempt | undefined): FailedUsage {
  if (last === undefined || last.isTold === true) return NOTHING_CHARGED
  const { failure, unreported: unreportedUsage } = last
  const { billedUsage, isBillCounted: isEstimated = false } = failure
  if (billedUsage === undefined) return { ...NOTHING_CHARGED, unreportedUsage }
  return { ...NOTHING_CHARGED, unbilled: { usage: billedUsage, isEstimated }, unreportedUsage }
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
  if (last === undefined || last.isTold === true) return failedUsage(last)
  const { mayHaveBegun, billedUsage, isBillCounted, outcome, isPartDone } = last.failure
  // Some parts were answered, and the others were stopped before they were sent.
  if (!mayHaveBegun && outcome === 'ignored' && isPartDone === true)
    return { usage: billedUsage, estimatedUsage: undefined }
  if (!mayHaveBegun || outcome !== 'ignored') return failedUsage(last)
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
interface FailedOperation {
  readonly reasonsUnseen: boolean
  /** Whether it is a whole answer of tokens, which is generated before any of it arrives. */
  readonly isMaking: boolean
}

/**
 * Returns the usage that a vendor may bill for an attempt that failed without a report: it did not reject it, bills rejections,
 * or did not reject some parts. A whole answer that took too long, or was stopped, may still be generated, so its output counts
 * as reserved. Returns `undefined` if nothing may be billed.
 */
function estimateUnreported(
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

/** Headers in which a caller names its end user, and its own tags of the call, separated by commas. */
const USER_HEADER = 'x-signalbox-user'
const TAGS_HEADER = 'x-signalbox-tags'

/** Ended call. */
export interface EndedCall {
  readonly ending: CallEnding
  readonly candidate: Candidate | undefined
  /** HTTP status of the caller's answer. */
  readonly status: number
  /** Milliseconds from the request's arrival to the first content, or `undefined` if there was none. */
  readonly firstByteMs?: number | undefined
  /** The vendor's id of its answer, if it has one. */
  readonly vendorRequestId?: string | undefined
}

/** Returns the record of a call before its charge is known. */
export function usageDraft(
  context: PipelineContext,
  reserved: Reserved,
  { candidate, ending, status, firstByteMs, vendorRequestId }: EndedCall,
  usage: Usage | undefined,
): UsageDraft {
  const { principal, body, chain } = reserved
  const attribution = attributionOf(reserved)
  const nowMs = context.clock.now()
  return {
    id: reserved.requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    endUser: attribution?.endUser,
    tags: attribution?.tags ?? NO_TAGS,
    endpoint: reserved.endpoint.id,
    model: candidate?.model.id ?? chain[0]?.id ?? body.model,
    requestedModel: body.model,
    vendor: candidate?.vendor.id,
    credentialId: candidate?.credentialId,
    vendorRequestId,
    ending: ending.kind,
    status,
    code: ending.error?.code,
    isStream: reserved.isStream,
    usage: usage ?? ending.unbilled?.usage ?? NO_USAGE,
    isEstimated: ending.usage === undefined && ending.estimatedUsage !== undefined && usage !== undefined,
    durationMs: nowMs - reserved.startedAtMs,
    firstByteMs,
    attempts: reserved.attemptsUntil(nowMs),
  }
}

/** Returns the end user and tags of a call, or `undefined` if there are neither. Values of the host take precedence. */
export function attributionOf({
  principal,
  request,
  body,
}: Pick<Reserved, 'principal' | 'request' | 'body'>): TaskDetails['attribution'] {
  const named = endUserOf(principal, body) ?? request.header(USER_HEADER)
  const endUser = named && storableText(named)
  const tags = tagsOf(principal.tags, request.header(TAGS_HEADER))
  return endUser === undefined && tags.length === 0 ? undefined : { endUser, tags }
}

const NO_TAGS: readonly string[] = []
const NO_USAGE: Usage = {}
