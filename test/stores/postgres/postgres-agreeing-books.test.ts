import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EntryKind } from '../../../src/stores/journal.ts'
import { expectAgreeingBooks, FULL_HISTORY, gatewayHistories, MOVED } from '../../gateway/money/gateway-histories.ts'
import { realServer } from '../../support/real-servers.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const isLong = process.env['DRILL'] === 'long'

describe.skipIf(server.missing !== undefined)('statement, journal and records of calls, on PostgreSQL', () => {
  let schemas: Schemas

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  test('say the same after random histories', { timeout: isLong ? 1_800_000 : 120_000 }, async () => {
    const seen = new Set<EntryKind>()
    const property = fc.asyncProperty(gatewayHistories(25), async (history) => {
      const store = await schemas.create()
      try {
        for (const kind of await expectAgreeingBooks(store, history)) seen.add(kind)
      } finally {
        await schemas.dispose(store)
      }
    })
    await fc.assert(property, { numRuns: isLong ? 100 : 15, examples: [[FULL_HISTORY]] })
    expect([...seen]).toEqual(expect.arrayContaining(MOVED))
  })
})
