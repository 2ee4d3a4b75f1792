import type { Reservation } from '../../stores/ledger.ts'
import type { SpendingCap } from '../../stores/principal.ts'
import {
  ACCOUNT_ID,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleClaim,
  exampleKey,
  exampleReservation,
  fundedLedger,
  type LedgerStore,
  NOW_MS,
  settleHold,
} from './contract-runner.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const HELD = { status: 'held' }
// Counter of June 2025.
const KEY_COUNTER = 'key:key_1:2025-06'
const REFUSED = { status: 'spending_limit', counter: KEY_COUNTER }
const A_DAY = 'account:account_1:2025-06-15'

/** Tests what a ledger guarantees about the caps of accounts and keys. */
export function describeLedgerSpending(runner: ContractRunner, subject: ContractSubject<LedgerStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const reserve = async (
    { ledger }: LedgerStore,
    holdId: string,
    amount: bigint,
    { nowMs = NOW_MS, ...more }: Partial<Reservation> & { readonly nowMs?: number } = {},
  ) => ledger.reserve(exampleReservation({ holdId, amount, expiresAtMs: nowMs + 900_000, ...more }), nowMs)
  /** Creates an account with money, and a key with a cap of 1,000 per month. */
  const capped = async (store: LedgerStore, balance = 10_000n) => {
    await fundedLedger(store, balance)
    await store.keys.insert(exampleKey({ spendingCap: monthly(1_000n) }))
  }
  /** Expects that the cap leaves room for this amount, and for no more. */
  const expectRoom = async (store: LedgerStore, amount: bigint): Promise<void> => {
    expect(await reserve(store, 'hold_above', amount + 1n)).toEqual(REFUSED)
    expect(await reserve(store, 'hold_exact', amount)).toEqual(HELD)
  }
  const settle = (store: LedgerStore, holdId: string, amount: bigint, nowMs = NOW_MS) =>
    settleHold(store, amount, { holdId }, nowMs)

  describe('ledger contract: spending caps', () => {
    check('counts a hold at once and refuses what would pass the cap, naming it', async (store) => {
      await capped(store)
      expect(await reserve(store, 'hold_1', 600n)).toEqual(HELD)
      await expectRoom(store, 400n)
      expect(await reserve(store, 'hold_4', 1n)).toEqual(REFUSED)
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(1_000n)
    })

    check('admits exactly what fits of many reservations at once', async (store) => {
      await capped(store)
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => reserve(store, `hold_${index}`, 90n)))
      expect(outcomes.filter((outcome) => outcome.status === 'held').length).toEqual(11)
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(990n)
    })

    check('counts the keys of an account together under its cap, known to the store alone', async (store) => {
      await fundedLedger(store, 10_000n)
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 300n, period: 'day' } })
      const keys = ['key_1', 'key_2', 'session:7', 'key_1', 'key_2']
      const outcomes = await Promise.all(keys.map((keyId, index) => reserve(store, `hold_${index}`, 100n, { keyId })))
      expect(outcomes.filter((outcome) => outcome.status === 'held').length).toEqual(3)
      expect(outcomes.at(-1)).toEqual({ status: 'spending_limit', counter: A_DAY })
    })

    check('knows what was spent before there was a cap, by account and by key', async (store) => {
      await fundedLedger(store, 10_000n)
      await store.keys.insert(exampleKey())
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 700n)
      await reserve(store, 'hold_2', 250n)
      await store.keys.update('key_1', { spendingCap: monthly(1_000n) })
      expect(await reserve(store, 'hold_3', 51n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_4', 51n, { keyId: 'key_2' })).toEqual(HELD)
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 1_001n, period: 'day' } })
      expect(await reserve(store, 'hold_5', 1n, { keyId: 'key_2' })).toEqual({
        status: 'spending_limit',
        counter: A_DAY,
      })
      await store.ledger.updateAccount(ACCOUNT_ID, { spendingCap: { amount: 1_002n, period: 'day' } })
      expect(await reserve(store, 'hold_6', 1n, { keyId: 'key_2' })).toEqual(HELD)
    })

    check('counts a repeated reservation once, and repeats a refusal', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      expect(await reserve(store, 'hold_1', 600n)).toEqual(HELD)
      expect(await reserve(store, 'hold_2', 500n)).toEqual(REFUSED)
      await store.ledger.void('hold_1', NOW_MS)
      expect(await reserve(store, 'hold_2', 500n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_3', 1_000n)).toEqual(HELD)
    })

    check('counts what was charged once the hold is settled', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 250n)
      await expectRoom(store, 750n)
    })

    check('counts a charge above its hold, the owed part included, and its repayment no more', async (store) => {
      await capped(store, 900n)
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 1_500n)
      const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 5_000n, description: 'more' }
      await store.ledger.credit(credit, NOW_MS)
      await store.keys.update('key_1', { spendingCap: monthly(1_600n) })
      await expectRoom(store, 100n)
    })

    check('gives the whole hold back when it is voided or expires, once', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      await store.ledger.void('hold_1', NOW_MS)
      await store.ledger.void('hold_1', NOW_MS)
      await reserve(store, 'hold_2', 600n, { expiresAtMs: NOW_MS - 1 })
      await store.ledger.expire(NOW_MS, 10)
      await expectRoom(store, 1_000n)
    })

    check('counts the charge of a hold that had expired', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n, { expiresAtMs: NOW_MS - 1 })
      await store.ledger.expire(NOW_MS, 10)
      await settle(store, 'hold_1', 400n)
      await expectRoom(store, 600n)
    })

    check('leaves everything as it was when a cap refuses, the Idempotency-Key included', async (store) => {
      await capped(store)
      const claim = exampleClaim()
      expect(await reserve(store, 'hold_1', 1_500n, { claim })).toEqual(REFUSED)
      const { balance, held } = (await store.ledger.account(ACCOUNT_ID)) ?? {}
      expect({ balance, held }).toEqual({ balance: 10_000n, held: 0n })
      expect(await store.idempotency.claim(claim, NOW_MS)).toEqual({ status: 'claimed' })
      expect(await reserve(store, 'hold_2', 1_000n)).toEqual(HELD)
    })

    check('counts nothing when the balance refuses', async (store) => {
      await capped(store, 500n)
      expect(await reserve(store, 'hold_1', 600n)).toEqual({ status: 'insufficient_balance' })
      const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 5_000n, description: 'more' }
      await store.ledger.credit(credit, NOW_MS)
      expect(await reserve(store, 'hold_2', 1_000n)).toEqual(HELD)
    })

    check('lets a hold of zero pass a cap that is reached', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 1_000n)
      expect(await reserve(store, 'hold_2', 0n)).toEqual(HELD)
    })

    check('checks the caps of the reservation too, by the same counts', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 300n)
      const caps = { key: { amount: 500n, period: 'day' as const }, account: monthly(400n) }
      const refused = await reserve(store, 'hold_2', 150n, { caps })
      expect(refused).toEqual({ status: 'spending_limit', counter: 'account:account_1:2025-06' })
      expect(await reserve(store, 'hold_3', 201n, { caps: { key: caps.key } })).toEqual({
        status: 'spending_limit',
        counter: 'key:key_1:2025-06-15',
      })
      expect(await reserve(store, 'hold_4', 100n, { caps })).toEqual(HELD)
    })

    check('tells what an account and its keys have spent, refunds taken off', async (store) => {
      await capped(store)
      await reserve(store, 'hold_1', 600n)
      await settle(store, 'hold_1', 250n)
      await reserve(store, 'hold_2', 100n)
      await reserve(store, 'hold_3', 70n, { keyId: 'key_2' })
      const chargeId = (await store.ledger.entries(ACCOUNT_ID, 1))[0]!.id
      const refund = { refundId: 'refund_1', chargeId, amount: 50n, description: 'bad' }
      await store.ledger.refund(refund, NOW_MS)
      const both = (charged: bigint, held: bigint) => {
        return { period: 20250615, chargedDay: charged, chargedMonth: charged, heldDay: held, heldMonth: held }
      }
      expect(await store.ledger.spending(ACCOUNT_ID, ['key_2', 'key_none', 'key_1'])).toEqual({
        account: both(200n, 170n),
        keys: [both(0n, 70n), { ...both(0n, 0n), period: 0 }, both(200n, 100n)],
      })
      expect(await store.ledger.spending('nobody', ['key_1'])).toEqual(undefined)
    })

    check('starts a new day from zero, and the month goes on', async (store) => {
      await capped(store)
      const daily = { key: { amount: 700n, period: 'day' as const } }
      const nowMs = NOW_MS + DAY_MS
      await reserve(store, 'hold_1', 600n)
      await reserve(store, 'hold_2', 100n)
      await settle(store, 'hold_1', 300n)
      expect(await reserve(store, 'hold_3', 601n, { nowMs, caps: daily })).toEqual(REFUSED)
      expect(await reserve(store, 'hold_4', 600n, { nowMs, caps: daily })).toEqual(HELD)
      // The hold is of yesterday: its end frees nothing of today, but part of the month.
      await store.ledger.void('hold_2', nowMs)
      const today = { status: 'spending_limit', counter: 'key:key_1:2025-06-16' }
      expect(await reserve(store, 'hold_5', 101n, { nowMs, caps: daily })).toEqual(REFUSED)
      await store.keys.update('key_1', { spendingCap: null })
      expect(await reserve(store, 'hold_6', 101n, { nowMs, caps: daily })).toEqual(today)
      expect(await reserve(store, 'hold_7', 100n, { nowMs, caps: daily })).toEqual(HELD)
    })

    check('starts a new month from zero, which earlier holds do not touch', async (store) => {
      await capped(store)
      const nowMs = NOW_MS + 20 * DAY_MS
      await reserve(store, 'hold_1', 1_000n)
      expect(await reserve(store, 'hold_2', 1_000n, { nowMs })).toEqual(HELD)
      await settle(store, 'hold_1', 900n, nowMs)
      expect(await reserve(store, 'hold_3', 1n, { nowMs })).toEqual({
        status: 'spending_limit',
        counter: 'key:key_1:2025-07',
      })
    })
  })
}

function monthly(amount: bigint): SpendingCap {
  return { amount, period: 'month' }
}
