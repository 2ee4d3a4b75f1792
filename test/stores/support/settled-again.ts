import { expect } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { Resolution } from '../../../src/stores/resolution.ts'
import {
  ACCOUNT_ID,
  exampleKey,
  exampleReservation,
  fundedLedger,
  NOW_MS,
} from '../../../src/testing/contracts/contract-runner.ts'

const THRESHOLDS = { caps: [50, 80, 100], balance: [50, 80, 100] }

/**
 * Settles holds of a prepaid and of a metered account, some of them above what they held, and each of them again after all the others, as
 * where the answers of the first were lost: the second tells what the first has told.
 */
export async function expectToldAgain(store: Pick<GatewayStore, 'ledger' | 'keys'>): Promise<void> {
  const { ledger } = store
  await fundedLedger(store as GatewayStore, 1_000n)
  await ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 1_100n, period: 'day' } })
  await store.keys.insert(exampleKey({ spendingCap: { amount: 1_150n, period: 'month' } }))
  const metered = { accountId: 'account_2', keyId: 'key_2', billing: 'metered' } as const
  await ledger.createAccount({ id: 'account_2', creditLimit: 1_000n }, NOW_MS)
  const calls = [
    { holdId: 'hold_1', held: 300n, amount: 300n },
    { holdId: 'hold_2', held: 300n, amount: 300n, keyId: 'key_3' },
    { holdId: 'hold_3', held: 300n, amount: 550n },
    { holdId: 'hold_4', held: 400n, amount: 600n, ...metered },
    { holdId: 'hold_5', held: 400n, amount: 600n, ...metered },
  ]
  for (const { held, amount: _, ...of } of calls) {
    const outcome = await ledger.reserve(exampleReservation({ ...of, amount: held }), NOW_MS)
    expect(outcome).toEqual({ status: 'held' })
  }
  const settleAll = async () => {
    const told = []
    for (const { holdId, amount } of calls) {
      const settlement = { holdId, amount, description: 'chat', thresholds: THRESHOLDS }
      told.push(await ledger.settle(settlement, NOW_MS))
    }
    return told
  }

  const first = await settleAll()
  const again = await settleAll()
  await ledger.credit({ creditId: 'later', accountId: ACCOUNT_ID, amount: 900n, description: 'later' }, NOW_MS)
  const credited = await settleAll()
  const untold = await ledger.settle({ holdId: 'hold_3', amount: 550n, description: 'chat' }, NOW_MS)

  const chargeOf = (told: Resolution['earlier']) => ({
    charged: told?.charged,
    shortfall: told?.shortfall,
    crossings: told?.crossings,
  })
  const charges = first.map(chargeOf)
  expect(charges[2]).toMatchObject({ charged: 400n, shortfall: 150n })
  expect(first.map(({ crossings = [] }) => crossings.map(({ of, percent }) => `${of} ${percent}`))).toEqual([
    [],
    ['account_cap 50', 'balance 50'],
    ['account_cap 80', 'account_cap 100', 'key_cap 50', 'balance 80', 'balance 100'],
    ['credit_limit 50'],
    ['credit_limit 80', 'credit_limit 100'],
  ])
  expect(again.map(({ earlier }) => chargeOf(earlier))).toEqual(charges)
  // The balance at that time is no longer known.
  expect(credited.map(({ earlier }) => earlier?.crossings ?? [])).toEqual(
    charges.map(({ crossings = [] }) => crossings.filter(({ of }) => of !== 'balance')),
  )
  expect(again).toMatchObject(again.map(() => untold))
  expect(untold).toEqual({ resolved: false, charged: 0n, shortfall: 0n, endedBy: 'settled' })
}
