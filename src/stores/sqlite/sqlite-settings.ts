import type { SettingStore, Settings } from '../setting-store.ts'
import type { SqliteDatabase, Synchronous } from './sqlite-database.ts'

/** Settings that the processes of a file share. */
export const SETTINGS_MIGRATION = `
CREATE TABLE signalbox_settings (
  name  TEXT PRIMARY KEY,
  value REAL NOT NULL
) STRICT, WITHOUT ROWID;
`

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
