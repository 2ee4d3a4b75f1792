import { createHash } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { FUNCTIONS, MIGRATIONS, migrate } from '../../../src/stores/postgres/migrations/migrate.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { exampleReservation } from '../../../src/testing/contracts/contract-runner.ts'
import { describeLedger } from '../../../src/testing/contracts/ledger-contract.ts'
import { describeUsageStore } from '../../../src/testing/contracts/usage-store-contract.ts'
import { missingProgram, realServer } from '../../support/real-servers.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { expectClaimsByOneClock } from '../support/claims-by-one-clock.ts'
import { expectLikeToday, fillStore, isFixtureWritten } from '../support/released-store.ts'
import { dropSchema, emptySchema, freshSchemaName, type Schemas, schemasOn } from './support/fresh-schema.ts'
import { releasedSchema, writeReleasedSchema } from './support/released-schema.ts'

const server = await realServer('postgres')

/**
 * SHA-256 of the statements of each version, and of the functions with the newest one. The hash of a released version never
 * changes: add a version, without statements if only functions change, its hash, and its fixture.
 */
const HASHES: readonly string[] = [
  '9a118deb94973e6d4a101a8f0b68a3dafb7c7e364592cc8dac8194df864a1955',
  'ac33dac9d3712d29d7e014459af5ce422192a057f1f5c25a1341a2bb259dc3c0',
]
const FUNCTION_HASHES: readonly string[] = [
  '6895a5cffff8884f3bde52eb42c053e8263a7a4b47504d12333302aab72cffd4',
  'c07a83d7e75d9debfd977125763767c8ac7af4d6574fb10b4921c8763ec932bc',
]

function hashOf(statements: readonly string[]): string {
  return createHash('sha256').update(statements.join(';\n')).digest('hex')
}

describe('released versions of the PostgreSQL schema', () => {
  test('keep the text of their statements', () => {
    expect(MIGRATIONS.map(hashOf)).toEqual(HASHES)
    expect(hashOf(FUNCTIONS)).toBe(FUNCTION_HASHES[MIGRATIONS.length - 1])
  })
})

describe.skipIf(missingProgram('postgres') !== undefined)('a PostgreSQL schema of a released version', () => {
  let server: StartedPostgres
  let schemas: Schemas

  beforeAll(async () => {
    // A server of its own: the sums of usage wait for each open transaction of a server.
    server = await startPostgres({ fsync: 'off' })
    schemas = schemasOn(server.url)
  })
  afterAll(async () => {
    await schemas.end()
    await server.stop()
  })

  // WRITE_STORE_FIXTURE=1 npx vitest run test/stores/postgres/migrate.test.ts
  if (isFixtureWritten)
    test('writes the fixture of the newest version', async () => {
      const store = await schemas.create()
      await fillStore(store)
      await writeReleasedSchema(schemas.pool, schemas.schemaOf(store))
      await schemas.dispose(store)
    })

  describe.each(HASHES.map((_, index) => index + 1))('version %i', (version) => {
    test('goes on with its data', async () => {
      const schema = await releasedSchema(schemas.pool, version)
      const store = postgresStore({ pool: schemas.pool, schema, clock: 'caller' })
      await store.start()
      await expectLikeToday(store)
      await dropSchema(schemas.pool, schema)
    })

    const subject = {
      async create() {
        const schema = await releasedSchema(schemas.pool, version)
        await emptySchema(schemas.pool, schema)
        return schemas.create(schema)
      },
      dispose: (store: unknown) => schemas.dispose(store as GatewayStore),
    }
    describeLedger({ describe, it: test, expect }, subject)
    describeUsageStore({ describe, it: test, expect }, subject)
  })
})

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

  test('a step may take longer than the server lets statements of this user', async () => {
    const schema = freshSchemaName()
    const client = await schemas.pool.connect()
    await client.query("SET statement_timeout = '20ms'")
    await client.query('BEGIN')
    const first = await migrate(client, schema, 'start', [['SELECT pg_sleep(0.1)', ...MIGRATIONS[0]!]]).then(
      () => 'migrated',
      String,
    )
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

  test("keeps the rows and the host's functions when a later step is applied", async () => {
    const store = await schemas.create()
    const schema = schemas.schemaOf(store)
    await store.ledger.createAccount({ id: 'account_1' }, 1)
    const client = await schemas.pool.connect()
    await client.query(`CREATE FUNCTION ${schema}.of_the_host() RETURNS integer LANGUAGE sql AS 'SELECT 7'; BEGIN`)
    await migrate(client, schema, 'start', [...MIGRATIONS, ['CREATE TABLE later (id text)']])
    await client.query('COMMIT')
    client.release()

    const { rows } = await schemas.pool.query(`SELECT ${schema}.of_the_host() AS answer, * FROM ${schema}.later`)
    const { rows: versions } = await schemas.pool.query(`SELECT max(version) AS newest FROM ${schema}.migrations`)

    expect([rows, versions]).toEqual([[], [{ newest: MIGRATIONS.length + 1 }]])
    expect(await store.ledger.reserve(exampleReservation({ amount: 0n }), 1)).toEqual({ status: 'held' })
    await schemas.dispose(store)
  })

  test('calls of a running process succeed while a migration replaces the functions', async () => {
    const store = await schemas.create()
    const schema = schemas.schemaOf(store)
    await store.ledger.createAccount({ id: 'account_1', billing: 'metered' }, 1)
    let isOver = false
    let charged = 0n
    const lanes = Array.from({ length: 8 }, async (_, lane) => {
      for (let index = 0; !isOver; index++) {
        const holdId = `hold_${lane}_${index}`
        await store.ledger.reserve(exampleReservation({ holdId, amount: 1n }), 1)
        await store.ledger.settle({ holdId, amount: 1n, description: 'chat' }, 1)
        charged++
      }
    })
    const migrating = async () => {
      for (let count = 0; count < 15; count++) {
        await schemas.pool.query(`DROP FUNCTION ${schema}.release_claim`)
        await store.start()
      }
      isOver = true
    }

    await Promise.all([migrating(), ...lanes])

    expect(await store.ledger.account('account_1')).toMatchObject({ owed: charged })
    await schemas.dispose(store)
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
