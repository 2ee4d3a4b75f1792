import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { METERS } from '../../src/catalog/prices/rate.ts'
import { METERS_BY_FIELD } from '../../src/core/usage.ts'
import { MIGRATIONS as POSTGRES_MIGRATIONS } from '../../src/stores/postgres/migrations/migrate.ts'
import type { SqliteDatabase } from '../../src/stores/sqlite/sqlite-database.ts'
import { MIGRATIONS, migrate } from '../../src/stores/sqlite/sqlite-migrations.ts'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/adding-a-meter.md')
const [sqliteStep = '', postgresStep = ''] = codeBlocks(page)
  .filter(({ language }) => language === 'sql')
  .map(({ code }) => code)
const TABLES = ['signalbox_usage', 'signalbox_usage_hours', 'signalbox_usage_model_days', 'signalbox_usage_days']

function columnsOf(database: SqliteDatabase, table: string): string[] {
  const rows = database.prepare(`SELECT name FROM pragma_table_info('${table}')`).all() as { readonly name: string }[]
  return rows.map(({ name }) => name)
}

test('the page has three steps that change at most eight files by hand, and names files that exist', () => {
  const paths = [
    ...new Set([...page.text.matchAll(/`((?:src|test|docs)\/[\w./-]+\.(?:ts|md))`/g)].map(([, path]) => path!)),
  ]
  const optional = 'src/catalog/prices/rate.ts'

  expect([...page.text.matchAll(/^## /gm)]).toHaveLength(3)
  expect(paths.filter((path) => path !== optional).length).toBeLessThanOrEqual(8)
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('the table of the page has every member of a row', () => {
  const source = readFileSync(join(ROOT, 'src/core/usage.ts'), 'utf8')
  const [, members = ''] = /interface UsageMeter \{([^}]*)\}/.exec(source) ?? []
  const [, ...rows] = firstTable(section(page, '1. The count'))

  expect(rows.map(([member]) => member)).toEqual([...members.matchAll(/readonly (\w+)\??:/g)].map(([, name]) => name))
})

test('its steps add the column to each table of a database of the newest version', () => {
  const database = new DatabaseSync(':memory:')
  migrate(database, 'it', MIGRATIONS)
  const before = TABLES.map((table) => columnsOf(database, table))
  migrate(database, 'it', [...MIGRATIONS, sqliteStep])

  const added = TABLES.map((table, index) =>
    columnsOf(database, table).filter((name) => !before[index]!.includes(name)),
  )
  expect(added).toEqual(TABLES.map(() => ['document_pages']))
  expect(postgresStep.match(/ALTER TABLE usage_(?:records|hours|model_days|days) ADD/g)).toHaveLength(TABLES.length)
  database.close()
})

test('each meter has its columns in both schemas', () => {
  const database = new DatabaseSync(':memory:')
  migrate(database, 'it', MIGRATIONS)
  const columns = METERS_BY_FIELD.map(([, { column }]) => column)
  const statements = POSTGRES_MIGRATIONS.flat()

  for (const table of TABLES) expect(columnsOf(database, table)).toEqual(expect.arrayContaining(columns))
  for (const table of ['usage_records', 'usage_hours', 'usage_model_days', 'usage_days']) {
    const made = statements.filter((statement) => new RegExp(`TABLE ${table}\\b`).test(statement)).join()
    expect(columns.filter((column) => !new RegExp(`\\b${column} `).test(made))).toEqual([])
  }
  database.close()
})

test('the pages on prices and metrics, and the JSON schema, name each meter', () => {
  const [, ...meters] = firstTable(section(readPage('docs/billing.md'), 'Meters'))
  const kinds = /- `kind` of tokens:[\s\S]*?(?=\n- )/.exec(readPage('docs/monitoring.md').text)?.[0] ?? ''
  const schema = readFileSync(join(ROOT, 'schemas/signalbox.config.schema.json'), 'utf8')

  expect(meters.map(([meter]) => meter)).toEqual([...METERS])
  expect(METERS_BY_FIELD.filter(([, { meter }]) => !kinds.includes(`\`${meter.replace(/_token$/, '')}\``))).toEqual([])
  expect(METERS.filter((meter) => !schema.includes(`"${meter}"`))).toEqual([])
})
