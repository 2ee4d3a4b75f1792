import type { SettingStore } from '../setting-store.ts'
import type { PostgresConnection } from './postgres-connection.ts'

/** Settings that all processes share, in PostgreSQL. */
export function postgresSettings({ run }: PostgresConnection, schema: string): SettingStore {
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
