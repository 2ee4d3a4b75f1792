import { describe, expect, test, vi } from 'vitest'
import type { Reservation } from '../../../src/stores/ledger.ts'
import type { PostgresRow } from '../../../src/stores/postgres/postgres-connection.ts'
import { WriteCombiner } from '../../../src/stores/postgres/write-combiner.ts'
import type { Resolution } from '../../../src/stores/resolution.ts'

const CHARGED_ALONE: Resolution = { resolved: true, charged: 7n, shortfall: 0n }
const ALL_APPLIED: PostgresRow = {
  skipped_ends: null,
  shortfalls: null,
  facts: null,
  outcomes: null,
  answer_status: null,
}

function reservation(holdId: string, accountId = 'account_1'): Reservation {
  return { holdId, accountId, keyId: 'key_1', amount: 1n, expiresAtMs: 9_000 }
}

/** A combiner whose server answers when the test decides, and the groups that it has received. */
function combinerOnHeldUpServer({ durableReservations = false } = {}) {
  const answers: { resolve: (row?: PostgresRow) => void; reject: (error: unknown) => void }[] = []
  const groups: {
    ends: readonly string[]
    holds: readonly string[]
    isFlushed: boolean
    skipsLocked: boolean
    lockTimeout: string
  }[] = []
  const run = (_text: string, values: unknown[] = []) => {
    const [, isFlushed, skipsLocked, lockTimeout, ends] = values
    groups.push({ ends, holds: values[11], isFlushed, skipsLocked, lockTimeout } as (typeof groups)[number])
    return new Promise<readonly PostgresRow[]>((resolve, reject) => {
      answers.push({ resolve: (row = ALL_APPLIED) => resolve([row]), reject })
    })
  }
  const endAlone = vi.fn(async () => CHARGED_ALONE)
  const transaction = () => Promise.reject(new Error('not used'))
  const combiner = new WriteCombiner(
    { run, runAccepted: run, accept: (work) => work(), transaction, close: async () => {} },
    'money',
    {
      clock: 'caller',
      statementTimeoutMs: 5_000,
      durableReservations,
      endAlone,
    },
  )
  return { combiner, answers, groups, endAlone }
}

/** Resolves after the promises that are settled now have been handled. */
const handled = () => new Promise<void>((resolve) => setImmediate(resolve))

function serverError(code: string): Error {
  return Object.assign(new Error(code), { code, severity: 'ERROR' })
}

describe('write combiner', () => {
  test('sends a single operation immediately', async () => {
    const { combiner, groups, answers } = combinerOnHeldUpServer()

    const ended = combiner.end({ holdId: 'hold_1' }, 1)
    await Promise.resolve()

    expect(groups).toMatchObject([{ holds: [], ends: ['hold_1'] }])
    answers[0]!.resolve()
    expect(await ended).toEqual({ resolved: true, charged: 0n, shortfall: 0n })
  })

  test('sends the operations of all accounts that arrive while a group is in flight as one group', async () => {
    const { combiner, groups, answers } = combinerOnHeldUpServer()
    const first = combiner.reserve(reservation('hold_1'), 1)
    await Promise.resolve()

    const waiting = [
      combiner.reserve(reservation('hold_3', 'account_2'), 1),
      combiner.end({ holdId: 'hold_0', amount: 5n, description: 'chat' }, 1),
      combiner.reserve(reservation('hold_4', 'account_1'), 1),
    ]
    await handled()
    expect(groups).toHaveLength(1)
    answers[0]!.resolve()
    await handled()

    expect(groups[1]).toMatchObject({ ends: ['hold_0'], holds: ['hold_4', 'hold_3'] })
    answers[1]!.resolve()
    await Promise.all([first, ...waiting])
  })

  test.each([
    { title: 'lets groups that only hold reservations commit without waiting for the disk', expected: false },
    { title: 'flushes reservations if the operator wants it', durableReservations: true, expected: true },
  ])('$title', async ({ expected, ...options }) => {
    const { combiner, groups } = combinerOnHeldUpServer(options)

    void combiner.reserve(reservation('hold_1'), 1)
    await Promise.resolve()

    expect(groups[0]!.isFlushed).toBe(expected)
  })

  test('flushes a group with an end of a hold', async () => {
    const { combiner, groups } = combinerOnHeldUpServer()

    void combiner.reserve(reservation('hold_1'), 1)
    void combiner.end({ holdId: 'hold_2' }, 1)
    await Promise.resolve()

    expect(groups).toMatchObject([{ isFlushed: true, holds: ['hold_1'], ends: ['hold_2'] }])
  })

  test('sends two ends of one hold in two groups', async () => {
    const { combiner, groups, answers } = combinerOnHeldUpServer()

    void combiner.end({ holdId: 'hold_1', amount: 1n, description: 'chat' }, 1)
    void combiner.end({ holdId: 'hold_1' }, 1)
    void combiner.end({ holdId: 'hold_2' }, 1)
    await handled()
    answers[0]!.resolve()
    await handled()

    expect(groups.map(({ ends }) => ends)).toEqual([['hold_1'], ['hold_1', 'hold_2']])
  })

  test('rejects the operations of a group whose connection broke, and continues with the next', async () => {
    const { combiner, answers } = combinerOnHeldUpServer()
    const outcomes = Promise.allSettled([combiner.reserve(reservation('hold_1'), 1), combiner.end({ holdId: 'a' }, 1)])
    await Promise.resolve()

    answers[0]!.reject(new Error('Connection terminated unexpectedly'))

    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    const next = combiner.reserve(reservation('hold_2'), 2)
    await Promise.resolve()
    answers[1]!.resolve()
    expect(await next).toEqual({ status: 'held' })
  })

  test('repeats the operations of a group alone if the server rejects its data', async () => {
    const { combiner, groups, answers, endAlone } = combinerOnHeldUpServer()
    const settlement = { holdId: 'hold_0', amount: 7n, description: 'chat' }
    const ended = combiner.end(settlement, 1)
    const reserved = [combiner.reserve(reservation('hold_1'), 1), combiner.reserve(reservation('hold_2'), 1)]
    await Promise.resolve()

    answers[0]!.reject(serverError('22003'))
    await handled()
    answers[1]!.resolve()
    answers[2]!.reject(serverError('22003'))

    expect(await ended).toEqual(CHARGED_ALONE)
    expect(endAlone).toHaveBeenCalledWith(settlement, 1)
    expect(groups.slice(1).map(({ holds }) => holds)).toEqual([['hold_1'], ['hold_2']])
    expect(await reserved[0]).toEqual({ status: 'held' })
    await expect(reserved[1]).rejects.toThrow('22003')
  })

  test('repeats a group without the accounts that another session locks, whose calls wait in one group', async () => {
    const { combiner, groups, answers } = combinerOnHeldUpServer()
    const reserved = [combiner.reserve(reservation('hold_1'), 1), combiner.reserve(reservation('hold_2', 'b'), 1)]
    const ended = combiner.end({ holdId: 'hold_0' }, 1)
    await Promise.resolve()
    answers[0]!.reject(serverError('55P03'))
    await handled()

    const locked = { skipped_ends: '{"1": "locked"}', outcomes: '{"1": {"status": "locked"}}' }
    answers[1]!.resolve({ ...ALL_APPLIED, ...locked })
    await handled()
    expect(await reserved[1]).toEqual({ status: 'held' })

    const next = combiner.reserve(reservation('hold_3', 'c'), 2)
    await handled()
    expect(groups).toMatchObject([
      { holds: ['hold_1', 'hold_2'], ends: ['hold_0'], skipsLocked: false, lockTimeout: '500ms' },
      { holds: ['hold_1', 'hold_2'], ends: ['hold_0'], skipsLocked: true, lockTimeout: '500ms' },
      { holds: ['hold_1'], ends: ['hold_0'], skipsLocked: false, lockTimeout: '10000ms' },
      { holds: ['hold_3'], skipsLocked: true },
    ])
    for (const { resolve } of answers) resolve()
    expect(await Promise.all([reserved[0], next])).toEqual([{ status: 'held' }, { status: 'held' }])
    expect(await ended).toMatchObject({ resolved: true })
  })

  test('repeats the operations of a group alone if a row other than an account is locked', async () => {
    const { combiner, groups, answers } = combinerOnHeldUpServer()
    const reserved = [combiner.reserve(reservation('hold_1'), 1), combiner.reserve(reservation('hold_2', 'b'), 1)]
    await Promise.resolve()
    for (const attempt of [0, 1]) {
      answers[attempt]!.reject(serverError('55P03'))
      await handled()
    }

    expect(groups.slice(2)).toMatchObject([
      { holds: ['hold_1'], skipsLocked: false, lockTimeout: '10000ms' },
      { holds: ['hold_2'], skipsLocked: false, lockTimeout: '10000ms' },
    ])
    for (const { resolve } of answers) resolve()
    expect(await Promise.all(reserved)).toEqual([{ status: 'held' }, { status: 'held' }])
  })

  test('rejects those that wait with a group that the server did not answer in time', async () => {
    const { combiner, groups, answers } = combinerOnHeldUpServer()
    const first = combiner.reserve(reservation('hold_1'), 1)
    await Promise.resolve()
    const waiting = [combiner.reserve(reservation('hold_2'), 1), combiner.end({ holdId: 'hold_0' }, 1)]

    answers[0]!.reject(Object.assign(new Error('late'), { code: 'ETIMEDOUT' }))

    const outcomes = await Promise.allSettled([first, ...waiting])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(groups).toHaveLength(1)
  })
})
