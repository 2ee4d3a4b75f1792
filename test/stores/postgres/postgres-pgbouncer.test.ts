import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { checkStore } from '../../../src/cli/check-command.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import type { ResponseStore } from '../../../src/stores/response-store.ts'
import { describeLedger } from '../../../src/testing/contracts/ledger-contract.ts'
import { describeResponseStore } from '../../../src/testing/contracts/response-store-contract.ts'
import { missingProgram } from '../../support/real-servers.ts'
import { type PoolMode, type StartedPgBouncer, startPgBouncer } from '../../support/start-pgbouncer.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { freshSchemaName, type Schemas, schemasOn } from './support/fresh-schema.ts'

const runner = { describe, it, expect }
const isLeftOut = [missingProgram('postgres'), missingProgram('pgbouncer')].some((missing) => missing !== undefined)

describe.skipIf(isLeftOut)('PostgreSQL store behind PgBouncer', () => {
  let server: StartedPostgres
  let pooler: StartedPgBouncer
  let schemas: Schemas
  const wholes = new Map<ResponseStore, GatewayStore>()
  const undo: (() => Promise<void>)[] = []

  beforeAll(async () => {
    server = await startPostgres({ fsync: 'off' })
    // Fewer connections than the store has clients, so that the statements of one client run on several.
    pooler = await startPgBouncer(server.url, 'transaction', { default_pool_size: '3' })
    schemas = schemasOn(pooler.url)
  })
  afterAll(async () => {
    for (const step of undo.reverse()) await step()
    await schemas.end()
    await pooler.stop()
    await server.stop()
  })

  async function storesBehind(mode: PoolMode, count: number): Promise<readonly GatewayStore[]> {
    const other = await startPgBouncer(server.url, mode, { default_pool_size: '2' })
    // A session keeps its connection until the pool closes it.
    const pool = new pg.Pool({ connectionString: other.url, max: mode === 'session' ? 2 : 10 })
    undo.push(
      () => other.stop(),
      () => pool.end(),
    )
    const schema = freshSchemaName()
    return Array.from({ length: count }, () => postgresStore({ pool, schema }))
  }

  // Money, and what takes several statements in a transaction.
  const whole = { create: () => schemas.create(), dispose: (store: unknown) => schemas.dispose(store as GatewayStore) }
  describeLedger(runner, whole)
  describeResponseStore(runner, {
    async create() {
      const store = await schemas.create()
      wholes.set(store.responses, store)
      return store.responses
    },
    dispose: (responses) => schemas.dispose(wholes.get(responses)!),
  })

  test.each(['session', 'transaction'] as const)(
    'one of several that start at once migrates, in the pool mode %s',
    async (mode) => {
      const stores = await storesBehind(mode, 4)

      await Promise.all(stores.map((store) => store.start()))

      expect(await stores[3]!.ledger.account('account_1')).toBeUndefined()
    },
  )

  test('does not start in the pool mode statement, which has no transactions', async () => {
    const [store] = await storesBehind('statement', 1)

    await expect(store!.start()).rejects.toThrow('transaction blocks not allowed in statement pooling mode')
  })

  test.each([
    ['transaction', { status: 'ok' }],
    [
      'statement',
      {
        status: 'failed',
        message: expect.stringContaining('transaction blocks not allowed in statement pooling mode'),
        remedy: 'set pool_mode of PgBouncer to transaction or session',
      },
    ],
  ] as const)('is checked in the pool mode %s', async (mode, expected) => {
    const other = await startPgBouncer(server.url, mode)
    undo.push(() => other.stop())

    expect(await checkStore({ kind: 'postgres', url: other.url })).toMatchObject(expected)
  })
})
