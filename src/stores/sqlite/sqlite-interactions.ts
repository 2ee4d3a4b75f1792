import type { InteractionRecord } from '../interaction-store.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import { wholeMilliseconds } from './whole-milliseconds.ts'

interface InteractionRow {
  readonly account_id: string
  readonly id: string
  readonly vendor: string
  readonly vendor_key: string
  readonly upstream_id: string
  readonly model: string
  readonly created_at_ms: number
  readonly expires_at_ms: number
}

const FORGOTTEN_PER_SAVE = 2

/** Owners of conversations, inside the transaction of whoever calls. */
export interface SqliteInteractions {
  save(record: InteractionRecord): void
  find(accountId: string, id: string, nowMs: number): InteractionRecord | undefined
}

/** Prepares the statements of {@link SqliteInteractions}. */
export function sqliteInteractions(database: SqliteDatabase): SqliteInteractions {
  const replace = database.prepare(
    `INSERT OR REPLACE INTO signalbox_interactions
       (account_id, id, vendor, vendor_key, upstream_id, model, created_at_ms, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const forget = database.prepare(
    `DELETE FROM signalbox_interactions WHERE (account_id, id) IN
       (SELECT account_id, id FROM signalbox_interactions WHERE expires_at_ms <= ? LIMIT ${FORGOTTEN_PER_SAVE})`,
  )
  const select = database.prepare(
    'SELECT * FROM signalbox_interactions WHERE account_id = ? AND id = ? AND expires_at_ms > ?',
  )

  return {
    save(record) {
      // What has expired goes as new comes, so that nothing else need run for it.
      forget.run(record.createdAtMs)
      replace.run(
        record.accountId,
        record.id,
        record.vendor,
        record.vendorKey,
        record.upstreamId,
        record.model,
        wholeMilliseconds(record.createdAtMs),
        wholeMilliseconds(record.expiresAtMs),
      )
    },
    find(accountId, id, nowMs) {
      const row = select.get(accountId, id, nowMs) as InteractionRow | undefined
      return row === undefined ? undefined : recordOf(row)
    },
  }
}

function recordOf(row: InteractionRow): InteractionRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    vendor: row.vendor,
    vendorKey: row.vendor_key,
    upstreamId: row.upstream_id,
    model: row.model,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}
