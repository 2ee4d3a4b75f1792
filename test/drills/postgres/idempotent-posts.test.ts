import { afterEach, beforeEach, describe, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { type Schemas, schemasOn } from '../../stores/postgres/support/fresh-schema.ts'
import { realServer } from '../../support/real-servers.ts'
import { IDEMPOTENT_POSTS, idempotentPosts, TAKEN_OVER, takenOver } from '../support/idempotent-posts-drill.ts'

const postgres = await realServer('postgres')

describe.skipIf(postgres.missing !== undefined)('through a gateway on PostgreSQL', () => {
  const drill = idempotentPosts()
  let schemas: Schemas
  let store: GatewayStore

  beforeEach(async () => {
    schemas = schemasOn(postgres.url)
    store = await schemas.create()
  })
  afterEach(async () => {
    await schemas.dispose(store)
    await schemas.end()
  })

  test(IDEMPOTENT_POSTS, { timeout: 120_000 }, () => drill(store))

  test(TAKEN_OVER, () =>
    takenOver([store, postgresStore({ pool: schemas.pool, schema: schemas.schemaOf(store), clock: 'caller' })]),
  )
})
