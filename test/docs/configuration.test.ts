import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { readConfiguration } from '../../src/cli/configuration.ts'
import { configuredVendors } from '../../src/cli/configured-vendors.ts'
import { readServeSettings } from '../../src/cli/serve-settings.ts'
import { SETTINGS } from '../../src/cli/settings.ts'
import { unpricedBy } from '../../src/pipeline/model-notices.ts'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/configuration.md')
const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

const ENVIRONMENT = {
  DATABASE_URL: 'postgres://db.example/money',
  REDIS_URL: 'redis://cache.example',
  SIGNALBOX_OPERATOR_KEY: 'operator-key-0123456789ab',
  OUR_OPENAI_KEY: 'k',
}

async function read(language: string, name: string) {
  const block = codeBlocks(page).find((candidate) => candidate.language === language)
  const path = join(folder, name)
  writeFileSync(path, block?.code ?? '')
  const given = { option: () => path, flag: () => false }
  const configuration = await readConfiguration(given, ENVIRONMENT, (option) => option === 'config')
  return { configuration, settings: readServeSettings(configuration.environment, configuration.documents) }
}

test('the file of the page is one that serve takes', async () => {
  const { configuration, settings } = await read('json', 'signalbox.config.json')
  const { environment, documents } = configuration
  const vendors = configuredVendors(environment, undefined, new Set(['gpu']), documents)

  expect(settings).toMatchObject({ store: { kind: 'postgres' }, expectedInstances: 4, plans: { free: {} } })
  expect(configuration.serveConsole).toBe(true)
  for (const id of ['openai', 'gpu'])
    expect(vendors.find(({ vendor }) => vendor.id === id)?.state, id).toBe('configured')
})

test('the file of the page prices its models in full', async () => {
  const { settings } = await read('json', 'signalbox.config.json')
  const catalog = createCatalog(BUILT_IN_MODELS)
  const { prices = undefined } = settings.prices ?? {}
  const rows = prices !== undefined && 'forCatalog' in prices ? prices.forCatalog(catalog).rows() : []
  const judge = unpricedBy(rows)

  expect(settings.models.map(({ id }) => id)).toEqual(['our-chat'])
  expect(settings.models.map(({ id }) => judge({ id, kinds: ['chat'] }))).toEqual([undefined])
})

test('the module of the page is one that serve takes', async () => {
  const { settings } = await read('js', 'signalbox.config.mjs')

  expect(settings).toMatchObject({ host: '127.0.0.1', limits: { perKey: { requestsPerMinute: 600 } } })
})

test('the table has every setting with its variable and its flag', () => {
  const [, ...rows] = firstTable(section(page, 'The file'))

  expect(rows.slice(0, -2)).toEqual(
    SETTINGS.map(({ member, variable, flag }) => [member ?? '', variable, flag === undefined ? '' : `--${flag}`]),
  )
})

test('the schema that the page names is in the package', () => {
  expect(page.text).toContain('schemas/signalbox.config.schema.json')
  expect(existsSync(join(ROOT, 'schemas/signalbox.config.schema.json'))).toBe(true)
})
