import {
  ACCOUNT_ID,
  balanceOf,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleAnswer,
  exampleClaim,
  fundedLedger,
  type LedgerStore,
  NOW_MS,
  placeHold,
  settleHold,
} from './contract-runner.ts'
import {
  describeLedgerAccounts,
  describeLedgerBilling,
  describeLedgerClaims,
  describeLedgerSpending,
} from './ledger-billing-contract.ts'
import { describeLedgerBooks } from './ledger-books-contract.ts'

/** Tests each guarantee of the ledger, and of its shared changes with the idempotency store of the same driver. */
export function describeLedger(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const owedBy = async ({ ledger }: LedgerStore) => (await ledger.account(ACCOUNT_ID))?.owed
  const sumOfEntries = async ({ ledger }: LedgerStore) =>
    (await ledger.entries(ACCOUNT_ID, 1000)).reduce((sum, entry) => sum + entry.amount, 0n)

  describeLedgerAccounts(runner, subject)

  describe('ledger contract: holds', () => {
    check('moves a hold from the balance and back when it is voided', async (store) => {
      await fundedLedger(store, 1_000n)
      expect(await placeHold(store, { amount: 400n })).toEqual({ status: 'held' })
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      expect(await store.ledger.void('hold_1', NOW_MS)).toEqual({ resolved: true, charged: 0n, shortfall: 0n })
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
    })

    check('refuses a hold above the balance and leaves the balance as it was', async (store) => {
      await fundedLedger(store, 1_000n)
      expect(await placeHold(store, { amount: 1_001n })).toEqual({ status: 'insufficient_balance' })
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
      expect(await placeHold(store, { holdId: 'hold_2', amount: 1_000n })).toEqual({ status: 'held' })
    })

    check('requires more free money than a hold takes', async (store) => {
      await fundedLedger(store, 1_000n)
      expect(await placeHold(store, { amount: 400n, requiredFree: 1_001n })).toEqual({ status: 'insufficient_balance' })
      const capped = { holdId: 'hold_2', caps: { account: { amount: 800n, period: 'day' as const } } }
      expect((await placeHold(store, { ...capped, amount: 400n, requiredFree: 801n })).status).toEqual('spending_limit')
      expect(await placeHold(store, { holdId: 'hold_3', amount: 400n, requiredFree: 1_000n })).toEqual({
        status: 'held',
      })
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
    })

    check('holds the larger amount of a reservation if the free money for it is there', async (store) => {
      await fundedLedger(store, 1_000n)
      const asked = { amount: 10n, requiredFree: 20n, larger: { amount: 100n, requiredFree: 950n } }
      const larger = { status: 'held', isLarger: true }
      expect(await placeHold(store, asked)).toEqual(larger)
      expect(await placeHold(store, asked)).toEqual(larger)
      expect(await balanceOf(store)).toEqual({ balance: 900n, held: 100n })
      expect(await placeHold(store, { ...asked, holdId: 'hold_2' })).toEqual({ status: 'held' })
      expect(await balanceOf(store)).toEqual({ balance: 890n, held: 110n })
    })

    check('adds to an open hold what the free money pays for, and settles or gives back all of it', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 400n })
      await placeHold(store, { holdId: 'hold_2', amount: 100n })
      expect(await store.ledger.enlarge('hold_1', 501n, NOW_MS)).toEqual('insufficient_balance')
      expect(await balanceOf(store)).toEqual({ balance: 500n, held: 500n })
      expect(await store.ledger.enlarge('hold_1', 300n, NOW_MS)).toEqual('held')
      expect(await store.ledger.enlarge('hold_2', 50n, NOW_MS)).toEqual('held')
      expect(await balanceOf(store)).toEqual({ balance: 150n, held: 850n })
      await settleHold(store, 600n)
      expect(await balanceOf(store)).toEqual({ balance: 250n, held: 150n })
      await store.ledger.void('hold_2', NOW_MS)
      expect(await balanceOf(store)).toEqual({ balance: 400n, held: 0n })
      expect(await store.ledger.enlarge('hold_1', 1n, NOW_MS)).toEqual('not_held')
      expect(await store.ledger.enlarge('hold_9', 1n, NOW_MS)).toEqual('not_held')
    })

    check('adds nothing to a hold of an account that is frozen, or above its cap', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 500n, period: 'day' } })
      await placeHold(store, { amount: 400n })
      expect(await store.ledger.enlarge('hold_1', 101n, NOW_MS)).toEqual('spending_limit')
      expect(await store.ledger.enlarge('hold_1', 60n, NOW_MS)).toEqual('held')
      expect(await store.ledger.enlarge('hold_1', 41n, NOW_MS)).toEqual('spending_limit')
      await store.ledger.updateAccount(ACCOUNT_ID, { frozen: { reason: 'abuse', atMs: NOW_MS } })
      expect(await store.ledger.enlarge('hold_1', 1n, NOW_MS)).toEqual('account_frozen')
      expect(await balanceOf(store)).toEqual({ balance: 540n, held: 460n })
    })

    check('allows a hold of zero for a known account only', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW_MS)
      expect(await placeHold(store, { amount: 0n })).toEqual({ status: 'held' })
      expect(await placeHold(store, { holdId: 'hold_2', accountId: 'account_2', amount: 0n })).toEqual({
        status: 'unknown_account',
      })
    })

    check('gives the first outcome when the same hold is reserved again, and holds nothing more', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 400n })
      await placeHold(store, { holdId: 'hold_2', amount: 5_000n })
      expect(await placeHold(store, { amount: 400n })).toEqual({ status: 'held' })
      expect(await balanceOf(store)).toEqual({ balance: 600n, held: 400n })
      await settleHold(store, 100n)
      expect(await placeHold(store, { amount: 400n })).toEqual({ status: 'held' })
      expect(await balanceOf(store)).toEqual({ balance: 900n, held: 0n })
    })

    check('charges what was used and gives the rest of the hold back', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 400n })
      expect(await settleHold(store, 150n)).toEqual({ resolved: true, charged: 150n, shortfall: 0n })
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
    })

    check('charges above the hold from the balance, never below zero, and the account owes the rest', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 400n })
      await placeHold(store, { holdId: 'hold_2', amount: 500n })
      expect(await settleHold(store, 700n)).toEqual({ resolved: true, charged: 500n, shortfall: 200n })
      expect(await balanceOf(store)).toEqual({ balance: 0n, held: 500n })
      expect(await owedBy(store)).toEqual(200n)
      const lines = await store.ledger.entries(ACCOUNT_ID, 10)
      expect(lines.slice(0, 2).map(({ kind, amount, owed }) => ({ kind, amount, owed }))).toEqual([
        { kind: 'owed', amount: 0n, owed: 200n },
        { kind: 'charge', amount: -500n, owed: 0n },
      ])
    })

    check(
      'refuses every reservation of an account that owes, and owes what is settled meanwhile too',
      async (store) => {
        await fundedLedger(store, 1_000n)
        for (const holdId of ['hold_1', 'hold_2', 'hold_3']) await placeHold(store, { holdId, amount: 10n })
        const settle = (holdId: string, amount: bigint) => settleHold(store, amount, { holdId })
        expect(await settle('hold_1', 1_500n)).toEqual({ resolved: true, charged: 980n, shortfall: 520n })
        for (const amount of [0n, 1n]) {
          expect(await placeHold(store, { holdId: `refused_${amount}`, amount })).toEqual({ status: 'in_arrears' })
        }
        expect(await settle('hold_2', 300n)).toEqual({ resolved: true, charged: 10n, shortfall: 290n })
        expect(await owedBy(store)).toEqual(810n)
        // Released money also repays debt: no account has both a debt and a balance.
        await store.ledger.void('hold_3', NOW_MS)
        expect(await owedBy(store)).toEqual(800n)
        expect(await balanceOf(store)).toEqual({ balance: 0n, held: 0n })
      },
    )

    check('pays what is owed from the next credit first, and then takes requests again', async (store) => {
      await fundedLedger(store, 100n)
      await placeHold(store, { amount: 100n })
      await settleHold(store, 400n)
      const credit = (creditId: string, amount: bigint) =>
        store.ledger.credit({ creditId, accountId: ACCOUNT_ID, amount, description: 'more' }, NOW_MS)
      expect(await credit('credit_2', 250n)).toEqual(true)
      expect(await credit('credit_2', 250n)).toEqual(false)
      expect({ ...(await balanceOf(store)), owed: await owedBy(store) }).toEqual({ balance: 0n, held: 0n, owed: 50n })
      expect((await placeHold(store, { holdId: 'hold_2' })).status).toEqual('in_arrears')
      await credit('credit_3', 250n)
      expect({ ...(await balanceOf(store)), owed: await owedBy(store) }).toEqual({ balance: 200n, held: 0n, owed: 0n })
      expect((await placeHold(store, { holdId: 'hold_3' })).status).toEqual('held')
      const lines = await store.ledger.entries(ACCOUNT_ID, 10)
      expect(lines.slice(0, 2).map(({ kind, amount, owed }) => ({ kind, amount, owed }))).toEqual([
        { kind: 'repayment', amount: -50n, owed: -50n },
        { kind: 'credit', amount: 250n, owed: 0n },
      ])
      expect(lines.reduce((sum, line) => sum + line.owed, 0n)).toEqual(0n)
      expect(await sumOfEntries(store)).toEqual(200n)
    })

    check('replays a stored answer to an account that owes', async (store) => {
      await fundedLedger(store, 100n)
      const claim = exampleClaim()
      await placeHold(store, { claim })
      await settleHold(store, 400n, { answer: exampleAnswer('first') })
      expect((await placeHold(store, { holdId: 'hold_2', claim })).status).toEqual('replay')
    })

    check('ends a hold once; every later end changes nothing and says how it had ended', async (store) => {
      const nothing = { resolved: false, charged: 0n, shortfall: 0n }
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 400n })
      await placeHold(store, { holdId: 'hold_2', amount: 100n })
      await settleHold(store, 150n)
      await store.ledger.void('hold_2', NOW_MS)
      for (const [holdId, ended] of [
        ['hold_1', { ...nothing, endedBy: 'settled' }],
        ['hold_2', { ...nothing, endedBy: 'voided' }],
        ['hold_3', nothing],
      ] as const) {
        expect(await settleHold(store, 90n, { holdId, description: 'again' })).toEqual(ended)
        expect(await store.ledger.void(holdId, NOW_MS)).toEqual(ended)
      }
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
    })

    check('settles once when 100 settle at the same time', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 400n })
      const settlement = { holdId: 'hold_1', amount: 150n, description: 'chat' }
      const ends = await Promise.all(Array.from({ length: 100 }, async () => store.ledger.settle(settlement, NOW_MS)))
      expect(ends.filter((end) => end.resolved).length).toEqual(1)
      expect(await balanceOf(store)).toEqual({ balance: 850n, held: 0n })
    })

    check('admits exactly 137 of 2,000 parallel requests with money for 137', async (store) => {
      await fundedLedger(store, 137n * 50n + 49n)
      const outcomes = await Promise.all(
        Array.from({ length: 2_000 }, async (_, index) => placeHold(store, { holdId: `hold_${index}`, amount: 50n })),
      )
      expect(outcomes.filter((outcome) => outcome.status === 'held').length).toEqual(137)
      expect(await balanceOf(store)).toEqual({ balance: 49n, held: 137n * 50n })
    })

    check('ends expired holds, at most as many as requested, and no others', async (store) => {
      await fundedLedger(store, 1_000n)
      const early = { amount: 100n, expiresAtMs: NOW_MS + 1_000 }
      for (const holdId of ['hold_1', 'hold_2', 'hold_3']) {
        await placeHold(store, { ...early, holdId })
      }
      await placeHold(store, { holdId: 'hold_4', amount: 100n, expiresAtMs: NOW_MS + 90_000 })
      expect(await store.ledger.expire(NOW_MS + 500, 10)).toEqual(0)
      expect(await store.ledger.expire(NOW_MS + 2_000, 2)).toEqual(2)
      expect(await store.ledger.expire(NOW_MS + 2_000, 10)).toEqual(1)
      expect(await store.ledger.expire(NOW_MS + 2_000, 10)).toEqual(0)
      expect(await balanceOf(store)).toEqual({ balance: 900n, held: 100n })
    })

    check('charges a hold that has expired against the balance, once, and owes the rest', async (store) => {
      await fundedLedger(store, 1_000n)
      const soon = { expiresAtMs: NOW_MS + 1 }
      await placeHold(store, soon)
      await placeHold(store, { ...soon, holdId: 'hold_2' })
      expect(await store.ledger.expire(NOW_MS + 2, 10)).toEqual(2)
      expect((await store.ledger.void('hold_1', NOW_MS + 3)).endedBy).toEqual('expired')
      const late = { holdId: 'hold_1', amount: 600n, description: 'late' }
      const ends = await Promise.all([1, 2, 3].map(async () => store.ledger.settle(late, NOW_MS + 3)))
      expect(ends.filter((end) => end.resolved)).toEqual([{ resolved: true, charged: 600n, shortfall: 0n }])
      expect(ends.filter((end) => end.endedBy === 'settled').length).toEqual(2)
      expect(await balanceOf(store)).toEqual({ balance: 400n, held: 0n })
      const other = { ...late, holdId: 'hold_2' }
      expect(await store.ledger.settle(other, NOW_MS + 3)).toEqual({ resolved: true, charged: 400n, shortfall: 200n })
      expect(await owedBy(store)).toEqual(200n)
    })

    check('stores no answer with a charge of a hold that has expired', async (store) => {
      await fundedLedger(store, 1_000n)
      const claim = exampleClaim()
      await placeHold(store, { claim, expiresAtMs: NOW_MS + 1 })
      await store.ledger.expire(NOW_MS + 2, 10)
      await placeHold(store, { holdId: 'hold_2', claim }, NOW_MS + 2)
      const late = { holdId: 'hold_1', amount: 9n, description: 'late', answer: exampleAnswer('late') }
      expect((await store.ledger.settle(late, NOW_MS + 3)).charged).toEqual(9n)
      expect(await store.idempotency.claim(claim, NOW_MS + 3)).toEqual({ status: 'in_flight' })
    })
  })

  describe('ledger contract: journal', () => {
    check('writes a line for every movement, newest first, at most as many as asked', async (store) => {
      await fundedLedger(store, 1_000n)
      await placeHold(store, { amount: 400n })
      await settleHold(store, 150n, { description: 'chat gmn-2.5-pro' }, NOW_MS + 7)
      const [charge, credit, ...others] = await store.ledger.entries(ACCOUNT_ID, 10)
      expect(others).toEqual([])
      expect([
        charge?.accountId,
        charge?.kind,
        charge?.amount,
        charge?.owed,
        charge?.due,
        charge?.balanceAfter,
      ]).toEqual([ACCOUNT_ID, 'charge', -150n, 0n, 150n, 850n])
      expect([charge?.holdId, charge?.description, charge?.createdAtMs]).toEqual([
        'hold_1',
        'chat gmn-2.5-pro',
        NOW_MS + 7,
      ])
      expect({ kind: credit?.kind, amount: credit?.amount }).toEqual({ kind: 'credit', amount: 1_000n })
      expect(charge?.id === credit?.id).toEqual(false)
      expect((await store.ledger.entries(ACCOUNT_ID, 1)).map((entry) => entry.id)).toEqual([charge?.id])
      expect(await store.ledger.entries('account_2', 10)).toEqual([])
    })

    check('sums up to balance and held together after every step', async (store) => {
      const steps: (() => unknown)[] = [
        () => fundedLedger(store, 1_000n),
        () => placeHold(store, { amount: 400n }),
        () => placeHold(store, { holdId: 'hold_2', amount: 300n }),
        () => settleHold(store, 900n),
        () => store.ledger.void('hold_2', NOW_MS),
      ]
      for (const step of steps) {
        await step()
        const { balance = 0n, held = 0n } = await balanceOf(store)
        expect(await sumOfEntries(store)).toEqual(balance + held)
      }
    })
  })

  describeLedgerBooks(runner, subject)
  describeLedgerClaims(runner, subject)
  describeLedgerSpending(runner, subject)
  describeLedgerBilling(runner, subject)
}
