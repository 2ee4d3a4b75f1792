import type { GatewayEvent } from '../core/events.ts'
import { formatDollars } from '../core/money.ts'
import type { GiveUpReason, WaitingSettlement } from './settlement-retries.ts'
import { emit, type StageContext } from './stage-context.ts'

type GivenUp = Extract<GatewayEvent, { type: 'settlement-given-up' }>

/** What an operator needs to mend the ledger by hand, as the event has it. */
export type UnsettledHold = Omit<GivenUp, 'type' | 'reason' | 'error'>

/** Has a settlement that failed tried again; the operator is told when it is given up. */
export function settleLater(
  context: StageContext,
  hold: UnsettledHold,
  settlement: Pick<WaitingSettlement, 'run' | 'untilMs' | 'error'>,
): void {
  const { run, untilMs, error } = settlement
  const giveUp = (reason: GiveUpReason, last: unknown): void => tellGivenUp(context, hold, reason, last)
  context.settlementRetries.add({ run, untilMs, error, giveUp })
}

/** Tells the operator that a hold was not settled and will not be. */
export function tellGivenUp(
  context: StageContext,
  hold: UnsettledHold,
  reason: GivenUp['reason'],
  error: unknown,
): void {
  const { amountNanoDollars, ...named } = hold
  // Loggers write JSON, which has no bigint.
  const amount = formatDollars(amountNanoDollars)
  context.logger.error('a settlement is given up', { ...named, amount, reason, error })
  emit(context, { type: 'settlement-given-up', ...hold, reason, error })
}
