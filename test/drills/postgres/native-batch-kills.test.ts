import pg from 'pg'
import { describe, test } from 'vitest'
import { dropSchema, freshSchemaName } from '../../stores/postgres/support/fresh-schema.ts'
import { realServer } from '../../support/real-servers.ts'
import {
  NATIVE_BATCH_KILLS,
  NATIVE_BATCH_KILLS_TIMEOUT,
  nativeBatchKillsDrill,
} from '../support/native-batch-kills-drill.ts'

const postgres = await realServer('postgres')

describe.skipIf(postgres.missing !== undefined)('on one PostgreSQL', () => {
  const kills = nativeBatchKillsDrill()

  test(NATIVE_BATCH_KILLS, NATIVE_BATCH_KILLS_TIMEOUT, async () => {
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
