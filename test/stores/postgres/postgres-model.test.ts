import fc from 'fast-check'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { realServer } from '../../support/real-servers.ts'
import { expectLikeModel, ledgerHistories } from '../support/ledger-model.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const isLong = process.env['DRILL'] === 'long'
/** Histories are played side by side, because each mostly waits for round trips. */
const LANES = 5
const HISTORIES_PER_LANE = isLong ? 200 : 3

describe.skipIf(server.missing !== undefined)('ledger on PostgreSQL against the model', () => {
  let schemas: Schemas

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  test(
    'random histories keep every account exact to the nano-dollar',
    async () => {
      const histories = ledgerHistories({ minLength: isLong ? 100 : 0, maxLength: 100 })
      const property = fc.asyncProperty(histories, async (history) => {
        const store = await schemas.create()
        try {
          await expectLikeModel(store.ledger, history)
        } finally {
          await schemas.dispose(store)
        }
      })

      const lanes = Array.from({ length: LANES }, () => fc.assert(property, { numRuns: HISTORIES_PER_LANE }))
      await Promise.all(lanes)
    },
    isLong ? 30 * 60_000 : 60_000,
  )
})
