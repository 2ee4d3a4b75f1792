import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { FUNCTIONS, MIGRATIONS } from '../../../../src/stores/postgres/migrations/migrate.ts'
import { freshSchemaName } from './fresh-schema.ts'

function fixturePath(version: number): string {
  return join(import.meta.dirname, `../fixtures/version-${version}.sql`)
}

/** Creates a schema as a released version has left it, with rows, and returns its name. */
export async function releasedSchema(pool: pg.Pool, version: number): Promise<string> {
  const schema = freshSchemaName()
  const statements = readFileSync(fixturePath(version), 'utf8')
  await pool.query(`BEGIN; CREATE SCHEMA ${schema}; SET LOCAL search_path = ${schema}, pg_temp; ${statements} COMMIT`)
  return schema
}

/** Writes the fixture of the newest version from a filled schema: the statements that create it, and its rows. */
export async function writeReleasedSchema(pool: pg.Pool, schema: string): Promise<void> {
  const { rows: tables } = await pool.query<{ name: string }>(
    'SELECT relname AS name FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = $2 ORDER BY oid',
    [schema, 'r'],
  )
  const inserts: string[] = []
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${schema}.${name} t`)
    for (const { row } of rows)
      inserts.push(
        `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_record(NULL::${name}, $row$${row}$row$)`,
      )
  }
  const { rows: sequences } = await pool.query<{ table: string; column: string }>(
    `SELECT table_name AS table, column_name AS column FROM information_schema.columns
     WHERE table_schema = $1 AND is_identity = 'YES' ORDER BY table_name`,
    [schema],
  )
  const numbers = sequences.map(
    ({ table, column }) =>
      `SELECT setval(pg_get_serial_sequence('${table}', '${column}'), coalesce(max(${column}), 0) + 1, false) FROM ${table}`,
  )
  const migrations =
    'CREATE TABLE migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())'
  const statements = [migrations, ...MIGRATIONS.flat(), 'DELETE FROM usage_mark', ...FUNCTIONS, ...inserts, ...numbers]
  writeFileSync(fixturePath(MIGRATIONS.length), statements.map((statement) => `${statement};\n`).join(''))
}
