import type { GatewayStore } from '../gateway-store.ts'
import { migrate, quoteIdentifier } from './migrations/migrate.ts'
import { postgresConnection } from './postgres-connection.ts'
import { postgresIdempotency } from './postgres-idempotency.ts'
import { postgresInteractions } from './postgres-interactions.ts'
import { postgresKeys } from './postgres-keys.ts'
import { postgresLedger } from './postgres-ledger.ts'
import type { PostgresPool, PostgresTransactions } from './postgres-pool.ts'
import { postgresTasks } from './postgres-tasks.ts'
import { postgresWebhooks } from './postgres-webhooks.ts'

export type {
  PostgresClient,
  PostgresPool,
  PostgresResult,
  PostgresSession,
  PostgresTransactions,
} from './postgres-pool.ts'

/** Where the store keeps its tables. */
export interface PostgresStoreOptions {
  /**
   * A `Pool` of `pg`, or any object with `query(text, values)` and `transaction(run)`. It stays the host's: the store never
   * ends it. A pool of its own keeps the host's slow statements from delaying money.
   */
  readonly pool: PostgresPool | PostgresTransactions
  /** Schema of the tables, made when missing; `signalbox` when absent. */
  readonly schema?: string | undefined
  /** Most that one statement may take, the wait for a connection included, in milliseconds; 5,000 when absent. */
  readonly statementTimeoutMs?: number | undefined
}

/** Migrations wait for the process that runs them. */
const MIGRATION_TIMEOUT_MS = 120_000
/** PostgreSQL cuts longer names in silence. */
const MAX_SCHEMA_BYTES = 63

/**
 * Accounts, keys, holds, idempotency keys, tasks, messages and conversations in PostgreSQL 13 or newer, shared by any number
 * of processes and machines.
 *
 * Every change of money is one statement, and durable when its promise resolves, as far as `synchronous_commit` of the
 * server goes. Balances below zero are refused by a constraint, changes of the journal by a trigger. When the server is away,
 * calls are rejected with the client library's error, at the latest after `statementTimeoutMs`.
 *
 * @example
 * import pg from 'pg'
 * import { createGateway } from 'signalbox'
 * import { postgresStore } from 'signalbox/postgres'
 *
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
 * const gateway = createGateway({ vendors, prices, store: postgresStore({ pool }) })
 *
 * @throws RangeError for a schema name that is empty or longer than 63 bytes, or a timeout that is not above zero.
 */
export function postgresStore(options: PostgresStoreOptions): GatewayStore {
  const { pool, schema = 'signalbox', statementTimeoutMs = 5_000 } = options
  const schemaBytes = Buffer.byteLength(schema)
  if (schemaBytes === 0 || schemaBytes > MAX_SCHEMA_BYTES) throw new RangeError('a schema name has 1 to 63 bytes')
  if (!(statementTimeoutMs > 0)) throw new RangeError('statementTimeoutMs must be above zero')
  const connection = postgresConnection(pool, statementTimeoutMs)
  const quotedSchema = quoteIdentifier(schema)
  return {
    ledger: postgresLedger(connection, quotedSchema),
    keys: postgresKeys(connection, quotedSchema),
    idempotency: postgresIdempotency(connection, quotedSchema),
    interactions: postgresInteractions(connection, quotedSchema),
    tasks: postgresTasks(connection, quotedSchema),
    webhooks: postgresWebhooks(connection, quotedSchema),
    async start() {
      const migration = postgresConnection(pool, MIGRATION_TIMEOUT_MS)
      await migration.transaction((session) => migrate(session, schema))
    },
    close: () => connection.close(),
  }
}
