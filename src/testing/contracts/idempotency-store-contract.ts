import type { IdempotencyStore } from '../../stores/idempotency-store.ts'
import {
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleAnswer,
  exampleClaim,
  NOW_MS,
  readableAnswer,
} from './contract-runner.ts'

/** One case for each guarantee of {@link IdempotencyStore}. */
export function describeIdempotencyStore(runner: ContractRunner, subject: ContractSubject<IdempotencyStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const pendingUntilMs = NOW_MS + 900_000

  describe('idempotency store contract', () => {
    check('lets the first request claim an unknown key', async (store) => {
      expect(await store.claim(exampleClaim(), NOW_MS)).toEqual({ status: 'claimed' })
    })

    check('says that the same key is in flight until it is answered', async (store) => {
      await store.claim(exampleClaim(), NOW_MS)
      expect(await store.claim(exampleClaim(), NOW_MS + 1)).toEqual({ status: 'in_flight' })
    })

    check('replays the stored answer, status, headers and every byte', async (store) => {
      await store.claim(exampleClaim(), NOW_MS)
      await store.complete(exampleClaim(), exampleAnswer('first'), NOW_MS)
      const found = await store.claim(exampleClaim(), NOW_MS + 1)
      expect(found.status).toEqual('replay')
      expect(found.status === 'replay' && readableAnswer(found.answer)).toEqual(readableAnswer(exampleAnswer('first')))
    })

    check('refuses the key with another body, in flight and answered', async (store) => {
      const other = exampleClaim({ fingerprint: 'b'.repeat(64) })
      await store.claim(exampleClaim(), NOW_MS)
      expect(await store.claim(other, NOW_MS)).toEqual({ status: 'mismatch' })
      await store.complete(exampleClaim(), exampleAnswer('first'), NOW_MS)
      expect(await store.claim(other, NOW_MS)).toEqual({ status: 'mismatch' })
    })

    check('keeps the keys of different accounts apart', async (store) => {
      await store.claim(exampleClaim({ accountId: 'account_1', key: '2x' }), NOW_MS)
      const other = exampleClaim({ accountId: 'account_12', key: 'x' })
      expect(await store.claim(other, NOW_MS)).toEqual({ status: 'claimed' })
    })

    check('grants exactly one of many equal claims at once', async (store) => {
      const found = await Promise.all(Array.from({ length: 50 }, async () => store.claim(exampleClaim(), NOW_MS)))
      expect(found.filter((result) => result.status === 'claimed').length).toEqual(1)
      expect(found.filter((result) => result.status === 'in_flight').length).toEqual(49)
    })

    check('gives a key in flight again to the request that claimed it, and to no other', async (store) => {
      const own = exampleClaim({ claimedBy: 'req_1' })
      await store.claim(own, NOW_MS)
      expect(await store.claim(own, NOW_MS + 1)).toEqual({ status: 'claimed' })
      for (const other of [exampleClaim({ claimedBy: 'req_2' }), exampleClaim()])
        expect(await store.claim(other, NOW_MS + 1)).toEqual({ status: 'in_flight' })
      await store.complete(own, exampleAnswer('first'), NOW_MS)
      expect((await store.claim(own, NOW_MS + 1)).status).toEqual('replay')
    })

    check('gives a key whose claimer is not known to nobody again', async (store) => {
      await store.claim(exampleClaim(), NOW_MS)
      const later = exampleClaim({ claimedBy: 'req_1' })
      expect(await store.claim(later, NOW_MS)).toEqual({ status: 'in_flight' })
      await store.release(exampleClaim())
      expect(await store.claim(later, NOW_MS)).toEqual({ status: 'claimed' })
    })

    check('forgets a key at its expiry, answered or not', async (store) => {
      const answered = exampleClaim({ key: 'answered' })
      const open = exampleClaim({ key: 'open' })
      await store.claim(answered, NOW_MS)
      await store.complete(answered, exampleAnswer('first'), NOW_MS)
      await store.claim(open, NOW_MS)
      const later = { expiresAtMs: answered.expiresAtMs + 10_000, fingerprint: 'c'.repeat(64) }
      expect(await store.claim({ ...answered, ...later }, answered.expiresAtMs + 1)).toEqual({ status: 'claimed' })
      expect(await store.claim({ ...open, ...later }, open.expiresAtMs + 1)).toEqual({ status: 'claimed' })
    })

    check('keeps the first answer when a claim is completed twice', async (store) => {
      await store.claim(exampleClaim(), NOW_MS)
      expect(await store.complete(exampleClaim(), exampleAnswer('first'), NOW_MS)).toEqual(true)
      expect(await store.complete(exampleClaim(), exampleAnswer('second'), NOW_MS)).toEqual(true)
      const found = await store.claim(exampleClaim(), NOW_MS)
      expect(found.status === 'replay' && readableAnswer(found.answer)).toEqual(readableAnswer(exampleAnswer('first')))
    })

    check('frees a key that has no answer when it is pending no more, and not before', async (store) => {
      const { expiresAtMs } = exampleClaim()
      await store.claim(exampleClaim({ claimedBy: 'req_1', pendingUntilMs }), NOW_MS)
      const second = exampleClaim({ claimedBy: 'req_2', fingerprint: 'b'.repeat(64) })
      expect(await store.claim(second, pendingUntilMs - 1)).toEqual({ status: 'mismatch' })
      expect(await store.claim(second, pendingUntilMs + 1)).toEqual({ status: 'claimed' })
      expect(await store.claim(exampleClaim({ claimedBy: 'req_3' }), expiresAtMs - 1)).toEqual({ status: 'mismatch' })
    })

    check('keeps the answer of a key for its whole time', async (store) => {
      const own = exampleClaim({ claimedBy: 'req_1', pendingUntilMs })
      const later = { expiresAtMs: own.expiresAtMs + 10_000, claimedBy: 'req_2' }
      await store.claim(own, NOW_MS)
      expect(await store.complete(own, exampleAnswer('first'), NOW_MS + 1)).toEqual(true)
      expect((await store.claim({ ...own, ...later }, own.expiresAtMs - 1)).status).toEqual('replay')
      expect(await store.claim({ ...own, ...later }, own.expiresAtMs + 1)).toEqual({ status: 'claimed' })
    })

    check('keeps a late answer while nobody else has claimed the key, or says that it is not kept', async (store) => {
      const own = exampleClaim({ claimedBy: 'req_1', pendingUntilMs })
      await store.claim(own, NOW_MS)
      const isKept = await store.complete(own, exampleAnswer('late'), pendingUntilMs + 1)
      const found = await store.claim({ ...own, claimedBy: 'req_2' }, own.expiresAtMs - 1)
      expect(found.status).toEqual(isKept ? 'replay' : 'claimed')
    })

    check('keeps a key that its own request claims again until the later of both times', async (store) => {
      const whole = exampleClaim({ claimedBy: 'req_1' })
      await store.claim({ ...whole, pendingUntilMs }, NOW_MS)
      expect(await store.claim(whole, NOW_MS + 1)).toEqual({ status: 'claimed' })
      expect(await store.claim({ ...whole, pendingUntilMs }, NOW_MS + 2)).toEqual({ status: 'claimed' })
      const other = exampleClaim({ claimedBy: 'req_2' })
      expect(await store.claim(other, pendingUntilMs + 1)).toEqual({ status: 'in_flight' })
      expect(await store.claim(other, whole.expiresAtMs + 1)).toEqual({ status: 'claimed' })
    })

    check('lets no request touch a key that an equal one has taken over', async (store) => {
      const first = exampleClaim({ claimedBy: 'req_1', pendingUntilMs })
      const second = exampleClaim({ claimedBy: 'req_2', pendingUntilMs: pendingUntilMs + 900_000 })
      const nowMs = pendingUntilMs + 1
      await store.claim(first, NOW_MS)
      expect(await store.claim(second, nowMs)).toEqual({ status: 'claimed' })
      expect(await store.complete(first, exampleAnswer('late'), nowMs)).toEqual(false)
      await store.release(first)
      expect(await store.claim(first, nowMs)).toEqual({ status: 'in_flight' })
      expect(await store.complete(second, exampleAnswer('second'), nowMs)).toEqual(true)
      expect(await store.complete(first, exampleAnswer('late'), nowMs)).toEqual(false)
      const found = await store.claim(first, nowMs)
      expect(found.status === 'replay' && readableAnswer(found.answer)).toEqual(readableAnswer(exampleAnswer('second')))
    })

    check('says of a key that was freed that its answer is not kept', async (store) => {
      const own = exampleClaim({ claimedBy: 'req_1' })
      await store.claim(own, NOW_MS)
      await store.release(own)
      expect(await store.complete(own, exampleAnswer('late'), NOW_MS)).toEqual(false)
      expect(await store.claim(own, NOW_MS)).toEqual({ status: 'claimed' })
    })

    check('frees a released key for any request', async (store) => {
      await store.claim(exampleClaim(), NOW_MS)
      await store.release(exampleClaim())
      expect(await store.claim(exampleClaim({ fingerprint: 'b'.repeat(64) }), NOW_MS)).toEqual({ status: 'claimed' })
    })

    check('changes nothing by releasing a key that is unknown or answered', async (store) => {
      await store.release(exampleClaim({ key: 'never claimed' }))
      await store.claim(exampleClaim(), NOW_MS)
      await store.complete(exampleClaim(), exampleAnswer('first'), NOW_MS)
      await store.release(exampleClaim())
      expect((await store.claim(exampleClaim(), NOW_MS)).status).toEqual('replay')
    })

    check('does not let a request whose claim expired touch the claim of its successor', async (store) => {
      const first = exampleClaim()
      const second = exampleClaim({ fingerprint: 'b'.repeat(64), expiresAtMs: first.expiresAtMs + 10_000 })
      await store.claim(first, NOW_MS)
      await store.claim(second, first.expiresAtMs + 1)
      await store.complete(first, exampleAnswer('late'), first.expiresAtMs + 1)
      await store.release(first)
      expect(await store.claim(second, first.expiresAtMs + 2)).toEqual({ status: 'in_flight' })
    })
  })
}
