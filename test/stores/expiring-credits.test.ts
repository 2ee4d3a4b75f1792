import { describe, expect, test } from 'vitest'
import { type ExpiringCredit, expireCredits, spendCredits } from '../../src/stores/expiring-credits.ts'

const EARLY: ExpiringCredit = { creditId: 'early', remaining: 10n, expiresAtMs: 100 }
const LATE: ExpiringCredit = { creditId: 'late', remaining: 10n, expiresAtMs: 200 }

describe('what is spent of credits that expire', () => {
  test.each([
    [4n, 50, [['early', 4n]]],
    [10n, 50, [['early', 10n]]],
    [
      14n,
      50,
      [
        ['early', 10n],
        ['late', 4n],
      ],
    ],
    [
      30n,
      50,
      [
        ['early', 10n],
        ['late', 10n],
      ],
    ],
    [4n, 100, [['late', 4n]]],
    [4n, 200, []],
    [0n, 50, []],
  ] as const)('spends %d at %d from the one that expires first', (amount, atMs, takes) => {
    expect(spendCredits([EARLY, LATE], amount, atMs)).toEqual(
      takes.map(([creditId, taken]) => ({ creditId, amount: taken })),
    )
  })
})

describe('what of a balance has expired', () => {
  test.each([
    ['nothing before the time', { nowMs: 99, balance: 20n, held: 0n }, []],
    ['a credit at its time', { nowMs: 100, balance: 20n, held: 0n }, [['early', 10n]]],
    [
      'both after it',
      { nowMs: 300, balance: 20n, held: 0n },
      [
        ['early', 10n],
        ['late', 10n],
      ],
    ],
    [
      'no more than the balance',
      { nowMs: 300, balance: 13n, held: 0n },
      [
        ['early', 10n],
        ['late', 3n],
      ],
    ],
    [
      'not what open holds may charge',
      { nowMs: 300, balance: 20n, held: 4n },
      [
        ['early', 6n],
        ['late', 10n],
      ],
    ],
    ['of two credits what one hold leaves of both', { nowMs: 300, balance: 20n, held: 12n }, [['late', 8n]]],
    ['nothing while holds need all', { nowMs: 300, balance: 20n, held: 25n }, []],
  ] as const)('is %s', (_what, { nowMs, ...account }, takes) => {
    expect(expireCredits([EARLY, LATE], { nowMs, account, heldBefore: () => account.held })).toEqual(
      takes.map(([creditId, amount]) => ({ creditId, amount })),
    )
  })

  test('is known without reading holds where none can change it', () => {
    const asked: number[] = []
    const heldBefore = (timeMs: number): bigint => {
      asked.push(timeMs)
      return 10n
    }

    expireCredits([EARLY, LATE], { nowMs: 300, account: { balance: 20n, held: 0n }, heldBefore })
    expect(asked).toEqual([])
    // Held money stays in the first credit.
    expireCredits([EARLY, LATE], { nowMs: 300, account: { balance: 20n, held: 10n }, heldBefore })
    expect(asked).toEqual([100])
  })
})
