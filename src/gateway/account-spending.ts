import type { Clock } from '../core/clock.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { SpendingCap } from '../stores/principal.ts'
import { dayName, type SpendingCounts, spendingAt, spendingPeriod, spentOf } from '../stores/spending.ts'
import { administer } from './administer.ts'

/** What counts against caps, in nano-dollars: charges, less refunds, and open holds. */
export interface Spent {
  /** Spent on the UTC day. */
  readonly day: bigint
  /** Spent in the UTC month. */
  readonly month: bigint
  /** Undefined: no cap. */
  readonly cap: SpendingCap | undefined
  /** What the cap still allows, never negative; undefined without a cap. */
  readonly left: bigint | undefined
}

/** What an account and its keys have spent today and in this month, and of which caps. */
export interface AccountSpending extends Spent {
  readonly accountId: string
  /** UTC, `2026-11-22`. */
  readonly date: string
  /** Keys of the account, oldest first, revoked ones included. */
  readonly keys: readonly (Spent & { readonly keyId: string; readonly label: string })[]
}

/** Reads what counts against the caps of an account and its keys; undefined when there is no such account. */
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
    // Clocks may differ: a day in which something was counted has begun.
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
