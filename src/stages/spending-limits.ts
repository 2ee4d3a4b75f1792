import type { SpendingLimit } from '../stores/ledger.ts'
import type { Principal, SpendingCap } from '../stores/principal.ts'

/** How long a counter is kept after its period, so that requests that began in it can still be settled against it. */
const COUNTER_GRACE_MS = 24 * 60 * 60 * 1000

/** The counters that a caller's request counts against: one for the account's cap, one for the key's. */
export function spendingLimitsOf(principal: Principal, nowMs: number): readonly SpendingLimit[] | undefined {
  const { accountSpendingCap, keySpendingCap } = principal
  if (accountSpendingCap === undefined && keySpendingCap === undefined) return undefined
  const limits: SpendingLimit[] = []
  if (accountSpendingCap !== undefined)
    limits.push(spendingLimit(`account:${principal.accountId}`, accountSpendingCap, nowMs))
  if (keySpendingCap !== undefined) limits.push(spendingLimit(`key:${principal.keyId}`, keySpendingCap, nowMs))
  return limits
}

function spendingLimit(owner: string, cap: SpendingCap, nowMs: number): SpendingLimit {
  const { name, endMs } = calendarPeriod(cap.period, nowMs)
  return { counter: `${owner}:${name}`, limit: cap.amount, expiresAtMs: endMs + COUNTER_GRACE_MS }
}

/** The UTC day or month that a moment lies in: `2026-11-20` or `2026-11`, and when it ends. */
export function calendarPeriod(
  period: SpendingCap['period'],
  nowMs: number,
): { readonly name: string; readonly endMs: number } {
  const now = new Date(nowMs)
  const date = now.toISOString()
  if (period === 'day')
    return { name: date.slice(0, 10), endMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1) }
  return { name: date.slice(0, 7), endMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) }
}
