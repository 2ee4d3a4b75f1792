import { type ContractRunner, type ContractSubject, failureName, withDriver } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleReservation, fundedLedger, type LedgerStore } from './store-example.ts'

const LARGEST = 2n ** 63n - 1n

/** Tests what a ledger guarantees about accounts, their credits, and invalid amounts. */
export function describeLedgerAccounts(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<LedgerStore>,
): void {
  const check = (name: string, body: (store: LedgerStore) => Promise<void>) => it(name, () => withDriver(subject, body))
  const balanceOf = async ({ ledger }: LedgerStore) => {
    const account = await ledger.account(ACCOUNT_ID)
    return { balance: account?.balance, held: account?.held }
  }
  const credit = { creditId: 'credit_1', accountId: ACCOUNT_ID, amount: 1_000n, description: 'start' }

  describe('ledger contract: accounts and credits', () => {
    check('makes an account once and gives it as it is afterwards', async ({ ledger }) => {
      const made = await ledger.createAccount({ id: ACCOUNT_ID, tier: 'free' }, EXAMPLE_NOW_MS)
      const again = await ledger.createAccount({ id: ACCOUNT_ID, tier: 'paid' }, EXAMPLE_NOW_MS + 5)
      const expected = {
        id: ACCOUNT_ID,
        balance: 0n,
        held: 0n,
        owed: 0n,
        creditHeld: 0n,
        tier: 'free',
        spendingCap: undefined,
        name: undefined,
        plan: undefined,
        billing: undefined,
        creditLimit: undefined,
        frozen: undefined,
        createdAtMs: EXAMPLE_NOW_MS,
      }
      expect(made).toEqual(expected)
      expect(again).toEqual(expected)
      expect(await ledger.account('account_2')).toEqual(undefined)
    })

    check('keeps the spending cap that an account was made with', async ({ ledger }) => {
      const spendingCap = { amount: 9_007_199_254_740_993n, period: 'month' as const }
      const made = await ledger.createAccount({ id: ACCOUNT_ID, spendingCap }, EXAMPLE_NOW_MS)
      expect({ tier: made.tier, spendingCap: made.spendingCap }).toEqual({ tier: 'paid', spendingCap })
      expect((await ledger.account(ACCOUNT_ID))?.spendingCap).toEqual(spendingCap)
    })

    check('changes what is given of an account and leaves the rest', async (store) => {
      await fundedLedger(store, 1_000n)
      const spendingCap = { amount: 500n, period: 'day' as const }
      const capped = await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap })
      expect({ tier: capped?.tier, spendingCap: capped?.spendingCap, balance: capped?.balance }).toEqual({
        tier: 'paid',
        spendingCap,
        balance: 1_000n,
      })
      const freed = await store.ledger.updateAccount(ACCOUNT_ID, { tier: 'free' })
      expect({ tier: freed?.tier, spendingCap: freed?.spendingCap }).toEqual({ tier: 'free', spendingCap })
      expect(await store.ledger.account(ACCOUNT_ID)).toEqual(freed)
    })

    check(
      'keeps name, plan, billing, credit limit and freeze of an account, and takes them away',
      async ({ ledger }) => {
        const facts = { name: 'Acme', plan: 'pro', billing: 'metered' as const, creditLimit: 9_007_199_254_740_993n }
        const made = await ledger.createAccount({ id: ACCOUNT_ID, ...facts }, EXAMPLE_NOW_MS)
        const frozen = { reason: 'unpaid', atMs: EXAMPLE_NOW_MS }
        expect(await ledger.updateAccount(ACCOUNT_ID, { frozen })).toEqual({ ...made, ...facts, frozen })
        expect(await ledger.account(ACCOUNT_ID)).toEqual({ ...made, ...facts, frozen })
        const none = { name: null, plan: null, billing: null, creditLimit: null, frozen: null }
        const absent = {
          name: undefined,
          plan: undefined,
          billing: undefined,
          creditLimit: undefined,
          frozen: undefined,
        }
        expect(await ledger.updateAccount(ACCOUNT_ID, none)).toEqual({ ...made, ...absent })
      },
    )

    check('takes the cap of an account away', async ({ ledger }) => {
      await ledger.createAccount({ id: ACCOUNT_ID, spendingCap: { amount: 500n, period: 'day' } }, EXAMPLE_NOW_MS)
      expect((await ledger.updateAccount(ACCOUNT_ID, { spendingCap: null }))?.spendingCap).toEqual(undefined)
      expect((await ledger.account(ACCOUNT_ID))?.spendingCap).toEqual(undefined)
    })

    check('changes nothing about an account that does not exist', async ({ ledger }) => {
      expect(await ledger.updateAccount(ACCOUNT_ID, { tier: 'free' })).toEqual(undefined)
      expect(await ledger.account(ACCOUNT_ID)).toEqual(undefined)
    })

    check('adds a credit once for each credit id', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, EXAMPLE_NOW_MS)
      expect(await store.ledger.credit(credit, EXAMPLE_NOW_MS)).toEqual(true)
      expect(await store.ledger.credit(credit, EXAMPLE_NOW_MS)).toEqual(false)
      expect(await balanceOf(store)).toEqual({ balance: 1_000n, held: 0n })
    })

    check('refuses a credit id that another account was credited with', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, EXAMPLE_NOW_MS)
      await store.ledger.createAccount({ id: 'account_2' }, EXAMPLE_NOW_MS)
      await store.ledger.credit(credit, EXAMPLE_NOW_MS)
      const other = { ...credit, accountId: 'account_2' }
      expect(await failureName(() => store.ledger.credit(other, EXAMPLE_NOW_MS))).toEqual('RangeError')
      expect((await store.ledger.account('account_2'))?.balance).toEqual(0n)
    })

    check('refuses a credit that is not above zero or is for nobody', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, EXAMPLE_NOW_MS)
      for (const wrong of [{ amount: 0n }, { amount: -1n }, { accountId: 'account_2' }]) {
        expect(await failureName(() => store.ledger.credit({ ...credit, ...wrong }, EXAMPLE_NOW_MS))).toEqual(
          'RangeError',
        )
      }
      expect(await store.ledger.credit(credit, EXAMPLE_NOW_MS)).toEqual(true)
    })

    check('keeps amounts beyond what a float can hold to the nano-dollar', async (store) => {
      await fundedLedger(store, 9_007_199_254_740_993n)
      expect(await balanceOf(store)).toEqual({ balance: 9_007_199_254_740_993n, held: 0n })
    })

    check('refuses amounts below zero and beyond 64 bits, and changes nothing', async (store) => {
      await fundedLedger(store, LARGEST - 10n)
      await store.ledger.reserve(exampleReservation({ amount: 400n }), EXAMPLE_NOW_MS)
      for (const amount of [-1n, LARGEST + 1n, 2n ** 64n + 5n]) {
        const reservation = exampleReservation({ holdId: 'hold_2', amount })
        const settlement = { holdId: 'hold_1', amount, description: 'chat' }
        expect(await failureName(() => store.ledger.reserve(reservation, EXAMPLE_NOW_MS))).toEqual('RangeError')
        expect(await failureName(() => store.ledger.settle(settlement, EXAMPLE_NOW_MS))).toEqual('RangeError')
      }
      for (const amount of [11n, LARGEST, LARGEST + 1n]) {
        const another = { ...credit, creditId: 'credit_2', amount }
        expect(await failureName(() => store.ledger.credit(another, EXAMPLE_NOW_MS))).toEqual('RangeError')
      }
      expect(await balanceOf(store)).toEqual({ balance: LARGEST - 410n, held: 400n })
      expect(await store.ledger.credit({ ...credit, creditId: 'credit_2', amount: 10n }, EXAMPLE_NOW_MS)).toEqual(true)
    })
  })
}
