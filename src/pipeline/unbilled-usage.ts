import type { Usage } from '../core/usage.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'

/** Tells the operator what a vendor has billed and nobody is charged for. */
export function emitUnbilledUsage(
  context: PipelineContext,
  { requestId, principal }: Reserved,
  { vendor, model }: Candidate,
  usage: Usage,
): void {
  emit(context, {
    type: 'unbilled-usage',
    requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    vendor: vendor.id,
    model: model.id,
    usage,
  })
}
