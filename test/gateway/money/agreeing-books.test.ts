import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EntryKind } from '../../../src/stores/journal.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { expectAgreeingBooks, FULL_HISTORY, gatewayHistories, MOVED } from './gateway-histories.ts'

const isLong = process.env['DRILL'] === 'long'

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:', clock: 'caller' })],
])('statement, journal and records of calls, on %s', (_name, openStore) => {
  test('say the same after random histories', { timeout: isLong ? 600_000 : 60_000 }, async () => {
    const seen = new Set<EntryKind>()
    const property = fc.asyncProperty(gatewayHistories(25), async (history) => {
      const store = openStore()
      for (const kind of await expectAgreeingBooks(store, history)) seen.add(kind)
      await store.close()
    })
    await fc.assert(property, { numRuns: isLong ? 200 : 20, examples: [[FULL_HISTORY]] })
    expect([...seen]).toEqual(expect.arrayContaining(MOVED))
  })
})
