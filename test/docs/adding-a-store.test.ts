import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { describeKeyStore } from '../../src/testing/index.ts'
import { startGateway } from '../support/start-gateway.ts'
import { fileKeys } from './support/file-keys.ts'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/adding-a-store.md')

describe("the page's driver", () => {
  let folder: string
  let files = 0
  const newPath = (): string => join(folder, `keys-${++files}.json`)

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'signalbox-docs-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  describeKeyStore({ describe, it, expect }, { create: () => fileKeys(newPath()) })

  test('is equal on the page and in this test', () => {
    const code = readFileSync(join(import.meta.dirname, 'support/file-keys.ts'), 'utf8')
    const shown = codeBlocks(page).find((block) => block.code.includes('export function fileKeys('))

    expect(shown?.code).toBe(code.replace('../../../src/index.ts', 'signalbox'))
  })

  test('keeps no change from another that comes at the same time', async () => {
    const keys = fileKeys(newPath())
    const record = { accountId: 'acct_1', label: '', scopes: {}, limits: undefined, spendingCap: undefined }
    const times = { createdAtMs: 1, expiresAtMs: undefined, revokedAtMs: undefined }
    const ids = Array.from({ length: 20 }, (_, index) => `key_${index}`)

    await Promise.all(ids.map((id) => keys.insert({ ...record, ...times, id, hash: id })))

    expect((await keys.list()).map(({ id }) => id)).toEqual(ids)
  })

  test('serves a gateway, over a restart', async () => {
    const path = newPath()
    const accounts = memoryStore()
    const storeWithFile = () => ({ ...accounts, keys: fileKeys(path) })
    const first = await startGateway({ store: storeWithFile() })
    const { id } = await first.gateway.accounts.create()
    const { key } = await first.gateway.keys.create({ accountId: id })
    await first.close()
    const second = await startGateway({ store: storeWithFile() })

    const answer = await second.gateway.fetch(
      new Request('https://gateway.example/v1/account', { headers: { authorization: `Bearer ${key}` } }),
    )

    expect(await answer.json()).toMatchObject({ object: 'account', id })
    await second.close()
  })
})

const CONTRACTS: readonly (readonly [name: string, file: string])[] = [
  ['GatewayStore', 'stores/gateway-store'],
  ['Ledger', 'stores/ledger'],
  ['KeyStore', 'stores/api-keys'],
  ['IdempotencyStore', 'stores/idempotency-store'],
  ['TaskStore', 'stores/task-store'],
  ['WebhookStore', 'stores/webhook-store'],
  ['InteractionStore', 'stores/response-cache'],
  ['ResponseStore', 'stores/response-store'],
  ['ConversationStore', 'stores/response-store'],
  ['UsageStore', 'usage/usage-store'],
  ['FileStore', 'stores/file-store'],
  ['BlobStore', 'stores/blob-store'],
  ['BatchStore', 'stores/file-store'],
  ['ResponseCache', 'stores/response-cache'],
  ['RateLimiter', 'stores/rate-limiter'],
  ['ConcurrencyLimiter', 'stores/rate-limiter'],
]

test.each(CONTRACTS)('the table of %s lists its members', (name, file) => {
  const path = join(ROOT, `src/${file}.ts`)
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest)
  const members = source.statements
    .filter((node) => ts.isInterfaceDeclaration(node))
    .filter((node) => node.name.text === name)
    .flatMap((node) => node.members.map((member) => (member.name as ts.Identifier).text))

  const [, ...rows] = firstTable(section(page, name))

  expect(rows.map((row) => row[0])).toEqual(members)
})
