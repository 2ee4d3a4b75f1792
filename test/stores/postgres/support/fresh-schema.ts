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
  /** A started, empty store. */
  create(): Promise<GatewayStore>
  /** The schema of a store that {@link create} made. */
  schemaOf(store: GatewayStore): string
  /** Closes a store and drops its schema. */
  dispose(store: GatewayStore): Promise<void>
  /** Ends the connections. */
  end(): Promise<void>
}

export function schemasOn(url: string): Schemas {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const names = new Map<GatewayStore, string>()
  const schemaOf = (store: GatewayStore): string => names.get(store)!
  return {
    pool,
    schemaOf,
    async create() {
      const schema = freshSchemaName()
      const store = postgresStore({ pool, schema, statementTimeoutMs: 30_000, clock: 'caller' })
      names.set(store, schema)
      await store.start()
      return store
    },
    async dispose(store) {
      await store.close()
      await dropSchema(pool, schemaOf(store))
      names.delete(store)
    },
    end: () => pool.end(),
  }
}

/** Drops a schema with everything in it, the journal included. */
export async function dropSchema(pool: pg.Pool, schema: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query(
      `SET client_min_messages = warning; DROP SCHEMA IF EXISTS ${schema} CASCADE; RESET client_min_messages`,
    )
  } finally {
    client.release()
  }
}
