import type { ThresholdCrossing } from '../stores/spending.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'

/** Account and key of a call. */
interface Charged {
  readonly requestId: string
  readonly accountId: string
  readonly keyId: string
}

/** Notifies the operator of the thresholds of caps, balance and credit limit that a charge has passed. */
export function emitCrossings(
  context: PipelineContext,
  { requestId, accountId, keyId }: Charged,
  crossings: readonly ThresholdCrossing[] = [],
): void {
  for (const { of, period, percent: thresholdPercent, bound, used } of crossings) {
    const told = { requestId, accountId, keyId, thresholdPercent }
    if (of === 'balance' || of === 'credit_limit') {
      const remainingNanoDollars = used < bound ? bound - used : 0n
      emit(context, { type: 'balance-low', ...told, of, totalNanoDollars: bound, remainingNanoDollars })
    } else if (period !== undefined) {
      const owner = of === 'account_cap' ? 'account' : 'key'
      const amounts = { capNanoDollars: bound, chargedNanoDollars: used }
      emit(context, { type: 'cap-reached', ...told, owner, period, ...amounts })
    }
  }
}
