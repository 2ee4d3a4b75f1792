import type { KeyRecord, KeyStore } from '../key-store.ts'
import { spendingCapOf } from './sqlite-accounts.ts'
import { prepareExact, type SqliteDatabase } from './sqlite-database.ts'
import { wholeMilliseconds, wholeMillisecondsOrNull } from './whole-milliseconds.ts'

interface KeyRow {
  readonly id: string
  readonly account_id: string
  readonly hash: string
  readonly label: string
  readonly scopes: string
  readonly limits: string | null
  readonly cap_amount: bigint | null
  readonly cap_period: 'day' | 'month' | null
  readonly created_at_ms: bigint
  readonly expires_at_ms: bigint | null
  readonly revoked_at_ms: bigint | null
}

/** API keys, inside the transaction of whoever calls. */
export type SqliteKeyTable = {
  readonly [Method in keyof KeyStore]: (
    ...parameters: Parameters<KeyStore[Method]>
  ) => Awaited<ReturnType<KeyStore[Method]>>
}

/** Prepares the statements of {@link SqliteKeyTable}. */
export function sqliteKeyTable(database: SqliteDatabase): SqliteKeyTable {
  const selectByHash = prepareExact(database, 'SELECT * FROM signalbox_keys WHERE hash = ?')
  const selectAll = prepareExact(database, 'SELECT * FROM signalbox_keys ORDER BY created_at_ms, rowid')
  const selectByAccount = prepareExact(
    database,
    'SELECT * FROM signalbox_keys WHERE account_id = ? ORDER BY created_at_ms, rowid',
  )
  const insert = database.prepare(
    `INSERT INTO signalbox_keys (id, account_id, hash, label, scopes, limits, cap_amount, cap_period,
       created_at_ms, expires_at_ms, revoked_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (hash) DO NOTHING`,
  )
  const revoke = database.prepare('UPDATE signalbox_keys SET revoked_at_ms = ifnull(revoked_at_ms, ?) WHERE id = ?')
  const expire = database.prepare(
    'UPDATE signalbox_keys SET expires_at_ms = min(ifnull(expires_at_ms, ?), ?) WHERE id = ?',
  )

  return {
    findByHash(hash) {
      const row = selectByHash.get(hash) as KeyRow | undefined
      return row === undefined ? undefined : recordOf(row)
    },
    insert(record) {
      insert.run(
        record.id,
        record.accountId,
        record.hash,
        record.label,
        JSON.stringify(record.scopes),
        record.limits === undefined ? null : JSON.stringify(record.limits),
        record.spendingCap?.amount ?? null,
        record.spendingCap?.period ?? null,
        wholeMilliseconds(record.createdAtMs),
        wholeMillisecondsOrNull(record.expiresAtMs),
        wholeMillisecondsOrNull(record.revokedAtMs),
      )
    },
    list(accountId) {
      const rows = accountId === undefined ? selectAll.all() : selectByAccount.all(accountId)
      return (rows as KeyRow[]).map(recordOf)
    },
    revoke: (keyId, nowMs) => Number(revoke.run(wholeMilliseconds(nowMs), keyId).changes) > 0,
    expire(keyId, expiresAtMs) {
      const timeMs = wholeMilliseconds(expiresAtMs)
      return Number(expire.run(timeMs, timeMs, keyId).changes) > 0
    },
  }
}

function recordOf(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    hash: row.hash,
    label: row.label,
    scopes: JSON.parse(row.scopes) as KeyRecord['scopes'],
    limits: row.limits === null ? undefined : (JSON.parse(row.limits) as KeyRecord['limits']),
    spendingCap: spendingCapOf(row),
    createdAtMs: Number(row.created_at_ms),
    expiresAtMs: row.expires_at_ms === null ? undefined : Number(row.expires_at_ms),
    revokedAtMs: row.revoked_at_ms === null ? undefined : Number(row.revoked_at_ms),
  }
}
