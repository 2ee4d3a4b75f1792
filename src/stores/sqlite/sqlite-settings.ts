import type { SettingStore, Settings } from '../retention.ts'
import type { StoredKind, StoredUsage } from '../sql-rows.ts'
import type { SqliteDatabase, Synchronous } from './sqlite-database.ts'

/** Settings of an open database, by synchronous calls. */
export type SqliteSettings = Synchronous<SettingStore>

/** Prepares the statements of the settings. */
export function sqliteSettings(database: SqliteDatabase): SqliteSettings {
  const select = database.prepare('SELECT name, value FROM signalbox_settings')
  const upsert = database.prepare(
    'INSERT INTO signalbox_settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
    read: () =>
      Object.fromEntries((select.all() as { name: string; value: number }[]).map(({ name, value }) => [name, value])),
    write(settings: Settings) {
      for (const [name, value] of Object.entries(settings)) upsert.run(name, value)
    },
  }
}

/** Tables of the kinds, the condition for rows that have not expired, and the size of a row if it is not `byte_length`. */
const TABLES: Readonly<Record<StoredKind, readonly [table: string, isLive: string, byteLength?: string]>> = {
  idempotencyKeys: ['signalbox_idempotency INDEXED BY signalbox_idempotency_stored', 'expires_at_ms > ?'],
  responses: ['signalbox_responses INDEXED BY signalbox_responses_stored', 'expires_at_ms > ?'],
  conversations: ['signalbox_conversations INDEXED BY signalbox_conversations_stored', 'expires_at_ms > ?'],
  files: ['signalbox_files', 'expires_at_ms > ?'],
  tasks: ['signalbox_tasks INDEXED BY signalbox_tasks_stored', '? IS NOT NULL'],
  webhookSecrets: ['signalbox_webhook_secrets', 'ifnull(expires_at_ms > ?, 1)', 'length(secret)'],
}

/** Returns how much an account has stored. */
export type SqliteStored = (accountId: string, kind: StoredKind, nowMs: number) => StoredUsage

/** Prepares the statements of {@link SqliteStored}. */
export function sqliteStored(database: SqliteDatabase): SqliteStored {
  const count = ([table, isLive, byteLength = 'byte_length']: (typeof TABLES)[StoredKind]) =>
    database.prepare(
      `SELECT count(*) AS count, ifnull(sum(${byteLength}), 0) AS byteLength FROM ${table} WHERE account_id = ? AND ${isLive}`,
    )
  const counts = Object.fromEntries(Object.entries(TABLES).map(([kind, table]) => [kind, count(table)]))
  return (accountId, kind, nowMs) => {
    const row = counts[kind]!.get(accountId, nowMs) as Record<keyof StoredUsage, number | bigint>
    return { count: Number(row.count), byteLength: Number(row.byteLength) }
  }
}
