import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { MIGRATIONS } from '../../../src/stores/sqlite/sqlite-migrations.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { expectLikeToday, fillStore, isFixtureWritten } from '../support/released-store.ts'
import { releasedDatabase, writeReleasedDatabase } from './support/released-database.ts'
import { defaultEngine } from './support/sqlite-engines.ts'

/** SHA-256 of each step. The hash of a released step never changes: add a step, its hash, and the fixture of its version. */
const HASHES: readonly string[] = ['300239a4b0e3df11fa40f5799b1a45ea0d8077f260ffb04913554a5e3f6e7ff5']

describe('released versions of the SQLite schema', () => {
  it('keep the text of their steps', () => {
    expect(MIGRATIONS.map((step) => createHash('sha256').update(step).digest('hex'))).toEqual(HASHES)
  })

  // WRITE_STORE_FIXTURE=1 npx vitest run test/stores/sqlite/sqlite-versions.test.ts
  if (isFixtureWritten)
    it('writes the fixture of the newest version', async () => {
      const database = defaultEngine.open(':memory:')
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      await fillStore(store)
      await store.close()
      writeReleasedDatabase(MIGRATIONS.length, database)
      database.close()
    })

  it.each(HASHES.map((_, index) => index + 1))(
    'opens a database of version %i and goes on with its data',
    async (version) => {
      const database = releasedDatabase(version, true)
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      await expectLikeToday(store)
      await store.close()
      database.close()
    },
  )
})
