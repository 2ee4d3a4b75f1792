import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { realServer } from '../../support/real-servers.ts'
import { dropSchema, freshSchemaName, type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')

describe.skipIf(server.missing !== undefined)('migrations on PostgreSQL', () => {
  let schemas: Schemas

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  test('a second start changes nothing and keeps what is there', async () => {
    const store = await schemas.create()
    await store.ledger.createAccount({ id: 'account_1' }, 1)

    await store.start()

    expect(await store.ledger.account('account_1')).toMatchObject({ id: 'account_1', createdAtMs: 1 })
    await schemas.dispose(store)
  })

  test('a schema of a newer version refuses to start, saying so, and stays as it is', async () => {
    const store = await schemas.create()
    const schema = schemas.schemaOf(store)
    await schemas.pool.query(`INSERT INTO ${schema}.migrations (version) VALUES (99)`)

    const starting = store.start()

    await expect(starting).rejects.toThrow(
      `The PostgreSQL schema "${schema}" has version 99, this version of signalbox knows 3: update signalbox.`,
    )
    await schemas.dispose(store)
  })

  test('a schema from before there were tasks is brought up to date and keeps its money', async () => {
    const store = await schemas.create()
    const schema = schemas.schemaOf(store)
    const hold = { holdId: 'hold_1', accountId: 'account_1', keyId: 'key_1', amount: 400n, expiresAtMs: 1_000 }
    await store.ledger.createAccount({ id: 'account_1' }, 1)
    await store.ledger.credit({ creditId: 'c', accountId: 'account_1', amount: 900n, description: 'start' }, 1)
    await store.ledger.reserve(hold, 1)
    await schemas.pool.query(`SET client_min_messages = warning;
      DROP TABLE ${schema}.tasks, ${schema}.deliveries, ${schema}.webhook_secrets, ${schema}.poll_budgets,
        ${schema}.interactions CASCADE;
      DROP FUNCTION ${schema}.change_task, ${schema}.discard_task, ${schema}.reserve_with_tasks,
        ${schema}.replace_webhook_secret, ${schema}.forget_tasks;
      DELETE FROM ${schema}.migrations WHERE version >= 2; RESET client_min_messages`)

    await store.start()

    expect(await store.ledger.expire(2_000, 10)).toBe(1)
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 900n, held: 0n })
    expect((await store.tasks.list('account_1', { limit: 1 })).tasks).toEqual([])
    await schemas.dispose(store)
  })

  test('a migration that fails leaves nothing behind, and the next start does it', async () => {
    const schema = freshSchemaName()
    const readOnly = new pg.Pool({ connectionString: server.url, options: '-c default_transaction_read_only=on' })
    const blocked = postgresStore({ pool: readOnly, schema })
    const free = postgresStore({ pool: schemas.pool, schema })

    await expect(blocked.start()).rejects.toThrow('read-only')
    await free.start()

    expect(await free.ledger.account('account_1')).toBeUndefined()
    await readOnly.end()
    await dropSchema(schemas.pool, schema)
  })

  test('where everything is up to date, starting needs no right to create', async () => {
    const store = await schemas.create()
    const schema = schemas.schemaOf(store)
    const readOnly = new pg.Pool({ connectionString: server.url, options: '-c default_transaction_read_only=on' })

    await expect(postgresStore({ pool: readOnly, schema }).start()).resolves.toBeUndefined()

    await readOnly.end()
    await schemas.dispose(store)
  })

  test('a schema may have any name, quotes included', async () => {
    const schema = `Money "A" ${freshSchemaName()}`
    const store = postgresStore({ pool: schemas.pool, schema })

    await store.start()
    await store.ledger.createAccount({ id: 'account_1' }, 1)
    await store.ledger.credit({ creditId: 'c', accountId: 'account_1', amount: 5n, description: 'start' }, 1)

    expect((await store.ledger.account('account_1'))?.balance).toBe(5n)
    await dropSchema(schemas.pool, `"${schema.replaceAll('"', '""')}"`)
  })

  test.each(['', 'x'.repeat(64)])('the schema name %j is refused', (schema) => {
    expect(() => postgresStore({ pool: schemas.pool, schema })).toThrow(RangeError)
  })
})
