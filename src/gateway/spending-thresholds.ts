import type { SpendingThresholds } from '../stores/spending.ts'

const DEFAULT_PERCENTS: readonly number[] = [50, 80, 100]
const MEMBERS: readonly string[] = ['caps', 'balance'] satisfies (keyof SpendingThresholds)[]

/**
 * Checks the thresholds and fills in the defaults.
 * @throws TypeError naming the member.
 */
export function spendingThresholdsOf(options: Partial<SpendingThresholds> | undefined): SpendingThresholds {
  for (const [member, percents] of Object.entries(options ?? {})) {
    if (!MEMBERS.includes(member)) throw new TypeError(`createGateway: unknown option spendingThresholds.${member}`)
    if (!Array.isArray(percents) || !percents.every((percent) => percent > 0 && percent <= 100))
      throw new TypeError(`createGateway: spendingThresholds.${member} must be percents above 0 and at most 100`)
  }
  return { caps: options?.caps ?? DEFAULT_PERCENTS, balance: options?.balance ?? DEFAULT_PERCENTS }
}
