import fc from 'fast-check'
import { afterAll, beforeAll, describe, test } from 'vitest'
import type { Ledger } from '../../../src/stores/ledger.ts'
import { realServer } from '../../support/real-servers.ts'
import { type BookOperation, bookHistories, expectExactAtOnce, expectLikeMemory } from '../support/book-histories.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const isLong = process.env['DRILL'] === 'long'

describe.skipIf(server.missing !== undefined)('books in PostgreSQL', () => {
  let schemas: Schemas

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  test.each([
    ['say what those in memory say over random histories', expectLikeMemory],
    ['are exact when several steps are made at once', expectExactAtOnce],
  ])(
    '%s',
    async (_title, expectBooks: (ledger: Ledger, history: readonly BookOperation[]) => Promise<void>) => {
      const property = fc.asyncProperty(bookHistories(80), async (history) => {
        const store = await schemas.create()
        try {
          await expectBooks(store.ledger, history)
        } finally {
          await schemas.dispose(store)
        }
      })
      const lanes = Array.from({ length: 3 }, () => fc.assert(property, { numRuns: isLong ? 200 : 6 }))
      await Promise.all(lanes)
    },
    isLong ? 30 * 60_000 : 60_000,
  )
})
