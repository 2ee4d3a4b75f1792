import fc from 'fast-check'
import { describe, test } from 'vitest'
import type { Ledger } from '../../../src/stores/ledger.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { type BookOperation, bookHistories, expectExactAtOnce, expectLikeMemory } from '../support/book-histories.ts'

describe('books in SQLite', () => {
  test.each([
    ['say what those in memory say over random histories', expectLikeMemory],
    ['are exact when several steps are made at once', expectExactAtOnce],
  ])('%s', async (_title, expectBooks: (ledger: Ledger, history: readonly BookOperation[]) => Promise<void>) => {
    const property = fc.asyncProperty(bookHistories(80), async (history) => {
      const store = sqliteStore({ path: ':memory:', clock: 'caller' })
      await store.start()
      await expectBooks(store.ledger, history)
      await store.close()
    })
    await fc.assert(property, { numRuns: 60 })
  })
})
