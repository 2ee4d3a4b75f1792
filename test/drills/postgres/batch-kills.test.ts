import pg from 'pg'
import { describe, test } from 'vitest'
import { dropSchema, freshSchemaName } from '../../stores/postgres/support/fresh-schema.ts'
import { realServer } from '../../support/real-servers.ts'
import { BATCH_KILLS, BATCH_KILLS_TIMEOUT, batchKillsDrill } from '../support/batch-kills-drill.ts'

const postgres = await realServer('postgres')

describe.skipIf(postgres.missing !== undefined)('on one PostgreSQL', () => {
  const kills = batchKillsDrill()

  test(BATCH_KILLS, BATCH_KILLS_TIMEOUT, async () => {
    const { url } = postgres
    if (url === undefined) throw new Error('no PostgreSQL')
    const schema = freshSchemaName()
    try {
      await kills({ kind: 'postgres', url, schema })
    } finally {
      const pool = new pg.Pool({ connectionString: url })
      await dropSchema(pool, schema)
      await pool.end()
    }
  })
})
