import pg from 'pg'
import { describe, test } from 'vitest'
import { dropSchema, freshSchemaName } from '../../stores/postgres/support/fresh-schema.ts'
import { realServer } from '../../support/real-servers.ts'
import type { DrillStore } from '../support/open-drill-store.ts'
import {
  BACKGROUND_UNDER_KILLS,
  FOLLOW_UPS_AFTER_KILLS,
  RESPONSES_KILLS_TIMEOUT,
  responsesKills,
} from '../support/responses-kills-drill.ts'

const postgres = await realServer('postgres')

describe.skipIf(postgres.missing !== undefined)('on one PostgreSQL', () => {
  const { followUps, background } = responsesKills()

  test(FOLLOW_UPS_AFTER_KILLS, RESPONSES_KILLS_TIMEOUT, () => inSchema(followUps))
  test(BACKGROUND_UNDER_KILLS, RESPONSES_KILLS_TIMEOUT, () => inSchema(background))
})

async function inSchema(drill: (store: DrillStore) => Promise<void>): Promise<void> {
  const { url } = postgres
  if (url === undefined) throw new Error('no PostgreSQL')
  const schema = freshSchemaName()
  try {
    await drill({ kind: 'postgres', url, schema })
  } finally {
    const pool = new pg.Pool({ connectionString: url })
    await dropSchema(pool, schema)
    await pool.end()
  }
}
