import { checkEnumerated, checkGivenMembers, memberNames } from '../../core/known-members.ts'
import { type BlobStore, blobsInRows } from '../blob-store.ts'
import type { GatewayStore } from '../gateway-store.ts'
import type { IdempotencyStore } from '../idempotency-store.ts'
import { sqlBatches, sqlFiles } from '../sql/sql-files.ts'
import { sqlAudit, sqlInteractions, sqlKeys, sqlSettings, sqlStored, sqlUsage } from '../sql/sql-records.ts'
import { sqlConversations, sqlResponses } from '../sql/sql-responses.ts'
import { sqlTasks, sqlWebhooks } from '../sql/sql-tasks.ts'
import { storeOn } from '../sql/statements.ts'
import { DEFAULT_SCHEMA, type MigrationMode, migrate, quoteIdentifier } from './migrations/migrate.ts'
import {
  answerParameters,
  claimResultOf,
  journalTime,
  type PostgresConnection,
  type PostgresPool,
  type PostgresTransactions,
  postgresConnection,
  RESERVATION_COLUMNS,
  textParameter,
  timeParameter,
} from './postgres-connection.ts'
import { postgresLedger } from './postgres-ledger.ts'
import { postgresDialect, postgresRunner } from './postgres-statements.ts'
import { postgresTasks } from './postgres-tasks.ts'
import { postgresUsage } from './postgres-usage.ts'

export type {
  PostgresClient,
  PostgresPool,
  PostgresResult,
  PostgresSession,
  PostgresTransactions,
} from './postgres-connection.ts'

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /**
   * `Pool` of `pg`, or any object with `query(text, values)` and `transaction(run)`. The host owns it: the store never closes it.
   * With a separate pool, the host's slow statements do not delay billing.
   */
  readonly pool: PostgresPool | PostgresTransactions
  /** Schema of the tables, created if missing. Default `signalbox`. */
  readonly schema?: string | undefined
  /**
   * When the schema is migrated: `start` (default) by the first start of a newer version, `never` only by `signalbox migrate`. With
   * `never`, the role needs no right to create, and a start fails if the schema is not the one that this version needs.
   */
  readonly migrate?: MigrationMode | undefined
  /** Maximum duration of one statement in milliseconds, including the wait for a connection. Default 5,000. */
  readonly statementTimeoutMs?: number | undefined
  /**
   * Clock that decides when a hold expires. Defaults to the server's clock, so that a process with a wrong clock ends no hold of
   * another. `caller`, for tests: the clock of the gateway.
   */
  readonly clock?: 'database' | 'caller' | undefined
  /**
   * Whether a reservation waits until it is on the disk of the server. Default false: a server that crashes may forget reservations
   * of its last moments. Their money is not held then, and their calls are charged against the balance when they end.
   */
  readonly durableReservations?: boolean | undefined
}

const POSTGRES_STORE_OPTIONS = memberNames<PostgresStoreOptions>()(
  'pool schema migrate statementTimeoutMs clock durableReservations',
)

/** Migrations wait for the process that runs them. */
const MIGRATION_TIMEOUT_MS = 120_000
/** PostgreSQL silently truncates longer names. */
const MAX_SCHEMA_BYTES = 63

/**
 * Creates a store for accounts, keys, holds, idempotency keys, tasks, messages and conversations in PostgreSQL 13 or newer, shared by any
 * number of processes and machines.
 *
 * Every change of money is one statement, and durable when its promise resolves, subject to the server's `synchronous_commit`. A
 * constraint rejects balances below zero, and a trigger rejects changes of the journal. If the server is unavailable, calls reject with
 * the client library's error, at the latest after `statementTimeoutMs`.
 *
 * @example
 * import pg from 'pg'
 * import { createGateway } from 'signalbox'
 * import { postgresStore } from 'signalbox/postgres'
 *
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
 * const gateway = createGateway({ vendors, prices, store: postgresStore({ pool }) })
 *
 * @throws TypeError without a pool, and for an unknown option; RangeError for a schema name that is empty or longer than 63 bytes, or
 * a timeout that is not above zero.
 */
export function postgresStore(options: PostgresStoreOptions): GatewayStore {
  checkGivenMembers(options, POSTGRES_STORE_OPTIONS, 'postgresStore')
  checkEnumerated(options.clock, ['database', 'caller'], 'postgresStore', 'clock')
  checkEnumerated(options.migrate, ['start', 'never'], 'postgresStore', 'migrate')
  const { pool, schema = DEFAULT_SCHEMA, statementTimeoutMs = 5_000, clock = 'database' } = options
  const { durableReservations = false } = options
  if (typeof pool?.query !== 'function')
    throw new TypeError('postgresStore: pool must be a pool of pg, or have the methods query and transaction')
  if (typeof schema !== 'string' || schema === '' || Buffer.byteLength(schema) > MAX_SCHEMA_BYTES)
    throw new RangeError(`postgresStore: schema must be a string of 1 to ${MAX_SCHEMA_BYTES} bytes`)
  if (!(statementTimeoutMs > 0)) throw new RangeError('postgresStore: statementTimeoutMs must be above zero')
  const connection = postgresConnection(pool, statementTimeoutMs)
  const quotedSchema = quoteIdentifier(schema)
  const dialect = postgresDialect(quotedSchema)
  const runner = postgresRunner(connection)
  const conversations = sqlConversations(dialect)
  const responses = sqlResponses(dialect, conversations)
  return {
    ledger: postgresLedger(connection, quotedSchema, { clock, statementTimeoutMs, durableReservations }),
    audit: storeOn(runner, sqlAudit(dialect)),
    settings: storeOn(runner, sqlSettings(dialect)),
    keys: storeOn(runner, sqlKeys(dialect)),
    idempotency: postgresIdempotency(connection, quotedSchema, clock),
    interactions: storeOn(runner, sqlInteractions(dialect)),
    responses: storeOn(runner, responses),
    files: storeOn(runner, sqlFiles(dialect)),
    blobs: postgresBlobs(connection, quotedSchema),
    batches: storeOn(runner, sqlBatches(dialect)),
    conversations: storeOn(runner, conversations),
    isShared: true,
    tasks: {
      ...storeOn(runner, sqlTasks(dialect)),
      ...postgresTasks(connection, { schema: quotedSchema, clock, saveResponse: responses.work.save }),
    },
    webhooks: storeOn(runner, sqlWebhooks(dialect)),
    usage: { ...storeOn(runner, sqlUsage(dialect)), ...postgresUsage(connection, quotedSchema) },
    stored: (accountId, kind, nowMs) => runner.read(sqlStored, dialect, accountId, kind, nowMs),
    async start() {
      const migration = postgresConnection(pool, MIGRATION_TIMEOUT_MS)
      await migration.transaction((session) => migrate(session, schema, options.migrate))
    },
    async checkWritable() {
      // A lock on no row: rejected by a read-only server, and the connection is closed then, as after any rejected change.
      await connection.run(`SELECT FROM ${quotedSchema}.accounts WHERE false FOR UPDATE`)
    },
    close: () => connection.close(),
  }
}

/** Idempotency keys in PostgreSQL, shared with the ledger. */
function postgresIdempotency(
  { run }: PostgresConnection,
  schema: string,
  clock: 'database' | 'caller',
): IdempotencyStore {
  return {
    async claim({ accountId, key, fingerprint, expiresAtMs, pendingUntilMs = expiresAtMs, claimedBy }, nowMs) {
      const [row] = await run(
        `SELECT ${RESERVATION_COLUMNS} FROM ${schema}.take_claim($1, $2, $3, $4, $5, $6, $7) AS o`,
        [
          accountId,
          key,
          fingerprint,
          timeParameter(pendingUntilMs),
          timeParameter(nowMs),
          claimedBy ?? null,
          clock === 'database' ? timeParameter(pendingUntilMs - nowMs) : null,
        ],
      )
      return claimResultOf(row!)
    },

    async complete({ accountId, key, fingerprint, expiresAtMs, claimedBy }, answer, nowMs) {
      const [row] = await run(
        `SELECT ${schema}.complete_claim($1, $2, $3, $4, $5, $6, $7, coalesce($8, ${schema}.now_ms()) + $9) AS is_kept`,
        [
          ...[accountId, key, fingerprint, ...answerParameters(answer), claimedBy ?? null],
          ...[journalTime(clock, nowMs), timeParameter(expiresAtMs - nowMs)],
        ],
      )
      return row!['is_kept'] as boolean
    },

    async release({ accountId, key, fingerprint, claimedBy }) {
      const values = [accountId, key, fingerprint, claimedBy ?? null]
      await run(`SELECT ${schema}.release_claim($1, $2, $3, $4)`, values)
    },
  }
}

/** Content in PostgreSQL, in rows of half a mebibyte. */
function postgresBlobs({ run, transaction }: PostgresConnection, schema: string): BlobStore {
  const table = `${schema}.blobs`
  return blobsInRows<string>({
    async begin({ id, expiresAtMs }) {
      const [begun] = await run(
        `INSERT INTO ${table} (id, expires_at_ms) VALUES ($1, $2) RETURNING number::text AS number`,
        [id, timeParameter(expiresAtMs)],
      )
      return begun!['number'] as string
    },
    addRow(number, place, bytes) {
      // Some clients accept bytes only as a Buffer.
      const row = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      return run(`INSERT INTO ${schema}.blob_rows (blob, place, bytes) VALUES ($1, $2, $3)`, [number, place, row])
    },
    finish: (number, id, byteLength) =>
      transaction(async (session) => {
        // Concurrent writers of the same id take turns.
        await session.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [`${schema}:${id}`])
        await session.query(`DELETE FROM ${table} WHERE id = $1 AND is_whole`, [id])
        const { rows } = await session.query(
          `UPDATE ${table} SET is_whole = true, byte_length = $2 WHERE number = $1 RETURNING number::text`,
          [number, byteLength],
        )
        if (rows.length === 0) throw new Error('the blob expired while it was written')
      }),
    remove: (number) => run(`DELETE FROM ${table} WHERE number = $1`, [number]),
    async find(id) {
      const [row] = await run(
        `SELECT number::text AS number, byte_length::text AS byte_length FROM ${table} WHERE id = $1 AND is_whole`,
        [textParameter(id)],
      )
      return row && { handle: row['number'] as string, byteLength: Number(row['byte_length']) }
    },
    async row(number, place) {
      const [row] = await run(`SELECT bytes FROM ${schema}.blob_rows WHERE blob = $1 AND place = $2`, [number, place])
      return row?.['bytes'] as Uint8Array | undefined
    },
    async delete(id) {
      const rows = await run(`DELETE FROM ${table} WHERE id = $1 AND is_whole RETURNING id`, [textParameter(id)])
      return rows.length > 0
    },
    async purge(nowMs, limit) {
      // One after the other, because content may be large, and a statement has a time limit.
      for (let count = 0; count < limit; count++) {
        const rows = await run(
          `DELETE FROM ${table} WHERE number IN (SELECT number FROM ${table} WHERE expires_at_ms <= $1
             LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id`,
          [timeParameter(nowMs)],
        )
        if (rows.length === 0) return count
      }
      return limit
    },
  })
}
