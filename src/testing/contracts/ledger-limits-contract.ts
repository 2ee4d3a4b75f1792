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

/** Tests what ledger and idempotency store of one driver guarantee together: hold and key change in one step. */
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
      await store.idempotency.complete(claim, exampleAnswer('accepted'), EXAMPLE_NOW_MS)
      await store.ledger.void('hold_1', EXAMPLE_NOW_MS)
      expect((await store.idempotency.claim(claim, EXAMPLE_NOW_MS)).status).toEqual('replay')
    })

    for (const answer of [undefined, exampleAnswer('late')]) {
      const end = answer === undefined ? 'frees' : 'completes'
      check(
        `${end} no key that an equal request has claimed after it had expired, when a hold ends late`,
        async (store) => {
          await fundedLedger(store, 1_000n)
          const nowMs = claim.expiresAtMs + 1
          const expiresAtMs = nowMs + 86_400_000
          const first = { ...claim, claimedBy: 'hold_1' }
          await store.ledger.reserve(exampleReservation({ claim: first, expiresAtMs }), EXAMPLE_NOW_MS)
          const second = { ...claim, expiresAtMs, claimedBy: 'hold_2' }
          const held = await store.ledger.reserve(
            exampleReservation({ holdId: 'hold_2', claim: second, expiresAtMs }),
            nowMs,
          )
          await store.ledger.settle({ holdId: 'hold_1', amount: 10n, description: 'late', answer }, nowMs)
          expect(held).toEqual({ status: 'held' })
          expect(await store.idempotency.claim(claim, nowMs)).toEqual({ status: 'in_flight' })
        },
      )
    }

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
