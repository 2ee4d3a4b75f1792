import pg from 'pg'
import { describe, test } from 'vitest'
import { dropSchema, freshSchemaName } from '../../stores/postgres/support/fresh-schema.ts'
import { realServer } from '../../support/real-servers.ts'
import { VIDEO_KILLS, VIDEO_KILLS_TIMEOUT, videoKills } from '../support/video-kills-drill.ts'

const postgres = await realServer('postgres')

describe.skipIf(postgres.missing !== undefined)(VIDEO_KILLS, () => {
  const drill = videoKills()

  test('on one PostgreSQL', VIDEO_KILLS_TIMEOUT, async () => {
    const schema = freshSchemaName()
    try {
      await drill({ kind: 'postgres', url: postgres.url, schema })
    } finally {
      const pool = new pg.Pool({ connectionString: postgres.url })
      await dropSchema(pool, schema)
      await pool.end()
    }
  })
})
