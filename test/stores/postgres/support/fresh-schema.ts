import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { GatewayStore } from '../../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../../src/stores/postgres/postgres-store.ts'

/** A name that no other test uses. */
export function freshSchemaName(): string {
  return `signalbox_test_${randomBytes(8).toString('hex')}`
}

/** Makes stores on one server, each with a schema of its own. */
export interface Schemas {
  readonly pool: pg.Pool
  /** Creates a started store: empty, or on the given schema. */
  create(schema?: string): Promise<GatewayStore>
  /** The schema of a store that {@link create} made. */
  schemaOf(store: GatewayStore): string
  /** Closes a store. Its schema is emptied for the next one, or dropped at the end. */
  dispose(store: GatewayStore): Promise<void>
  /** Ends the connections. */
  end(): Promise<void>
}

/**
 * Tests that follow each other get a schema that was emptied, because making one takes longer than most tests. `alter`: the tests
 * change the tables, or leave statements behind that the server still works on, so each gets a schema of its own.
 */
export function schemasOn(url: string, use: 'share' | 'alter' = 'share'): Schemas {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const names = new Map<GatewayStore, string>()
  const emptied: string[] = []
  const altered: string[] = []
  const schemaOf = (store: GatewayStore): string => names.get(store)!
  return {
    pool,
    schemaOf,
    async create(given) {
      const schema = given ?? emptied.pop() ?? freshSchemaName()
      const store = postgresStore({ pool, schema, statementTimeoutMs: 30_000, clock: 'caller' })
      names.set(store, schema)
      await store.start()
      return store
    },
    async dispose(store) {
      await store.close()
      const schema = schemaOf(store)
      names.delete(store)
      if (use === 'share') {
        await emptySchema(pool, schema)
        emptied.push(schema)
      } else altered.push(schema)
    },
    async end() {
      for (const schema of [...emptied, ...altered, ...names.values()]) await dropSchema(pool, schema)
      await pool.end()
    },
  }
}

/** Removes what a test has written, the journal included, so that a store starts as in a new schema. */
export async function emptySchema(pool: pg.Pool, schema: string): Promise<void> {
  await onOneConnection(pool, async (client) => {
    const { rows } = await client.query(
      "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename NOT IN ('migrations', 'usage_mark')",
      [schema],
    )
    const deletes = rows.map(({ tablename }: { tablename: string }) => `DELETE FROM ${schema}.${tablename}`)
    await client.query(`BEGIN; SET LOCAL session_replication_role = replica; ${deletes.join('; ')};
      UPDATE ${schema}.usage_mark SET mark = 0, as_of_ms = 0; COMMIT`)
  })
}

/** Drops a schema with everything in it, the journal included. */
export async function dropSchema(pool: pg.Pool, schema: string): Promise<void> {
  await onOneConnection(pool, (client) =>
    client.query(
      `SET client_min_messages = warning; DROP SCHEMA IF EXISTS ${schema} CASCADE; RESET client_min_messages`,
    ),
  )
}

/** A connection on which a step failed is closed: its transaction would go on to the next that borrows it. */
async function onOneConnection(pool: pg.Pool, use: (client: pg.PoolClient) => Promise<unknown>): Promise<void> {
  const client = await pool.connect()
  let failed = true
  try {
    await use(client)
    failed = false
  } finally {
    client.release(failed)
  }
}
