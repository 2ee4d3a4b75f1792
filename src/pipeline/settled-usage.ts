import { isCount } from '../catalog/prices/plausible-usage.ts'
import type { Usage, UsageField } from '../core/usage.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { chargeFor } from './pricing.ts'
import type { EndedCall } from './usage-draft.ts'
import { chargeableUsage, reportBounds } from './usage-estimate.ts'

/** Returns the vendor's report, made plausible and complete, or else the estimate; undefined if nothing is charged. */
export function settledUsage(
  context: PipelineContext,
  reserved: Reserved,
  { ending, candidate }: Pick<EndedCall, 'ending' | 'candidate'>,
): Usage | undefined {
  const { usage: reported, estimatedUsage } = ending
  if (candidate === undefined) return estimatedUsage
  if (reported === undefined) {
    const isMissing = ending.kind === 'completed' && isSoldByUsage(reserved)
    if (isMissing && estimatedUsage !== undefined)
      emit(context, { type: 'usage-missing', ...namedCall(reserved, candidate), usage: estimatedUsage })
    if (ending.kind === 'abandoned' && estimatedUsage !== undefined && isSoldByUsage(reserved)) {
      const elapsedMs = context.clock.now() - reserved.startedAtMs
      emit(context, { type: 'call-abandoned', ...namedCall(reserved, candidate), elapsedMs, usage: estimatedUsage })
    }
    return estimatedUsage
  }
  const bounds = reportBounds(reserved, candidate.model)
  const { usage, replaced } = chargeableUsage(reported, bounds, estimatedUsage ?? NOTHING_ESTIMATED)
  if (replaced.length > 0) emitImplausible(context, reserved, candidate, { reported, usage, fields: replaced })
  else if (ending.kind === 'completed' && ending.textBytes !== undefined) {
    const { outputTokens = 0, reasoningTokens = 0 } = usage
    context.tokenSizes.note(candidate.model.id, ending.textBytes, outputTokens - reasoningTokens)
    context.tokenSizes.noteReasoning(
      candidate.model.id,
      reasoningTokens / (reserved.endpoint.answers?.(reserved.body) ?? 1),
    )
  }
  return usage
}

const NOTHING_ESTIMATED: Usage = {}

function emitImplausible(
  context: PipelineContext,
  reserved: Reserved,
  candidate: Candidate,
  { reported, usage, fields }: { readonly reported: Usage; readonly usage: Usage; readonly fields: readonly string[] },
): void {
  const isCounted = fields.every((field) => isCount(field, reported[field as UsageField]))
  emit(context, {
    type: 'usage-implausible',
    ...namedCall(reserved, candidate),
    fields,
    reported: membersOf(reported, fields),
    charged: membersOf(usage, fields),
    reportedNanoDollars: isCounted ? chargeFor(reserved, candidate, reported) : undefined,
    dueNanoDollars: chargeFor(reserved, candidate, usage),
  })
}

/** Returns the named members of usage that are present. */
export function membersOf(usage: Usage, names: readonly string[]): Readonly<Partial<Record<UsageField, number>>> {
  return Object.fromEntries(Object.entries(usage).filter(([name]) => names.includes(name)))
}

/** Returns the ids of a call for an event. */
function namedCall({ requestId }: Reserved, { vendor, model }: Candidate) {
  return { requestId, vendor: vendor.id, model: model.id }
}

/** If usage has no price, a missing report needs no event. */
function isSoldByUsage({ endpoint: { isFree = false }, hold }: Reserved): boolean {
  return typeof isFree === 'boolean' ? !isFree : hold?.rates.some(({ pricesTokens }) => pricesTokens) === true
}
