import { describe, expect, test, vi } from 'vitest'
import type { Reservation, ReserveResult } from '../../../src/stores/ledger.ts'
import { type ReserveBatch, reserveQueue } from '../../../src/stores/postgres/postgres-ledger.ts'

const HELD: ReserveResult = { status: 'held' }

function reservation(holdId: string, accountId = 'account_1'): Reservation {
  return { holdId, accountId, keyId: 'key_1', amount: 1n, expiresAtMs: 9_000 }
}

/** A judge that answers when the test says so. */
function heldUpJudge() {
  const answers: (() => void)[] = []
  const judge = vi.fn<ReserveBatch>(
    (_accountId, reservations) =>
      new Promise((resolve) => {
        answers.push(() => resolve(reservations.map(() => HELD)))
      }),
  )
  const batches = () => judge.mock.calls.map(([, reservations]) => reservations.map(({ holdId }) => holdId))
  return { judge, answers, batches }
}

describe('reserve queue', () => {
  test('sends what comes in one turn together, and what comes meanwhile in the next round', async () => {
    const { judge, answers, batches } = heldUpJudge()
    const reserve = reserveQueue(judge)

    const first = [reserve(reservation('hold_1'), 5), reserve(reservation('hold_2'), 7)]
    await Promise.resolve()
    const second = [reserve(reservation('hold_3'), 8), reserve(reservation('hold_4'), 8)]
    answers[0]!()
    await Promise.all(first)
    answers[1]!()
    await Promise.all(second)

    expect(batches()).toEqual([
      ['hold_1', 'hold_2'],
      ['hold_3', 'hold_4'],
    ])
    expect(judge.mock.calls.map(([, , nowMs]) => nowMs)).toEqual([7, 8])
  })

  test('lets no account wait for another', async () => {
    const { judge, answers } = heldUpJudge()
    const reserve = reserveQueue(judge)
    const slow = reserve(reservation('hold_1', 'account_1'), 1)
    const quick = reserve(reservation('hold_2', 'account_2'), 1)
    await Promise.resolve()

    answers[1]!()

    expect(await quick).toEqual(HELD)
    answers[0]!()
    expect(await slow).toEqual(HELD)
  })

  test('fails those who shared a failed round trip, and goes on with the next', async () => {
    const judge = vi.fn<ReserveBatch>(async (_accountId, reservations) => reservations.map(() => HELD))
    judge.mockRejectedValueOnce(new Error('connection lost'))
    const reserve = reserveQueue(judge)

    const failed = await Promise.allSettled([reserve(reservation('hold_1'), 1), reserve(reservation('hold_2'), 1)])

    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await reserve(reservation('hold_3'), 1)).toEqual(HELD)
  })

  test('sends at most 100 at a time, each exactly once, in order', async () => {
    const sizes: number[] = []
    const seen: string[] = []
    const reserve = reserveQueue(async (_accountId, reservations) => {
      sizes.push(reservations.length)
      seen.push(...reservations.map(({ holdId }) => holdId))
      return reservations.map(() => HELD)
    })
    const ids = Array.from({ length: 250 }, (_, index) => `hold_${index}`)

    await Promise.all(ids.map((id) => reserve(reservation(id), 1)))

    expect(sizes).toEqual([100, 100, 50])
    expect(seen).toEqual(ids)
  })
})
