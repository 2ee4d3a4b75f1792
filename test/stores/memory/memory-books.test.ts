import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryLedger } from '../../../src/stores/memory/memory-ledger.ts'
import { bookHistories, expectExactBooks, expectLikeMemory } from '../support/book-histories.ts'

describe('books in memory', () => {
  test('are exact after every random history of credits, calls, refunds, corrections and expiries', async () => {
    const property = fc.asyncProperty(bookHistories(120), (history) => expectLikeMemory(memoryLedger(), history))
    await fc.assert(property, { numRuns: 200 })
  })

  test('keep the sums of a journal whose old lines were carried forward', async () => {
    const ledger = memoryLedger({ maxJournalLines: 10 })
    await ledger.createAccount({ id: 'account_1' }, 1)
    const credit = { accountId: 'account_1', amount: 7n, description: 'x' }
    for (let index = 1; index <= 100; index++) await ledger.credit({ ...credit, creditId: `c${index}` }, index)

    const early = await ledger.sums({ accountId: 'account_1', fromMs: 0, untilMs: 101 })
    const late = await ledger.sums({ accountId: 'account_1', fromMs: 99, untilMs: 101 })

    expect(early).toMatchObject({ openingBalance: 0n, sums: [{ kind: 'credit', amount: 700n }] })
    expect(late).toMatchObject({ openingBalance: 98n * 7n, sums: [{ kind: 'credit', lines: 2, amount: 14n }] })
    await expect(expectExactBooks(ledger)).resolves.toBeUndefined()
  })
})
