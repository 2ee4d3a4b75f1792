import { checkMembers } from '../core/known-members.ts'
import { SPENDING_THRESHOLDS_MEMBERS, type SpendingThresholds } from '../stores/spending.ts'

const DEFAULT_PERCENTS: readonly number[] = [50, 80, 100]

/**
 * Checks the thresholds and fills in the defaults.
 * @throws TypeError naming the member.
 */
export function spendingThresholdsOf(options: Partial<SpendingThresholds> | undefined): SpendingThresholds {
  checkMembers(options, SPENDING_THRESHOLDS_MEMBERS, 'createGateway', 'spendingThresholds')
  for (const [member, percents] of Object.entries(options ?? {})) {
    const isList = Array.isArray(percents) && percents.every((percent) => percent > 0 && percent <= 100)
    if (percents !== undefined && !isList)
      throw new TypeError(`createGateway: spendingThresholds.${member} must be percents above 0 and at most 100`)
  }
  return { caps: options?.caps ?? DEFAULT_PERCENTS, balance: options?.balance ?? DEFAULT_PERCENTS }
}
