import { checkEnumerated, checkGivenMembers, memberNames } from '../../core/known-members.ts'
import type { KeyStore } from '../api-keys.ts'
import { AUDIT_DELETE_BATCH, AUDIT_RETENTION_MS, type AuditStore, auditDetails, auditEntryOf } from '../audit-store.ts'
import type { GatewayStore } from '../gateway-store.ts'
import type { IdempotencyStore } from '../idempotency-store.ts'
import { assertAmount } from '../ledger.ts'
import type { InteractionStore } from '../response-cache.ts'
import type { SettingStore } from '../retention.ts'
import {
  capValues,
  INTERACTION_COLUMNS,
  interactionOf,
  interactionValues,
  KEY_COLUMNS,
  keyOf,
  keyValues,
  limitsValue,
  type StoredKind,
  type StoredUsage,
} from '../sql-rows.ts'
import { migrate, quoteIdentifier } from './migrations/migrate.ts'
import {
  answerParameters,
  claimResultOf,
  isStorable,
  journalTime,
  type PostgresConnection,
  type PostgresPool,
  type PostgresTransactions,
  postgresConnection,
  RESERVATION_COLUMNS,
  textParameter,
  timeParameter,
} from './postgres-connection.ts'
import { postgresBatches, postgresBlobs, postgresFiles } from './postgres-files.ts'
import { postgresLedger } from './postgres-ledger.ts'
import { postgresConversations, postgresResponses } from './postgres-responses.ts'
import { postgresTasks, postgresWebhooks } from './postgres-tasks.ts'
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
  /** Maximum duration of one statement in milliseconds, including the wait for a connection. Default 5,000. */
  readonly statementTimeoutMs?: number | undefined
  /**
   * Clock that decides when a hold expires. Defaults to the server's clock, so that a process with a wrong clock ends no hold of
   * another. `caller`, for tests: the clock of the gateway.
   */
  readonly clock?: 'database' | 'caller' | undefined
}

const POSTGRES_STORE_OPTIONS = memberNames<PostgresStoreOptions>()('pool schema statementTimeoutMs clock')

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
 * @throws TypeError without a pool, and for an unknown option; RangeError for a schema name that is empty or longer than 63
 * bytes,
 * or a timeout that is not above zero.
 */
export function postgresStore(options: PostgresStoreOptions): GatewayStore {
  checkGivenMembers(options, POSTGRES_STORE_OPTIONS, 'postgresStore')
  checkEnumerated(options.clock, ['database', 'caller'], 'postgresStore', 'clock')
  const { pool, schema = 'signalbox', statementTimeoutMs = 5_000, clock = 'database' } = options
  if (typeof pool?.query !== 'function')
    throw new TypeError('postgresStore: pool must be a pool of pg, or have a method query')
  const schemaBytes = Buffer.byteLength(schema)
  if (schemaBytes === 0 || schemaBytes > MAX_SCHEMA_BYTES) throw new RangeError('a schema name has 1 to 63 bytes')
  if (!(statementTimeoutMs > 0)) throw new RangeError('statementTimeoutMs must be above zero')
  const connection = postgresConnection(pool, statementTimeoutMs)
  const quotedSchema = quoteIdentifier(schema)
  return {
    ledger: postgresLedger(connection, quotedSchema, clock),
    audit: postgresAudit(connection, quotedSchema),
    settings: postgresSettings(connection, quotedSchema),
    keys: postgresKeys(connection, quotedSchema),
    idempotency: postgresIdempotency(connection, quotedSchema, clock),
    interactions: postgresInteractions(connection, quotedSchema),
    responses: postgresResponses(connection, quotedSchema),
    files: postgresFiles(connection, quotedSchema),
    blobs: postgresBlobs(connection, quotedSchema),
    batches: postgresBatches(connection, quotedSchema),
    conversations: postgresConversations(connection, quotedSchema),
    isShared: true,
    tasks: postgresTasks(connection, quotedSchema, clock),
    webhooks: postgresWebhooks(connection, quotedSchema),
    usage: postgresUsage(connection, quotedSchema),
    stored: (accountId, kind, nowMs) => storedOf(connection, quotedSchema, { accountId, kind, nowMs }),
    async start() {
      const migration = postgresConnection(pool, MIGRATION_TIMEOUT_MS)
      await migration.transaction((session) => migrate(session, schema))
    },
    async checkWritable() {
      // A lock on no row: rejected by a read-only server, and the connection is closed then, as after any rejected change.
      await connection.run(`SELECT FROM ${quotedSchema}.accounts WHERE false FOR UPDATE`)
    },
    close: () => connection.close(),
  }
}

/** Tables of the kinds, the size of a row, and the condition for unexpired rows. `octet_length` reads no large values. */
const STORED_TABLES: Readonly<Record<StoredKind, readonly [table: string, byteLength: string, isLive: string]>> = {
  idempotencyKeys: ['claims', 'coalesce(octet_length(answer_body), 0)', 'expires_at_ms > $2'],
  responses: ['responses', 'octet_length(input) + octet_length(response)', 'expires_at_ms > $2'],
  conversations: ['conversations', 'byte_length', 'expires_at_ms > $2'],
  files: ['files', 'byte_length', 'expires_at_ms > $2'],
  tasks: ['tasks', 'octet_length(details)', '$2::bigint IS NOT NULL'],
  webhookSecrets: ['webhook_secrets', 'octet_length(secret)', 'coalesce(expires_at_ms > $2, true)'],
}

async function storedOf(
  { run }: PostgresConnection,
  schema: string,
  { accountId, kind, nowMs }: { readonly accountId: string; readonly kind: StoredKind; readonly nowMs: number },
): Promise<StoredUsage> {
  const [table, byteLength, isLive] = STORED_TABLES[kind]
  const [row] = await run(
    `SELECT count(*)::text AS count, coalesce(sum(${byteLength}), 0)::text AS byte_length
    FROM ${schema}.${table} WHERE account_id = $1 AND ${isLive}`,
    [accountId, timeParameter(nowMs)],
  )
  return { count: Number(row!['count']), byteLength: Number(row!['byte_length']) }
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

const PURGED_PER_SAVE = 2

/** Owners of conversations in PostgreSQL. */
function postgresInteractions({ run }: PostgresConnection, schema: string): InteractionStore {
  return {
    async save(record) {
      // Each insert deletes some expired rows, so no separate job is needed.
      await run(
        `WITH purged AS (
          DELETE FROM ${schema}.interactions WHERE (account_id, id) IN (
            SELECT account_id, id FROM ${schema}.interactions
            WHERE expires_at_ms <= $7 AND (account_id, id) <> ($1, $2)
            ORDER BY expires_at_ms LIMIT ${PURGED_PER_SAVE} FOR UPDATE SKIP LOCKED
          )
        )
        INSERT INTO ${schema}.interactions (${INTERACTION_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (account_id, id) DO UPDATE SET
          vendor = excluded.vendor, vendor_key = excluded.vendor_key, upstream_id = excluded.upstream_id,
          model = excluded.model, created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms`,
        interactionValues(record, timeParameter),
      )
    },

    async find(accountId, id, nowMs) {
      const [row] = await run(
        `SELECT account_id, id, vendor, vendor_key, upstream_id, model, created_at_ms::text, expires_at_ms::text
        FROM ${schema}.interactions WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3`,
        [accountId, textParameter(id), timeParameter(nowMs)],
      )
      return row === undefined ? undefined : interactionOf(row)
    },
  }
}

/** Changes by operators in PostgreSQL. */
function postgresAudit({ run }: PostgresConnection, schema: string): AuditStore {
  return {
    async add(entry) {
      // PostgreSQL stores no NUL in a text; the escaped form in JSON stays.
      const subject = entry.subject?.replaceAll('\0', '\\u0000') ?? null
      await run(
        `WITH old AS (
          DELETE FROM ${schema}.audit WHERE id IN (
            SELECT id FROM ${schema}.audit WHERE created_at_ms <= $5
            ORDER BY created_at_ms LIMIT ${AUDIT_DELETE_BATCH} FOR UPDATE SKIP LOCKED
          )
        )
        INSERT INTO ${schema}.audit (id, created_at_ms, subject, details) VALUES ($1, $2, $3, $4)`,
        [
          ...[entry.id, timeParameter(entry.createdAtMs), subject, auditDetails(entry)],
          timeParameter(entry.createdAtMs - AUDIT_RETENTION_MS),
        ],
      )
    },

    async list({ subject, fromMs, untilMs, after, limit }) {
      if (![subject, after?.id].every((text) => isStorable(text ?? ''))) return []
      const values: unknown[] = [Math.max(0, limit)]
      const conditions: string[] = ['true']
      if (subject !== undefined) conditions.push(`t.subject = $${values.push(subject)}`)
      if (fromMs !== undefined) conditions.push(`t.created_at_ms >= $${values.push(timeParameter(fromMs))}`)
      if (untilMs !== undefined) conditions.push(`t.created_at_ms < $${values.push(timeParameter(untilMs))}`)
      if (after !== undefined) {
        const place = `$${values.push(timeParameter(after.createdAtMs))}, $${values.push(after.id)}`
        conditions.push(`(t.created_at_ms, t.id COLLATE "C") < (${place})`)
      }
      const rows = await run(
        `SELECT t.id, t.created_at_ms::text, t.subject, t.details FROM ${schema}.audit t
        WHERE ${conditions.join(' AND ')} ORDER BY t.created_at_ms DESC, t.id COLLATE "C" DESC LIMIT $1`,
        values,
      )
      return rows.map(auditEntryOf)
    },
  }
}

/** Columns of a key, 64-bit integers as text. */
const SELECTED = `hash, id, account_id, label, scopes, limits, cap_amount::text, cap_period, names_end_users,
  created_at_ms::text, expires_at_ms::text, revoked_at_ms::text, replaces, tags`

/** API keys in PostgreSQL. */
function postgresKeys({ run }: PostgresConnection, schema: string): KeyStore {
  return {
    async findByHash(hash) {
      const [row] = await run(`SELECT ${SELECTED} FROM ${schema}.keys WHERE hash = $1`, [hash])
      return row === undefined ? undefined : keyOf(row)
    },

    async find(keyId) {
      const [row] = await run(`SELECT ${SELECTED} FROM ${schema}.keys WHERE id = $1`, [keyId])
      return row === undefined ? undefined : keyOf(row)
    },

    async insert(record) {
      if (record.spendingCap !== undefined) assertAmount(record.spendingCap.amount)
      await run(
        `INSERT INTO ${schema}.keys (${KEY_COLUMNS})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (hash) DO NOTHING`,
        keyValues(record, timeParameter),
      )
    },

    async list(accountId) {
      const rows = await run(
        `SELECT ${SELECTED} FROM ${schema}.keys k WHERE $1::text IS NULL OR account_id = $1
        ORDER BY k.created_at_ms, k.id COLLATE "C"`,
        [accountId ?? null],
      )
      return rows.map(keyOf)
    },

    async page({ accountId, after, limit }) {
      if (!isStorable(`${accountId ?? ''}${after?.id ?? ''}`)) return []
      const values: unknown[] = [timeParameter(after?.createdAtMs ?? -1), after?.id ?? '', Math.max(0, limit)]
      const account = accountId === undefined ? '' : `k.account_id = $${values.push(accountId)} AND`
      const rows = await run(
        `SELECT ${SELECTED} FROM ${schema}.keys k
        WHERE ${account} (k.created_at_ms, k.id COLLATE "C") > ($1, $2)
        ORDER BY k.created_at_ms, k.id COLLATE "C" LIMIT $3`,
        values,
      )
      return rows.map(keyOf)
    },

    async update(keyId, { accountId, limits, spendingCap, namesEndUsers }) {
      if (spendingCap != null) assertAmount(spendingCap.amount)
      const rows = await run(
        `UPDATE ${schema}.keys SET account_id = coalesce($2, account_id), limits = CASE WHEN $3 THEN $4 ELSE limits END,
          cap_amount = CASE WHEN $5 THEN $6 ELSE cap_amount END, cap_period = CASE WHEN $5 THEN $7 ELSE cap_period END,
          names_end_users = coalesce($8, names_end_users)
        WHERE id = $1 RETURNING id`,
        [
          keyId,
          accountId ?? null,
          limits !== undefined,
          limitsValue(limits),
          spendingCap !== undefined,
          ...capValues(spendingCap),
          namesEndUsers === undefined ? null : Number(namesEndUsers),
        ],
      )
      return rows.length > 0
    },

    async revoke(keyId, nowMs) {
      const rows = await run(
        `UPDATE ${schema}.keys SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE id = $1 RETURNING id`,
        [keyId, timeParameter(nowMs)],
      )
      return rows.length > 0
    },

    async expire(keyId, expiresAtMs) {
      // `least` ignores null, which means no expiry yet.
      const rows = await run(
        `UPDATE ${schema}.keys SET expires_at_ms = least(expires_at_ms, $2) WHERE id = $1 RETURNING id`,
        [keyId, timeParameter(expiresAtMs)],
      )
      return rows.length > 0
    },
  }
}

/** Settings that all processes share, in PostgreSQL. */
function postgresSettings({ run }: PostgresConnection, schema: string): SettingStore {
  return {
    async read() {
      const rows = await run(`SELECT name, value::text FROM ${schema}.settings`, [])
      return Object.fromEntries(rows.map(({ name, value }) => [name as string, Number(value)]))
    },
    async write(settings) {
      await run(
        `INSERT INTO ${schema}.settings (name, value) SELECT * FROM unnest($1::text[], $2::text[]::float8[])
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
        [Object.keys(settings), Object.values(settings).map(String)],
      )
    },
  }
}
