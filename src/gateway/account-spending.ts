import type { Clock } from '../core/clock.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { SpendingCap } from '../stores/principal.ts'
import { dayName, type SpendingCounts, spendingAt, spendingPeriod, spentOf } from '../stores/spending.ts'
import { administer } from './administer.ts'

/** Amounts that count against caps, in nano-dollars: charges minus refunds, plus open holds. */
export interface Spent {
  /** Amount of the UTC day. */
  readonly day: bigint
  /** Amount of the UTC month. */
  readonly month: bigint
  /** Spending cap, if any. */
  readonly cap: SpendingCap | undefined
  /** Rest of the cap, never negative; `undefined` without a cap. */
  readonly left: bigint | undefined
}

/** Spending of an account and its keys today and in this month, with the rest of their caps. */
export interface AccountSpending extends Spent {
  readonly accountId: string
  /** Date in UTC: `2026-11-22`. */
  readonly date: string
  /** Keys of the account, oldest first, revoked ones included. */
  readonly keys: readonly (Spent & { readonly keyId: string; readonly label: string })[]
}

/** Returns the amounts that count against the caps of an account and its keys, or `undefined` if there is no such account. */
export function readSpending(
  store: GatewayStore,
  clock: Clock,
  ready: () => Promise<void>,
  accountId: string,
): Promise<AccountSpending | undefined> {
  return administer(ready, async () => {
    const account = await store.ledger.account(accountId)
    if (account === undefined) return undefined
    const keys = await store.keys.list(accountId)
    const stored = await store.ledger.spending(
      accountId,
      keys.map(({ id }) => id),
    )
    if (stored === undefined) return undefined
    // Clocks may differ. A day has begun if anything was counted in it.
    const period = Math.max(spendingPeriod(clock.now()), stored.account.period)
    return {
      accountId,
      date: dayName(period),
      ...spent(stored.account, account.spendingCap, period),
      keys: keys.map(({ id, label, spendingCap }, index) => {
        return { keyId: id, label, ...spent(stored.keys[index]!, spendingCap, period) }
      }),
    }
  })
}

function spent(counts: SpendingCounts, cap: SpendingCap | undefined, period: number): Spent {
  const current = spendingAt(counts, period)
  const [day, month] = [spentOf(current, 'day'), spentOf(current, 'month')]
  if (cap === undefined) return { day, month, cap, left: undefined }
  const left = cap.amount - (cap.period === 'day' ? day : month)
  return { day, month, cap, left: left < 0n ? 0n : left }
}
