import type { Usage } from '../core/usage.ts'
import type { Candidate, Reserved } from './call-record.ts'
import type { AttemptFailure } from './error-classification.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { estimatedUsage } from './usage-estimate.ts'

/** Tells the operator what a vendor has billed and nobody is charged for. */
export function emitUnbilledUsage(
  context: PipelineContext,
  { requestId, principal }: Reserved,
  { vendor, model }: Candidate,
  usage: Usage,
  isEstimated = false,
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

/**
 * The same of an attempt that failed at a vendor without a report, where the vendor may have made the answer all the same: it did
 * not refuse, and it was not stopped.
 */
export function emitEstimatedUnbilledUsage(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  { mayHaveBegun, outcome, billedUsage, answerBytes = 0 }: AttemptFailure,
  isUnseen: boolean,
): void {
  const { endpoint, caller } = call
  if (context.onEvent === undefined || !mayHaveBegun || outcome === 'ignored' || billedUsage !== undefined) return
  // A task is followed, and who has left pays.
  if (endpoint.task !== undefined || endpoint.isFree === true || caller.isDisconnected) return
  const usage = estimatedUsage(call, { outputBytes: answerBytes, isUnseen })
  emitUnbilledUsage(context, call, candidate, usage, true)
}
