import fc from 'fast-check'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { realServer } from '../../support/real-servers.ts'
import { concurrentHistories, expectSomeOrder } from '../support/concurrent-histories.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const isLong = process.env['DRILL'] === 'long'

describe.skipIf(server.missing !== undefined)('concurrent calls of one process on PostgreSQL', () => {
  let schemas: Schemas

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  test(
    'have the outcomes and books of a sequential order',
    async () => {
      const property = fc.asyncProperty(concurrentHistories(8), async (history) => {
        const store = await schemas.create()
        try {
          await expectSomeOrder(store, history)
        } finally {
          await schemas.dispose(store)
        }
      })
      await fc.assert(property, { numRuns: isLong ? 500 : 40, endOnFailure: true })
    },
    isLong ? 30 * 60_000 : 60_000,
  )
})
