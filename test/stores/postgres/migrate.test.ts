import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MIGRATIONS, migrate } from '../../../src/stores/postgres/migrations/migrate.ts'
import { SETTINGS_TABLE } from '../../../src/stores/postgres/migrations/tables.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { exampleReservation, exampleTask, NOW_MS } from '../../../src/testing/contracts/contract-runner.ts'
import { realServer } from '../../support/real-servers.ts'
import { expectClaimsByOneClock } from '../support/claims-by-one-clock.ts'
import { dropSchema, freshSchemaName, type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')

describe.skipIf(server.missing !== undefined)('migrations on PostgreSQL', () => {
  let schemas: Schemas

  beforeAll(() => {
    schemas = schemasOn(server.url, 'alter')
  })
  afterAll(() => schemas.end())

  test('a second start changes nothing and keeps what is there', async () => {
    const store = await schemas.create()
    await store.ledger.createAccount({ id: 'account_1' }, 1)

    await store.start()

    expect(await store.ledger.account('account_1')).toMatchObject({ id: 'account_1', createdAtMs: 1 })
    await schemas.dispose(store)
  })

  test('a process of the version before, which passes over no accounts, still takes what is due', async () => {
    const store = await schemas.create()
    const task = exampleTask({ nextPollAtMs: NOW_MS })
    await store.tasks.insert(task)
    const taken = await schemas.pool.query(
      `SELECT t.id FROM ${schemas.schemaOf(store)}.take_due_tasks($1, $2, $3, $4, $5, $6, $7) AS t`,
      [task.credentialId, String(NOW_MS), String(NOW_MS + 1), 3, 4, '1000', null],
    )

    expect(taken.rows).toEqual([{ id: task.id }])
    await schemas.dispose(store)
  })

  test('an installed schema of the version before gets the function that chooses between two amounts', async () => {
    const store = await schemas.create()
    const schema = schemas.schemaOf(store)
    const { accountId } = exampleReservation({})
    await store.ledger.createAccount({ id: accountId }, 1)
    await store.ledger.credit({ creditId: 'c', accountId, amount: 1_000n, description: 'start' }, 1)
    // The function of the version before has the same parameters and result, and reads one amount.
    const { rows } = await schemas.pool.query<{ source: string }>(
      `SELECT pg_get_functiondef(p.oid) AS source FROM pg_proc p WHERE p.pronamespace = $1::regnamespace AND p.proname = 'reserve'`,
      [schema],
    )
    await schemas.pool.query(
      rows[0]!.source
        .replace('larger bigint, larger_free bigint,', '')
        .replaceAll('v_request.larger_free', 'NULL::bigint')
        .replaceAll('v_request.larger', 'NULL::bigint'),
    )
    await schemas.pool.query(`DROP TABLE ${schema}.audit, ${schema}.settings`)
    await schemas.pool.query(`ALTER TABLE ${schema}.files DROP COLUMN mime_type`)
    await schemas.pool.query(`DELETE FROM ${schema}.migrations WHERE version >= 17`)
    const asked = { amount: 10n, requiredFree: 20n, larger: { amount: 100n, requiredFree: 500n } }
    const before = await store.ledger.reserve(exampleReservation(asked), NOW_MS)

    await store.start()
    const after = await store.ledger.reserve(exampleReservation({ ...asked, holdId: 'hold_2' }), NOW_MS)

    expect([before, after]).toEqual([{ status: 'held' }, { status: 'held', isLarger: true }])
    expect(await store.ledger.account(accountId)).toMatchObject({ balance: 890n, held: 110n })
    await schemas.dispose(store)
  })

  test('a schema without settings gets their table and keeps its money', async () => {
    const schema = freshSchemaName()
    const client = await schemas.pool.connect()
    await client.query('BEGIN')
    await migrate(client, schema, MIGRATIONS.slice(0, MIGRATIONS.indexOf(SETTINGS_TABLE)))
    await client.query(`COMMIT; INSERT INTO ${schema}.accounts (id, balance, held, tier, created_at_ms)
      VALUES ('account_1', 900, 0, 'paid', 1)`)
    client.release()
    const store = postgresStore({ pool: schemas.pool, schema })

    await store.start()
    await store.settings?.write({ days: Number.POSITIVE_INFINITY })

    expect(await store.settings?.read()).toEqual({ days: Number.POSITIVE_INFINITY })
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 900n })
    await dropSchema(schemas.pool, schema)
  })

  test('a step may take longer than the server lets statements of this user', async () => {
    const schema = freshSchemaName()
    const client = await schemas.pool.connect()
    await client.query("SET statement_timeout = '20ms'")
    await client.query('BEGIN')
    const first = await migrate(client, schema, [['SELECT pg_sleep(0.1)']]).then(() => 'migrated', String)
    await client.query('ROLLBACK')
    const { rows } = await client.query('SHOW statement_timeout')
    await client.query('RESET statement_timeout')
    client.release()

    expect(first).toBe('migrated')
    expect(rows).toEqual([{ statement_timeout: '20ms' }])
  })

  test('a schema of a newer version refuses to start, saying so, and stays as it is', async () => {
    const store = await schemas.create()
    const schema = schemas.schemaOf(store)
    await schemas.pool.query(`INSERT INTO ${schema}.migrations (version) VALUES (99)`)

    const starting = store.start()

    await expect(starting).rejects.toThrow(
      `The PostgreSQL schema "${schema}" has version 99, this version of signalbox knows ${MIGRATIONS.length}: update signalbox.`,
    )
    await schemas.dispose(store)
  })

  test.each([1, 2, 3, 4])('a schema of version %i is brought up to date and keeps its money', async (version) => {
    const schema = freshSchemaName()
    const client = await schemas.pool.connect()
    await client.query('BEGIN')
    await migrate(client, schema, MIGRATIONS.slice(0, version))
    await client.query(`COMMIT; SET search_path = ${schema};
      INSERT INTO accounts (id, balance, held, tier, created_at_ms) VALUES ('account_1', 0, 500, 'paid', 1);
      INSERT INTO holds (id, account_id, key_id, amount, status, counter_ids, expires_at_ms) VALUES
        ('hold_1', 'account_1', 'key_1', 400, 'settled', '{}', 1000),
        ('hold_2', 'account_1', 'key_1', 100, 'held', '{}', 1000),
        ('hold_3', 'account_1', 'key_1', 400, 'held', '{}', 1000);
      INSERT INTO entries (account_id, kind, amount, missing, hold_id, credit_id, description, created_at_ms) VALUES
        ('account_1', 'credit', 900, 0, NULL, 'credit_1', 'start', 1),
        ('account_1', 'charge', -400, 0, 'hold_1', NULL, 'chat', 1),
        ('account_1', 'shortfall', 0, 7, 'hold_1', NULL, 'chat', 1);
      RESET search_path`)
    client.release()
    const store = postgresStore({ pool: schemas.pool, schema, clock: 'caller' })

    await store.start()

    expect(await store.ledger.settle({ holdId: 'hold_2', amount: 130n, description: 'chat' }, 1)).toEqual({
      resolved: true,
      charged: 100n,
      shortfall: 30n,
    })
    expect(await store.ledger.expire(2_000, 10)).toBe(1)
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 370n, held: 0n, owed: 0n })
    const lines = await store.ledger.entries('account_1', 10)
    expect(lines.map(({ kind, amount, owed }) => [kind, amount, owed])).toEqual([
      ['repayment', -30n, -30n],
      ['owed', 0n, 30n],
      ['charge', -100n, 0n],
      ['shortfall', 0n, 0n],
      ['charge', -400n, 0n],
      ['credit', 900n, 0n],
    ])
    expect((await store.tasks.list('account_1', { limit: 1 })).tasks).toEqual([])
    await dropSchema(schemas.pool, schema)
  })

  test("bringing a schema up to date leaves the host's own functions in it alone", async () => {
    const schema = freshSchemaName()
    const client = await schemas.pool.connect()
    await client.query('BEGIN')
    await migrate(client, schema, MIGRATIONS.slice(0, 3))
    await client.query(`COMMIT; CREATE FUNCTION ${schema}.of_the_host() RETURNS integer LANGUAGE sql AS 'SELECT 7'`)
    client.release()

    await postgresStore({ pool: schemas.pool, schema }).start()

    const { rows } = await schemas.pool.query(`SELECT ${schema}.of_the_host() AS answer`)
    expect(rows).toEqual([{ answer: 7 }])
    await dropSchema(schemas.pool, schema)
  })

  test('holds expire by the clock of the server, whatever the clocks of the processes say', async () => {
    const schema = freshSchemaName()
    const store = postgresStore({ pool: schemas.pool, schema })
    await store.start()
    await store.ledger.createAccount({ id: 'account_1' }, 1)
    const wrongMs = 16 * 60_000
    const reserve = (holdId: string, nowMs: number, livesMs: number) =>
      store.ledger.reserve(
        { holdId, accountId: 'account_1', keyId: 'key_1', amount: 0n, expiresAtMs: nowMs + livesMs },
        nowMs,
      )
    await reserve('of a process in time', Date.now(), 900_000)
    await reserve('of a process that is slow', Date.now() - wrongMs, 900_000)
    await reserve('of a process that is fast', Date.now() + wrongMs, 900_000)

    expect(await store.ledger.expire(Date.now() + wrongMs, 10)).toBe(0)
    expect(await store.ledger.expire(Date.now(), 10)).toBe(0)
    await reserve('over', Date.now() - wrongMs, 0)
    expect(await store.ledger.expire(Date.now() - wrongMs, 10)).toBe(1)
    await dropSchema(schemas.pool, schema)
  })

  test('claims last by the clock of the server, whatever the clocks of the processes say', async () => {
    const schema = freshSchemaName()
    const store = postgresStore({ pool: schemas.pool, schema })
    await store.start()
    await expectClaimsByOneClock(store.idempotency)
    await dropSchema(schemas.pool, schema)
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
