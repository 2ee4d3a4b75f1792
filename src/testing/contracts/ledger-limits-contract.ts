import type { Reservation, SpendingLimit } from '../../stores/ledger.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import {
  ACCOUNT_ID,
  EXAMPLE_NOW_MS,
  exampleAnswer,
  exampleClaim,
  exampleReservation,
  fundedLedger,
  type LedgerStore,
  readableAnswer,
} from './store-example.ts'

/** What ledger and idempotency store of one driver guarantee together: hold and key change in one step. */
export function describeLedgerClaims(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<LedgerStore>,
): void {
  const check = (name: string, body: (store: LedgerStore) => Promise<void>) => it(name, () => withDriver(subject, body))
  const claim = exampleClaim()
  const other = exampleClaim({ fingerprint: 'b'.repeat(64) })

  describe('ledger contract: idempotency keys', () => {
    check('claims the key with the hold; the same key in flight holds nothing', async (store) => {
      await fundedLedger(store, 1_000n)
      expect(await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)).toEqual({ status: 'held' })
      const second = exampleReservation({ holdId: 'hold_2', claim })
      expect(await store.ledger.reserve(second, EXAMPLE_NOW_MS)).toEqual({ status: 'in_flight' })
      expect(await store.idempotency.claim(claim, EXAMPLE_NOW_MS)).toEqual({ status: 'in_flight' })
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(100n)
    })

    check('refuses the key with another body and holds nothing', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
      const second = exampleReservation({ holdId: 'hold_2', claim: other })
      expect(await store.ledger.reserve(second, EXAMPLE_NOW_MS)).toEqual({ status: 'mismatch' })
      expect((await store.ledger.account(ACCOUNT_ID))?.balance).toEqual(900n)
    })

    check(
      'stores the answer with the charge and replays it without holding, even on an empty balance',
      async (store) => {
        await fundedLedger(store, 100n)
        await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
        const answer = exampleAnswer('first')
        await store.ledger.settle({ holdId: 'hold_1', amount: 100n, description: 'chat', answer }, EXAMPLE_NOW_MS)
        const again = await store.ledger.reserve(exampleReservation({ holdId: 'hold_2', claim }), EXAMPLE_NOW_MS)
        expect(again.status === 'replay' && readableAnswer(again.answer)).toEqual(readableAnswer(answer))
        expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(0n)
      },
    )

    check('leaves the key free when the balance does not suffice', async (store) => {
      await fundedLedger(store, 50n)
      const refused = await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
      expect(refused).toEqual({ status: 'insufficient_balance' })
      expect(await store.idempotency.claim(other, EXAMPLE_NOW_MS)).toEqual({ status: 'claimed' })
    })

    check('frees the key when the hold is settled without an answer to keep', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
      await store.ledger.settle({ holdId: 'hold_1', amount: 40n, description: 'chat' }, EXAMPLE_NOW_MS)
      const second = exampleReservation({ holdId: 'hold_2', claim: other })
      expect(await store.ledger.reserve(second, EXAMPLE_NOW_MS)).toEqual({ status: 'held' })
    })

    check('frees the key when the hold is voided', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      const second = exampleReservation({ holdId: 'hold_2', claim: other })
      expect(await store.ledger.reserve(second, EXAMPLE_NOW_MS)).toEqual({ status: 'held' })
    })

    check('frees the key when the hold expires', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.reserve(exampleReservation({ claim, expiresAtMs: EXAMPLE_NOW_MS + 1 }), EXAMPLE_NOW_MS)
      await store.ledger.expire(EXAMPLE_NOW_MS + 2, 10)
      const second = exampleReservation({ holdId: 'hold_2', claim: other })
      expect(await store.ledger.reserve(second, EXAMPLE_NOW_MS + 2)).toEqual({ status: 'held' })
    })

    check('keeps an answer that was stored before the hold was voided', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
      await store.idempotency.complete(claim, exampleAnswer('accepted'))
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      expect((await store.idempotency.claim(claim, EXAMPLE_NOW_MS)).status).toEqual('replay')
    })

    check('stores no answer with a hold that had ended before', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.reserve(exampleReservation({ claim }), EXAMPLE_NOW_MS)
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      const late = { holdId: 'hold_1', amount: 10n, description: 'late', answer: exampleAnswer('late') }
      await store.ledger.settle(late, EXAMPLE_NOW_MS)
      expect(await store.idempotency.claim(claim, EXAMPLE_NOW_MS)).toEqual({ status: 'claimed' })
    })
  })
}

const HELD = { status: 'held' }
const KEY_COUNTER = 'key:key_1:2025-06'
const ACCOUNT_COUNTER = 'account:account_1:2025-06-15'
const REFUSED = { status: 'spending_limit', counter: KEY_COUNTER }

/** What a ledger guarantees about the spending limits that come with a reservation. */
export function describeLedgerSpending(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<LedgerStore>,
): void {
  const check = (name: string, body: (store: LedgerStore) => Promise<void>) => it(name, () => withDriver(subject, body))
  const reserve = async ({ ledger }: LedgerStore, holdId: string, amount: bigint, more: Partial<Reservation> = {}) =>
    ledger.reserve(exampleReservation({ holdId, amount, spendingLimits: [spendingLimit()], ...more }), EXAMPLE_NOW_MS)

  describe('ledger contract: spending limits', () => {
    check('counts a hold at once and refuses what would pass the limit, naming the counter', async (store) => {
      await fundedLedger(store, 10_000n)
      expect(await reserve(store, 'hold_1', 600n)).toEqual(HELD)
      expect(await reserve(store, 'hold_2', 401n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_3', 400n)).toEqual(HELD)
      expect(await reserve(store, 'hold_4', 1n)).toEqual(REFUSED)
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(1_000n)
    })

    check('admits exactly what fits of many reservations at once', async (store) => {
      await fundedLedger(store, 10_000n)
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => reserve(store, `hold_${index}`, 90n)))
      expect(outcomes.filter((outcome) => outcome.status === 'held').length).toEqual(11)
      expect((await store.ledger.account(ACCOUNT_ID))?.held).toEqual(990n)
    })

    check('counts a repeated reservation once, and repeats a refusal', async (store) => {
      await fundedLedger(store, 10_000n)
      await reserve(store, 'hold_1', 600n)
      expect(await reserve(store, 'hold_1', 600n)).toEqual(HELD)
      expect(await reserve(store, 'hold_2', 500n)).toEqual(REFUSED)
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      expect(await reserve(store, 'hold_2', 500n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_3', 1_000n)).toEqual(HELD)
    })

    check('corrects the counter to what was charged when the hold is settled', async (store) => {
      await fundedLedger(store, 10_000n)
      await reserve(store, 'hold_1', 600n)
      await store.ledger.settle({ holdId: 'hold_1', amount: 250n, description: 'chat' }, EXAMPLE_NOW_MS)
      expect(await reserve(store, 'hold_2', 751n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_3', 750n)).toEqual(HELD)
    })

    check(
      'counts a charge above its hold, the part that is owed included, and its repayment no more',
      async (store) => {
        await fundedLedger(store, 900n)
        await reserve(store, 'hold_1', 600n)
        await store.ledger.settle({ holdId: 'hold_1', amount: 1_500n, description: 'chat' }, EXAMPLE_NOW_MS)
        const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 5_000n, description: 'more' }
        await store.ledger.credit(credit, EXAMPLE_NOW_MS)
        const spendingLimits = [spendingLimit({ limit: 1_600n })]
        expect(await reserve(store, 'hold_2', 101n, { spendingLimits })).toEqual(REFUSED)
        expect(await reserve(store, 'hold_3', 100n, { spendingLimits })).toEqual(HELD)
      },
    )

    check('gives the whole hold back when it is voided', async (store) => {
      await fundedLedger(store, 10_000n)
      await reserve(store, 'hold_1', 600n)
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      expect(await reserve(store, 'hold_2', 1_001n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_3', 1_000n)).toEqual(HELD)
    })

    check('gives the whole hold back when it expires', async (store) => {
      await fundedLedger(store, 10_000n)
      await reserve(store, 'hold_1', 600n, { expiresAtMs: EXAMPLE_NOW_MS - 1 })
      await store.ledger.expire(EXAMPLE_NOW_MS, 10)
      expect(await reserve(store, 'hold_2', 1_001n)).toEqual(REFUSED)
      expect(await reserve(store, 'hold_3', 1_000n)).toEqual(HELD)
    })

    check('leaves everything as it was when one of several limits refuses, the key included', async (store) => {
      await fundedLedger(store, 10_000n)
      const claim = exampleClaim()
      const both = [spendingLimit({ counter: ACCOUNT_COUNTER, limit: 2_000n }), spendingLimit()]
      expect(await reserve(store, 'hold_1', 1_500n, { spendingLimits: both, claim })).toEqual(REFUSED)
      const { balance, held } = (await store.ledger.account(ACCOUNT_ID)) ?? {}
      expect({ balance, held }).toEqual({ balance: 10_000n, held: 0n })
      expect(await store.idempotency.claim(claim, EXAMPLE_NOW_MS)).toEqual({ status: 'claimed' })
      expect(await reserve(store, 'hold_2', 2_000n, { spendingLimits: both.slice(0, 1) })).toEqual(HELD)
    })

    check('counts nothing when the balance refuses', async (store) => {
      await fundedLedger(store, 500n)
      expect(await reserve(store, 'hold_1', 600n)).toEqual({ status: 'insufficient_balance' })
      const credit = { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 5_000n, description: 'more' }
      await store.ledger.credit(credit, EXAMPLE_NOW_MS)
      expect(await reserve(store, 'hold_2', 1_000n)).toEqual(HELD)
    })

    check('keeps counters of different names apart', async (store) => {
      await fundedLedger(store, 10_000n)
      await reserve(store, 'hold_1', 1_000n)
      const spendingLimits = [spendingLimit({ counter: 'key:key_1:2025-07' })]
      expect(await reserve(store, 'hold_2', 1_000n, { spendingLimits })).toEqual(HELD)
    })

    check('lets a hold of zero pass a counter that is full', async (store) => {
      await fundedLedger(store, 10_000n)
      await reserve(store, 'hold_1', 1_000n)
      expect(await reserve(store, 'hold_2', 0n)).toEqual(HELD)
    })

    check('takes the limit from the reservation, so that a changed cap holds at once', async (store) => {
      await fundedLedger(store, 10_000n)
      await reserve(store, 'hold_1', 1_000n)
      expect(await reserve(store, 'hold_2', 500n, { spendingLimits: [spendingLimit({ limit: 1_500n })] })).toEqual(HELD)
      expect(await reserve(store, 'hold_3', 1n, { spendingLimits: [spendingLimit({ limit: 900n })] })).toEqual(REFUSED)
    })

    check('starts from zero after a counter has expired, and earlier holds do not touch the new one', async (store) => {
      await fundedLedger(store, 10_000n)
      const later = EXAMPLE_NOW_MS + 20_000
      await reserve(store, 'hold_1', 1_000n)
      const next = exampleReservation({
        holdId: 'hold_2',
        amount: 1_000n,
        spendingLimits: [spendingLimit({ expiresAtMs: later + 10_000 })],
      })
      expect(await store.ledger.reserve(next, later)).toEqual(HELD)
      await store.ledger.void('hold_1', later)
      expect(await store.ledger.reserve({ ...next, holdId: 'hold_3', amount: 1n }, later)).toEqual(REFUSED)
    })
  })
}

function spendingLimit(overrides: Partial<SpendingLimit> = {}): SpendingLimit {
  return { counter: KEY_COUNTER, limit: 1_000n, expiresAtMs: EXAMPLE_NOW_MS + 10_000, ...overrides }
}
