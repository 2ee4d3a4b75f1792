import type { InteractionStore } from '../interaction-store.ts'
import { textParameter, timeOf, timeParameter } from './column-values.ts'
import type { PostgresConnection } from './postgres-connection.ts'

const FORGOTTEN_PER_SAVE = 2

/** Owners of conversations in PostgreSQL. */
export function postgresInteractions({ run }: PostgresConnection, schema: string): InteractionStore {
  return {
    async save(record) {
      // What has expired goes as new comes, so that nothing else need run for it.
      await run(
        `WITH forgotten AS (
          DELETE FROM ${schema}.interactions WHERE (account_id, id) IN (
            SELECT account_id, id FROM ${schema}.interactions
            WHERE expires_at_ms <= $7 AND (account_id, id) <> ($1, $2)
            ORDER BY expires_at_ms LIMIT ${FORGOTTEN_PER_SAVE} FOR UPDATE SKIP LOCKED
          )
        )
        INSERT INTO ${schema}.interactions
          (account_id, id, vendor, vendor_key, upstream_id, model, created_at_ms, expires_at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (account_id, id) DO UPDATE SET
          vendor = excluded.vendor, vendor_key = excluded.vendor_key, upstream_id = excluded.upstream_id,
          model = excluded.model, created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms`,
        [
          record.accountId,
          record.id,
          record.vendor,
          record.vendorKey,
          record.upstreamId,
          record.model,
          timeParameter(record.createdAtMs),
          timeParameter(record.expiresAtMs),
        ],
      )
    },

    async find(accountId, id, nowMs) {
      const [row] = await run(
        `SELECT vendor, vendor_key, upstream_id, model, created_at_ms::text, expires_at_ms::text
        FROM ${schema}.interactions WHERE account_id = $1 AND id = $2 AND expires_at_ms > $3`,
        [accountId, textParameter(id), timeParameter(nowMs)],
      )
      if (row === undefined) return undefined
      return {
        id,
        accountId,
        vendor: row['vendor'] as string,
        vendorKey: row['vendor_key'] as string,
        upstreamId: row['upstream_id'] as string,
        model: row['model'] as string,
        createdAtMs: timeOf(row['created_at_ms']),
        expiresAtMs: timeOf(row['expires_at_ms']),
      }
    },
  }
}
