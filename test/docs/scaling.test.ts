import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGateway, formatDollars, type Gateway, memoryStore, parseDollars } from '../../src/index.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { type Schemas, schemasOn } from '../stores/postgres/support/fresh-schema.ts'
import { defaultEngine } from '../stores/sqlite/support/sqlite-engines.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { realServer } from '../support/real-servers.ts'
import { testPrices } from '../support/test-prices.ts'
import { codeBlocks, readPage } from './support/markdown.ts'

const DAY_MS = 86_400_000
/** The day of the page. */
const CUT_MS = Date.UTC(2026, 0, 1)
const ACCOUNTS = ['acct_prepaid', 'acct_metered', 'acct_idle'] as const

const newPath = temporaryPaths()
const server = await realServer('postgres')
const [postgresStatements = '', sqliteStatements = ''] = codeBlocks(readPage('docs/scaling.md'))
  .filter(({ language, code }) => language === 'sql' && code.includes('DELETE FROM'))
  .map(({ code }) => code)

/** Charges of three accounts in the months before and after the day. */
async function fill({ ledger }: GatewayStore): Promise<void> {
  const startMs = CUT_MS - 60 * DAY_MS
  await ledger.createAccount({ id: 'acct_prepaid' }, startMs)
  await ledger.createAccount({ id: 'acct_metered', billing: 'metered' }, startMs)
  await ledger.createAccount({ id: 'acct_idle' }, startMs)
  for (const accountId of ['acct_prepaid', 'acct_idle'])
    await ledger.credit({ creditId: `credit_${accountId}`, accountId, amount: 1_000n, description: 'start' }, startMs)
  const charge = async (accountId: string, atMs: number) => {
    const holdId = `hold_${accountId}_${atMs}`
    await ledger.reserve({ holdId, accountId, keyId: 'key_1', amount: 10n, expiresAtMs: atMs + 900_000 }, atMs)
    await ledger.settle({ holdId, amount: 7n, description: 'chat' }, atMs)
  }
  for (const accountId of ['acct_prepaid', 'acct_metered'])
    for (const day of [-50, -40, -1, 0, 20]) await charge(accountId, CUT_MS + day * DAY_MS)
  for (const day of [-50, -45]) await charge('acct_idle', CUT_MS + day * DAY_MS)
}

/** Balances, and statements and lines from the day on. */
async function booksOf({ ledger }: GatewayStore) {
  const books = ACCOUNTS.map(async (accountId) => ({
    account: await ledger.account(accountId),
    january: await ledger.sums({ accountId, fromMs: CUT_MS, untilMs: CUT_MS + 31 * DAY_MS }),
    february: await ledger.sums({ accountId, fromMs: CUT_MS + 31 * DAY_MS, untilMs: CUT_MS + 59 * DAY_MS }),
    lines: (await ledger.entries(accountId, 100)).filter(({ createdAtMs }) => createdAtMs >= CUT_MS),
  }))
  return await Promise.all(books)
}

/** Lines before the day: account, kind, and how many days before it. */
async function oldLines({ ledger }: GatewayStore) {
  const found = ACCOUNTS.map(async (accountId) => {
    const old = (await ledger.entries(accountId, 100)).filter(({ createdAtMs }) => createdAtMs < CUT_MS)
    return old.map(({ kind, createdAtMs }) => `${accountId} ${kind} ${(CUT_MS - createdAtMs) / DAY_MS}`)
  })
  return (await Promise.all(found)).flat().sort()
}

const KEPT = [
  'acct_idle charge 45',
  'acct_idle credit 60',
  'acct_metered owed 1',
  'acct_prepaid charge 1',
  'acct_prepaid credit 60',
]

describe('the statements that delete old charges', () => {
  it('keep balances, later statements and credit ids on SQLite, and refuse changes of the journal afterwards', async () => {
    const path = newPath()
    const store = sqliteStore({ path, clock: 'caller' })
    await store.start()
    await fill(store)
    const before = await booksOf(store)
    await store.close()
    const database = defaultEngine.open(path)
    database.exec(sqliteStatements)
    const change = () => database.exec('DELETE FROM signalbox_entries')
    expect(change).toThrow('the journal is append-only')
    database.close()
    const after = sqliteStore({ path, clock: 'caller' })
    await after.start()

    expect(await booksOf(after)).toEqual(before)
    expect(await oldLines(after)).toEqual(KEPT)
    await repeatCredit(after)
    await after.close()
  })

  describe.skipIf(server.missing !== undefined)('on PostgreSQL', () => {
    let schemas: Schemas

    beforeAll(() => {
      schemas = schemasOn(server.url, 'alter')
    })
    afterAll(() => schemas.end())

    it('keep balances, later statements and credit ids, and refuse changes of the journal afterwards', async () => {
      const store = await schemas.create()
      const schema = schemas.schemaOf(store)
      await fill(store)
      const before = await booksOf(store)
      await schemas.pool.query(postgresStatements.replaceAll('signalbox.', `${schema}.`))

      expect(await booksOf(store)).toEqual(before)
      expect(await oldLines(store)).toEqual(KEPT)
      await repeatCredit(store)
      await expect(schemas.pool.query(`DELETE FROM ${schema}.entries`)).rejects.toThrow('the journal is append-only')
      await schemas.dispose(store)
    })
  })
})

const [moveAccounts] = codeBlocks(readPage('docs/scaling.md')).filter(({ code }) => code.includes('moveAccounts'))

describe('the function that moves accounts to another store', () => {
  it('moves balances, debts, settings and freezes once, and stops at an account with an open hold', async () => {
    const store = memoryStore()
    const options = { vendors: [], prices: testPrices }
    const [from, to] = [createGateway({ ...options, store }), createGateway(options)]
    await from.accounts.create({ id: 'acct_1', name: 'One', spendingCap: { amount: 7n, period: 'day' } })
    await from.accounts.credit('acct_1', '1.5')
    await from.accounts.create({ id: 'acct_2', billing: 'metered', creditLimit: parseDollars('9') })
    await from.accounts.adjust('acct_2', { amount: '-2.25', reason: 'debt' })
    await from.accounts.freeze('acct_2', { reason: 'fraud' })
    const { outputText } = ts.transpileModule(moveAccounts?.code ?? '', {
      compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
    })
    const program: { moveAccounts?: (from: Gateway, to: Gateway) => Promise<void> } = {}
    new Function('require', 'exports', outputText)(() => ({ formatDollars }), program)
    const move = () => program.moveAccounts?.(from, to)
    const accounts = async (gateway: Gateway) =>
      (await gateway.accounts.list()).accounts.map(({ createdAtMs, frozen, ...account }) => [account, frozen?.reason])

    await move()
    await move()

    expect(await accounts(to)).toEqual(await accounts(from))
    expect(await accounts(to)).toMatchObject([
      [{ id: 'acct_1', balance: parseDollars('1.5') }, undefined],
      [{ id: 'acct_2', owed: parseDollars('2.25') }, 'fraud'],
    ])
    const hold = {
      holdId: 'hold_1',
      accountId: 'acct_1',
      keyId: 'key_1',
      amount: 5n,
      expiresAtMs: Date.now() + 900_000,
    }
    await store.ledger.reserve(hold, Date.now())
    await expect(move()).rejects.toThrow('acct_1 has open holds')
    await Promise.all([from.close(), to.close()])
  })
})

async function repeatCredit({ ledger }: GatewayStore): Promise<void> {
  const balance = (await ledger.account('acct_prepaid'))?.balance
  const credit = { creditId: 'credit_acct_prepaid', accountId: 'acct_prepaid', amount: 1_000n, description: 'start' }
  await ledger.credit(credit, CUT_MS + 59 * DAY_MS)
  expect((await ledger.account('acct_prepaid'))?.balance).toBe(balance)
}
