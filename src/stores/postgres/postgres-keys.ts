import type { KeyStore } from '../key-store.ts'
import { assertAmount } from '../ledger.ts'
import { capValues, KEY_COLUMNS, keyOf, keyValues, limitsValue } from '../sql-rows.ts'
import { isStorable, timeParameter } from './column-values.ts'
import type { PostgresConnection } from './postgres-connection.ts'

/** Columns of a key, 64-bit integers as text. */
const SELECTED = `hash, id, account_id, label, scopes, limits, cap_amount::text, cap_period, names_end_users,
  created_at_ms::text, expires_at_ms::text, revoked_at_ms::text, replaces, tags`

/** API keys in PostgreSQL. */
export function postgresKeys({ run }: PostgresConnection, schema: string): KeyStore {
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
