import { charged, moneyOf, NOW, newestKinds } from './books-example.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import { ACCOUNT_ID, exampleReservation, fundedLedger, type LedgerStore } from './store-example.ts'

/** Tests what a ledger guarantees about credits that expire. */
export function describeExpiringCredits(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<LedgerStore>,
): void {
  const check = (name: string, body: (store: LedgerStore) => Promise<void>) => it(name, () => withDriver(subject, body))
  const give = async ({ ledger }: LedgerStore, creditId: string, amount: bigint, expiresAtMs?: number) =>
    ledger.credit({ creditId, accountId: ACCOUNT_ID, amount, description: 'gift', expiresAtMs }, NOW)
  const hold = async ({ ledger }: LedgerStore, holdId: string, amount: bigint, nowMs: number) =>
    (await ledger.reserve(exampleReservation({ holdId, amount, expiresAtMs: nowMs + 900_000 }), nowMs)).status
  const settle = async ({ ledger }: LedgerStore, holdId: string, amount: bigint, nowMs: number) =>
    ledger.settle({ holdId, amount, description: 'chat' }, nowMs)

  describe('ledger contract: credits that expire', () => {
    check('takes what was not spent of a credit when it expires, once', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_1', 300n, NOW + 10)
      await charged(store, 'hold_1', 120n)
      expect(await store.ledger.expireCredits(NOW + 9, 10)).toEqual(0)
      expect(await store.ledger.expireCredits(NOW + 10, 10)).toEqual(1)
      expect(await store.ledger.expireCredits(NOW + 10, 10)).toEqual(0)
      const [line] = await store.ledger.entries(ACCOUNT_ID, 1)
      expect([line?.kind, line?.amount, line?.operationId, line?.balanceAfter]).toEqual([
        'expiry',
        -180n,
        'gift_1',
        1_000n,
      ])
      expect(await moneyOf(store)).toEqual({ balance: 1_000n, held: 0n, owed: 0n })
    })

    check('spends what expires first first, and money that does not expire last', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_late', 200n, NOW + 20)
      await give(store, 'gift_soon', 100n, NOW + 10)
      await charged(store, 'hold_1', 150n)
      expect(await store.ledger.expireCredits(NOW + 30, 10)).toEqual(1)
      expect(await newestKinds(store, 2)).toEqual([
        ['expiry', -150n],
        ['charge', -150n],
      ])
      expect((await moneyOf(store))['balance']).toEqual(1_000n)
    })

    check('is spent by no call that begins after the expiry, swept or not', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW)
      await give(store, 'gift_1', 300n, NOW + 10)
      expect(await hold(store, 'hold_1', 100n, NOW + 9)).toEqual('held')
      expect(await hold(store, 'hold_2', 1n, NOW + 10)).toEqual('insufficient_balance')
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 100n, owed: 0n })
    })

    check('expires at once for a metered account, whose calls hold no balance', async (store) => {
      await fundedLedger(store, 50n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'metered' })
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 250n, NOW)
      await hold(store, 'hold_2', 250n, NOW)
      await settle(store, 'hold_1', 200n, NOW + 9)
      await settle(store, 'hold_2', 80n, NOW + 10)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 30n })
      expect(await newestKinds(store, 4)).toEqual([
        ['owed', 0n],
        ['charge', -50n],
        ['expiry', -100n],
        ['charge', -200n],
      ])
      expect(await store.ledger.expireCredits(NOW + 10, 10)).toEqual(0)
    })

    check('pays for calls that began before the expiry; what they give back expires then', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 250n, NOW)
      await store.ledger.expireCredits(NOW + 10, 10)
      expect(await moneyOf(store)).toEqual({ balance: 1_000n, held: 250n, owed: 0n })
      await hold(store, 'hold_2', 70n, NOW + 11)
      await settle(store, 'hold_2', 60n, NOW + 12)
      expect(await moneyOf(store)).toEqual({ balance: 940n, held: 250n, owed: 0n })
      await settle(store, 'hold_1', 200n, NOW + 13)
      expect(await newestKinds(store, 4)).toEqual([
        ['expiry', -50n],
        ['charge', -200n],
        ['charge', -60n],
        ['expiry', -50n],
      ])
      expect(await moneyOf(store)).toEqual({ balance: 940n, held: 0n, owed: 0n })
    })

    check('expires with the hold that is voided or expires after it', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW)
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 100n, NOW)
      await hold(store, 'hold_2', 200n, NOW)
      await store.ledger.void('hold_1', NOW + 20)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 200n, owed: 0n })
      expect(await store.ledger.expire(NOW + 900_000, 10)).toEqual(1)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 0n })
    })

    check('is not charged beyond a hold once it has expired: the account owes', async (store) => {
      await store.ledger.createAccount({ id: ACCOUNT_ID }, NOW)
      await give(store, 'gift_1', 300n, NOW + 10)
      await hold(store, 'hold_1', 100n, NOW)
      expect(await settle(store, 'hold_1', 250n, NOW + 10)).toEqual({ resolved: true, charged: 100n, shortfall: 150n })
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 150n })
    })

    check('pays what is owed, and only its rest expires', async (store) => {
      await fundedLedger(store, 100n)
      await charged(store, 'hold_1', 250n)
      await give(store, 'gift_1', 200n, NOW + 10)
      expect(await moneyOf(store)).toEqual({ balance: 50n, held: 0n, owed: 0n })
      await store.ledger.expireCredits(NOW + 10, 10)
      expect(await moneyOf(store)).toEqual({ balance: 0n, held: 0n, owed: 0n })
      expect(await newestKinds(store, 1)).toEqual([['expiry', -50n]])
    })

    check('is spent by debits before other money', async (store) => {
      await fundedLedger(store, 100n)
      await give(store, 'gift_1', 200n, NOW + 10)
      await store.ledger.adjust({ adjustmentId: 'a', accountId: ACCOUNT_ID, amount: -150n, description: 'x' }, NOW)
      await store.ledger.expireCredits(NOW + 10, 10)
      expect(await moneyOf(store)).toEqual({ balance: 100n, held: 0n, owed: 0n })
    })

    check('expires once when many sweep and settle at the same time', async (store) => {
      await fundedLedger(store, 1_000n)
      await give(store, 'gift_1', 500n, NOW + 10)
      for (let index = 0; index < 10; index++) await hold(store, `hold_${index}`, 40n, NOW)
      await Promise.all([
        ...Array.from({ length: 10 }, async (_, index) => settle(store, `hold_${index}`, 30n, NOW + 10)),
        ...Array.from({ length: 10 }, async () => store.ledger.expireCredits(NOW + 10, 10)),
      ])
      expect(await moneyOf(store)).toEqual({ balance: 1_000n, held: 0n, owed: 0n })
    })
  })
}
