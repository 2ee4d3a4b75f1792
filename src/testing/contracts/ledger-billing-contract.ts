import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import {
  ACCOUNT_ID,
  EXAMPLE_NOW_MS,
  exampleAnswer,
  exampleClaim,
  exampleKey,
  exampleReservation,
  fundedLedger,
  type LedgerStore,
} from './store-example.ts'

const HELD = { status: 'held' }
const FROZEN = { reason: 'chargeback', atMs: EXAMPLE_NOW_MS }
const THRESHOLDS = { caps: [50, 80, 100], balance: [50, 80, 100] }

/** Tests what a ledger guarantees about metered and frozen accounts, and about thresholds. */
export function describeLedgerBilling(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<LedgerStore>,
): void {
  const check = (name: string, body: (store: LedgerStore) => Promise<void>) => it(name, () => withDriver(subject, body))
  const metered = async ({ ledger }: LedgerStore, creditLimit?: bigint) =>
    ledger.createAccount({ id: ACCOUNT_ID, ...(creditLimit === undefined ? {} : { creditLimit }) }, EXAMPLE_NOW_MS)
  const reserve = async ({ ledger }: LedgerStore, holdId: string, amount: bigint) =>
    ledger.reserve(exampleReservation({ holdId, amount, billing: 'metered' }), EXAMPLE_NOW_MS)
  const settle = async ({ ledger }: LedgerStore, holdId: string, amount: bigint) =>
    ledger.settle({ holdId, amount, description: 'chat', thresholds: THRESHOLDS }, EXAMPLE_NOW_MS)
  const charge = async ({ ledger }: LedgerStore, holdId: string, amount: bigint) => {
    await ledger.reserve(exampleReservation({ holdId, amount }), EXAMPLE_NOW_MS)
    const settlement = { holdId, amount, description: 'chat', thresholds: THRESHOLDS }
    const { crossings = [] } = await ledger.settle(settlement, EXAMPLE_NOW_MS)
    return crossings.map(({ of, percent, used, bound }) => `${of} ${percent}: ${used} of ${bound}`)
  }
  const moneyOf = async ({ ledger }: LedgerStore) => {
    const { balance, held, owed, creditHeld } = (await ledger.account(ACCOUNT_ID))!
    const lines = await ledger.entries(ACCOUNT_ID, 100)
    expect(lines.reduce((sum, line) => sum + line.amount, 0n)).toEqual(balance + held)
    expect(lines.reduce((sum, line) => sum + line.owed, 0n)).toEqual(owed)
    return { balance, held, owed, creditHeld }
  }

  describe('ledger contract: metered accounts', () => {
    check('hold and charge without a balance, and owe what was charged', async (store) => {
      await metered(store)
      expect(await reserve(store, 'hold_1', 400n)).toEqual(HELD)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 0n, creditHeld: 400n })
      expect(await settle(store, 'hold_1', 430n)).toEqual({ resolved: true, charged: 430n, shortfall: 0n })
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 430n, creditHeld: 0n })
      expect(await reserve(store, 'hold_2', 400n)).toEqual(HELD)
      await store.ledger.void('hold_2', EXAMPLE_NOW_MS)
      await reserve(store, 'hold_3', 400n)
      await store.ledger.expire(EXAMPLE_NOW_MS + 900_001, 10)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 430n, creditHeld: 0n })
    })

    check('owe no more than their credit limit, of many reservations at once', async (store) => {
      await metered(store, 1_000n)
      const outcomes = await Promise.all(Array.from({ length: 30 }, (_, index) => reserve(store, `hold_${index}`, 90n)))
      expect(outcomes.filter(({ status }) => status === 'held').length).toEqual(11)
      expect(outcomes.at(-1)).toEqual({ status: 'credit_limit' })
      await settle(store, 'hold_0', 40n)
      expect(await reserve(store, 'hold_30', 61n)).toEqual({ status: 'credit_limit' })
      expect(await reserve(store, 'hold_31', 60n)).toEqual(HELD)
    })

    check('spend a balance first, and a credit pays what they owe', async (store) => {
      await fundedLedger(store, 300n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'metered', creditLimit: 200n })
      const prepaidGateway = exampleReservation({ holdId: 'hold_1', amount: 500n, billing: 'prepaid' })
      expect(await store.ledger.reserve(prepaidGateway, EXAMPLE_NOW_MS)).toEqual(HELD)
      expect(await reserve(store, 'hold_2', 1n)).toEqual({ status: 'credit_limit' })
      await settle(store, 'hold_1', 450n)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 150n, creditHeld: 0n })
      const credit = { creditId: 'invoice_1', accountId: ACCOUNT_ID, amount: 170n, description: 'paid' }
      await store.ledger.credit(credit, EXAMPLE_NOW_MS)
      expect(await moneyOf(store)).toEqual({ balance: 20n, held: 0n, owed: 0n, creditHeld: 0n })
    })

    check('are in arrears with what they owe once they are prepaid', async (store) => {
      await metered(store)
      await reserve(store, 'hold_1', 400n)
      await settle(store, 'hold_1', 400n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'prepaid' })
      expect(await reserve(store, 'hold_2', 1n)).toEqual({ status: 'in_arrears' })
    })
  })

  describe('ledger contract: frozen accounts', () => {
    check('hold nothing and replay nothing, and what was held is settled', async (store) => {
      await fundedLedger(store, 1_000n)
      const claim = exampleClaim()
      await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
      await store.ledger.updateAccount(ACCOUNT_ID, { frozen: FROZEN })
      const settlement = { holdId: 'hold_1', amount: 60n, description: 'chat', answer: exampleAnswer('done') }
      expect((await store.ledger.settle(settlement, EXAMPLE_NOW_MS)).charged).toEqual(60n)
      const again = exampleReservation({ holdId: 'hold_2', claim })
      expect(await store.ledger.reserve(again, EXAMPLE_NOW_MS)).toEqual({ status: 'account_frozen' })
      expect(await moneyOf(store)).toEqual({ balance: 940n, held: 0n, owed: 0n, creditHeld: 0n })
      await store.ledger.updateAccount(ACCOUNT_ID, { frozen: null })
      const third = await store.ledger.reserve({ ...again, holdId: 'hold_3' }, EXAMPLE_NOW_MS)
      expect(third.status).toEqual('replay')
    })

    check('are refused whatever they could pay', async (store) => {
      await metered(store)
      await store.ledger.updateAccount(ACCOUNT_ID, { frozen: FROZEN })
      expect(await reserve(store, 'hold_1', 0n)).toEqual({ status: 'account_frozen' })
    })
  })

  describe('ledger contract: thresholds', () => {
    check(
      'reports each balance threshold once, by the charge that passes it after the latest credit',
      async (store) => {
        await fundedLedger(store, 1_000n)
        expect(await charge(store, 'hold_1', 499n)).toEqual([])
        expect(await charge(store, 'hold_2', 1n)).toEqual(['balance 50: 500 of 1000'])
        expect(await charge(store, 'hold_3', 100n)).toEqual([])
        const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 600n, description: 'more' }
        await store.ledger.credit(credit, EXAMPLE_NOW_MS)
        expect(await charge(store, 'hold_4', 1_000n)).toEqual([
          'balance 50: 1000 of 1000',
          'balance 80: 1000 of 1000',
          'balance 100: 1000 of 1000',
        ])
      },
    )

    check('reports a threshold once for simultaneous charges', async (store) => {
      await fundedLedger(store, 1_000n)
      const told = await Promise.all(Array.from({ length: 10 }, (_, index) => charge(store, `hold_${index}`, 100n)))
      expect(
        told
          .flat()
          .map((line) => line.slice(0, 11))
          .sort(),
      ).toEqual(['balance 100', 'balance 50:', 'balance 80:'])
    })

    check('reports thresholds of account and key caps by the charges of the period', async (store) => {
      await fundedLedger(store, 10_000n)
      await store.keys.insert(exampleKey({ spendingCap: { amount: 500n, period: 'month' } }))
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 1_000n, period: 'day' } })
      expect(await charge(store, 'hold_1', 240n)).toEqual([])
      expect(await charge(store, 'hold_2', 200n)).toEqual(['key_cap 50: 440 of 500', 'key_cap 80: 440 of 500'])
      const tomorrow = EXAMPLE_NOW_MS + 24 * 60 * 60 * 1000
      const late = exampleReservation({ holdId: 'hold_3', amount: 60n })
      await store.ledger.reserve(late, EXAMPLE_NOW_MS)
      await store.ledger.reserve({ ...late, holdId: 'hold_4', keyId: 'key_2', amount: 1n }, tomorrow)
      const settlement = { holdId: 'hold_3', amount: 60n, description: 'chat', thresholds: THRESHOLDS }
      const { crossings } = await store.ledger.settle(settlement, tomorrow)
      expect(crossings).toEqual([{ of: 'key_cap', period: 'month', percent: 100, bound: 500n, used: 500n }])
    })

    check('reports thresholds of a credit limit by the debt', async (store) => {
      await metered(store, 1_000n)
      await reserve(store, 'hold_1', 900n)
      const { crossings } = await settle(store, 'hold_1', 600n)
      expect(crossings).toEqual([{ of: 'credit_limit', period: undefined, percent: 50, bound: 1_000n, used: 600n }])
    })
  })
}
