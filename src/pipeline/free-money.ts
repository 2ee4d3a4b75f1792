import { GatewayError } from '../core/errors.ts'
import { findKey } from '../stores/key-store.ts'
import { lesserOf } from '../stores/ledger.ts'
import type { Principal, SpendingCap } from '../stores/principal.ts'
import { type SpendingCounts, spendingAt, spendingPeriod, spentOf } from '../stores/spending.ts'
import type { PipelineContext } from './pipeline-context.ts'

/**
 * Returns the maximum cost of one more call, in nano-dollars: the least of the balance (or the rest of a credit limit) and the
 * rest of every cap of the account and the key. Returns `undefined` if nothing limits it. Open holds count as spent.
 * @throws GatewayError `store_unavailable` if the store fails.
 */
export async function freeMoneyOf(
  { store, billing, clock }: PipelineContext,
  { accountId, keyId, accountSpendingCap, keySpendingCap }: Principal,
): Promise<bigint | undefined> {
  try {
    const [account, spending, key] = await Promise.all([
      store.ledger.account(accountId),
      store.ledger.spending(accountId, [keyId]),
      findKey(store.keys, keyId),
    ])
    if (account === undefined) return 0n
    const { balance, owed, creditHeld, creditLimit } = account
    const isMetered = (account.billing ?? billing) === 'metered'
    let free = isMetered ? creditLimit && creditLimit + balance - owed - creditHeld : balance
    const period = spendingPeriod(clock.now())
    const limit = (cap: SpendingCap | undefined, counts: SpendingCounts | undefined): void => {
      if (cap === undefined) return
      const rest = cap.amount - (counts === undefined ? 0n : spentOf(spendingAt(counts, period), cap.period))
      free = free === undefined ? rest : lesserOf(free, rest)
    }
    for (const cap of [account.spendingCap, accountSpendingCap]) limit(cap, spending?.account)
    for (const cap of [key?.spendingCap, keySpendingCap]) limit(cap, spending?.keys[0])
    return free === undefined || free > 0n ? free : 0n
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
}
