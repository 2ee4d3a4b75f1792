import type { KeyRecord, KeyStore } from '../key-store.ts'
import { assertAmount } from '../ledger.ts'
import type { KeyScopes } from '../principal.ts'
import type { RateLimits } from '../rate-limiter.ts'
import { capOf, optionalTimeOf, timeOf, timeParameter } from './column-values.ts'
import type { PostgresConnection, PostgresRow } from './postgres-connection.ts'

const COLUMNS = `hash, id, account_id, label, scopes, limits, cap_amount::text, cap_period,
  created_at_ms::text, expires_at_ms::text, revoked_at_ms::text`

/** API keys in PostgreSQL. */
export function postgresKeys({ run }: PostgresConnection, schema: string): KeyStore {
  return {
    async findByHash(hash) {
      const [row] = await run(`SELECT ${COLUMNS} FROM ${schema}.keys WHERE hash = $1`, [hash])
      return row === undefined ? undefined : recordOf(row)
    },

    async insert(record) {
      const { spendingCap, expiresAtMs, revokedAtMs } = record
      if (spendingCap !== undefined) assertAmount(spendingCap.amount)
      await run(
        `INSERT INTO ${schema}.keys (hash, id, account_id, label, scopes, limits, cap_amount, cap_period,
          created_at_ms, expires_at_ms, revoked_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (hash) DO NOTHING`,
        [
          record.hash,
          record.id,
          record.accountId,
          record.label,
          JSON.stringify(record.scopes),
          record.limits === undefined ? null : JSON.stringify(record.limits),
          spendingCap === undefined ? null : String(spendingCap.amount),
          spendingCap?.period ?? null,
          timeParameter(record.createdAtMs),
          expiresAtMs === undefined ? null : timeParameter(expiresAtMs),
          revokedAtMs === undefined ? null : timeParameter(revokedAtMs),
        ],
      )
    },

    async list(accountId) {
      const rows = await run(
        `SELECT ${COLUMNS} FROM ${schema}.keys k WHERE $1::text IS NULL OR account_id = $1
        ORDER BY k.created_at_ms, k.id`,
        [accountId ?? null],
      )
      return rows.map(recordOf)
    },

    async revoke(keyId, nowMs) {
      const rows = await run(
        `UPDATE ${schema}.keys SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE id = $1 RETURNING id`,
        [keyId, timeParameter(nowMs)],
      )
      return rows.length > 0
    },

    async expire(keyId, expiresAtMs) {
      // `least` passes over a null: no end yet.
      const rows = await run(
        `UPDATE ${schema}.keys SET expires_at_ms = least(expires_at_ms, $2) WHERE id = $1 RETURNING id`,
        [keyId, timeParameter(expiresAtMs)],
      )
      return rows.length > 0
    },
  }
}

function recordOf(row: PostgresRow): KeyRecord {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    hash: row['hash'] as string,
    label: row['label'] as string,
    scopes: JSON.parse(row['scopes'] as string) as KeyScopes,
    limits: row['limits'] === null ? undefined : (JSON.parse(row['limits'] as string) as RateLimits),
    spendingCap: capOf(row['cap_amount'], row['cap_period']),
    createdAtMs: timeOf(row['created_at_ms']),
    expiresAtMs: optionalTimeOf(row['expires_at_ms']),
    revokedAtMs: optionalTimeOf(row['revoked_at_ms']),
  }
}
