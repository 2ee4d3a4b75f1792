import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { parseDollars } from '../../../src/core/money.ts'
import { csvCell } from '../../../src/gateway/account-books.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { LedgerEntry } from '../../../src/stores/journal.ts'
import type { Ledger } from '../../../src/stores/ledger.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const NOVEMBER_MS = Date.UTC(2026, 10, 1)
let cleanUp: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const step of cleanUp.reverse()) await step()
  cleanUp = []
})

function gatewayOn(store: GatewayStore, startMs = NOVEMBER_MS) {
  const clock = fakeClock({ startMs })
  const gateway = createGateway({ vendors: [], billing: 'off', store, clock })
  cleanUp.push(() => gateway.close())
  return { gateway, clock, store }
}

/** A charge as a call makes it. */
async function charge(store: GatewayStore, holdId: string, amount: bigint, nowMs: number): Promise<void> {
  const expiresAtMs = nowMs + 900_000
  await store.ledger.reserve({ holdId, accountId: 'acct', keyId: 'key_1', amount, expiresAtMs }, nowMs)
  const details = { keyId: 'key_1', endpoint: 'chat', model: 'm', vendor: 'v', usage: { inputTokens: 3 } }
  await store.ledger.settle({ holdId, amount, description: 'chat m', details }, nowMs)
}

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const piece of pieces) text += piece
  return text
}

async function wholeJournal(gateway: Gateway): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = []
  let cursor: string | undefined
  do {
    const page = await gateway.accounts.journal('acct', { cursor, limit: 7, order: 'oldest' })
    entries.push(...page.entries)
    cursor = page.next
  } while (cursor !== undefined)
  return entries
}

const STORES: readonly [string, () => GatewayStore][] = [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:', clock: 'caller' })],
]

describe.each(STORES)('the books of an account in %s', (_name, open) => {
  test('have months whose opening balance and lines are the closing balance', async () => {
    const { gateway, clock, store } = gatewayOn(open())
    await gateway.accounts.create({ id: 'acct' })
    await gateway.accounts.credit('acct', '10')
    await charge(store, 'hold_1', parseDollars('1.000000001'), clock.now())
    await clock.advance(Date.UTC(2026, 11, 1) - 1 - clock.now())
    await charge(store, 'hold_2', parseDollars('2'), clock.now())
    await clock.advance(1)
    await charge(store, 'hold_3', parseDollars('8'), clock.now())

    const november = await gateway.accounts.statement('acct', '2026-11')
    const december = await gateway.accounts.statement('acct', '2026-12')

    expect(november).toMatchObject({
      openingBalance: 0n,
      closingBalance: parseDollars('6.999999999'),
      sums: [
        { kind: 'credit', lines: 1, amount: parseDollars('10') },
        { kind: 'charge', lines: 2, amount: -parseDollars('3.000000001') },
      ],
    })
    expect(december).toMatchObject({
      openingBalance: november.closingBalance,
      closingBalance: november.closingBalance,
      closingOwed: 0n,
    })
    // The balance did not cover the third reservation.
    expect(await store.ledger.void('hold_3', clock.now())).toMatchObject({ resolved: false })
  })

  test('are read page by page, each line once, and say what a charge was for', async () => {
    const { gateway, clock, store } = gatewayOn(open())
    await gateway.accounts.create({ id: 'acct' })
    await gateway.accounts.credit('acct', '10')
    for (let index = 0; index < 20; index++) await charge(store, `hold_${index}`, 5n, clock.now())

    const entries = await wholeJournal(gateway)
    const newest = await gateway.accounts.journal('acct', { limit: 1 })

    expect(entries.map(({ holdId }) => holdId)).toEqual([
      undefined,
      ...Array.from({ length: 20 }, (_, i) => `hold_${i}`),
    ])
    expect(newest.entries[0]).toMatchObject({
      due: 5n,
      balanceAfter: parseDollars('10') - 100n,
      details: { keyId: 'key_1', endpoint: 'chat', model: 'm', vendor: 'v', usage: { inputTokens: 3 } },
    })
    expect(newest.next).toEqual(expect.any(String))
  })

  test('are written as CSV that no spreadsheet runs', async () => {
    const { gateway, clock, store } = gatewayOn(open())
    await gateway.accounts.create({ id: 'acct' })
    await gateway.accounts.credit('acct', '10', { creditId: '=1+1', description: '@SUM(A1), "quoted"' })
    await charge(store, 'hold_1', 5n, clock.now())

    const [header, credit, line, end] = (await textOf(gateway.accounts.journalCsv('acct'))).split('\r\n')

    expect(header).toBe(
      'id,time,account,kind,amount,owed,balance_after,due,description,hold_id,charge_id,operation_id,key,endpoint,model,vendor,usage',
    )
    expect(credit).toMatch(
      /^entry_\d+,2026-11-01T00:00:00.000Z,acct,credit,10,0,10,,"'@SUM\(A1\), ""quoted""",,,'=1\+1,,,,,$/,
    )
    expect(line).toMatch(
      /,charge,-0.000000005,0,9.999999995,0.000000005,chat m,hold_1,,,key_1,chat,m,v,"\{""inputTokens"":3\}"$/,
    )
    expect(end).toBe('')
  })

  test('take a credit back when it expires, at the next sweep', async () => {
    const { gateway, clock } = gatewayOn(open())
    await gateway.accounts.create({ id: 'acct' })
    await gateway.accounts.credit('acct', '10')
    await gateway.accounts.credit('acct', '5', { creditId: 'gift', expiresAtMs: clock.now() + 60_000 })
    await clock.advance(120_000)

    await expect
      .poll(async () => (await gateway.accounts.get('acct'))?.balance, { timeout: 5_000 })
      .toBe(parseDollars('10'))
    expect((await gateway.accounts.journal('acct', { limit: 1 })).entries[0]).toMatchObject({
      kind: 'expiry',
      amount: -parseDollars('5'),
      operationId: 'gift',
    })
  })

  test('are corrected and refunded once for each id', async () => {
    const { gateway, clock, store } = gatewayOn(open())
    await gateway.accounts.create({ id: 'acct' })
    await gateway.accounts.credit('acct', '10')
    await charge(store, 'hold_1', parseDollars('4'), clock.now())
    const chargeId = (await gateway.accounts.journal('acct', { limit: 1 })).entries[0]!.id
    const debit = { amount: '-1.5', reason: 'card was charged back', adjustmentId: 'chargeback_1' }
    const refund = { amount: '1', reason: 'bad answer', refundId: 'ticket_1' }

    expect(await gateway.accounts.adjust('acct', debit)).toBe(true)
    expect(await gateway.accounts.adjust('acct', debit)).toBe(false)
    expect(await gateway.accounts.refund(chargeId, refund)).toMatchObject({ isNew: true, accountId: 'acct' })
    expect(await gateway.accounts.refund(chargeId, refund)).toMatchObject({ isNew: false, amount: parseDollars('1') })
    expect(await gateway.accounts.refund(chargeId, { reason: 'all of it' })).toMatchObject({
      amount: parseDollars('3'),
    })
    expect((await gateway.accounts.get('acct'))?.balance).toBe(parseDollars('8.5'))
  })

  test('list holds that are open, which end once by hand', async () => {
    const { gateway, clock, store } = gatewayOn(open())
    await gateway.accounts.create({ id: 'acct' })
    await gateway.accounts.credit('acct', '1')
    const hold = { accountId: 'acct', keyId: 'key_1', amount: 400n, expiresAtMs: clock.now() + 900_000 }
    for (const holdId of ['h1', 'h2', 'h3']) await store.ledger.reserve({ ...hold, holdId }, clock.now())

    const first = await gateway.holds.list({ limit: 2 })
    const second = await gateway.holds.list({ limit: 2, cursor: first.next })

    expect([...first.holds, ...second.holds].map(({ id }) => id)).toEqual(['h1', 'h2', 'h3'])
    expect(second.next).toBeUndefined()
    const settling = [1, 2, 3].map(() => gateway.holds.settle('h1', '0.0000003'))
    const racing = store.ledger.settle({ holdId: 'h1', amount: 300n, description: 'chat' }, clock.now())
    const ends = await Promise.all([...settling, racing])
    expect(ends.filter(({ resolved }) => resolved)).toEqual([{ resolved: true, charged: 300n, shortfall: 0n }])
    expect(await gateway.holds.void('h2')).toMatchObject({ resolved: true, charged: 0n })
    expect(await gateway.holds.void('h2')).toMatchObject({ resolved: false, endedBy: 'voided' })
    expect((await gateway.holds.list({ accountId: 'acct' })).holds.map(({ id }) => id)).toEqual(['h3'])
    expect(await gateway.accounts.get('acct')).toMatchObject({ balance: parseDollars('1') - 700n, held: 400n })
  })

  test('list accounts in pages, all of them or some', async () => {
    const { gateway } = gatewayOn(open())
    for (const id of ['c_1', 'a_1', 'b_2']) await gateway.accounts.create({ id })

    const first = await gateway.accounts.list({ limit: 2 })
    const second = await gateway.accounts.list({ limit: 2, cursor: first.next })
    const found = await gateway.accounts.list({ search: '_1' })

    expect([...first.accounts, ...second.accounts].map(({ id }) => id)).toEqual(['a_1', 'b_2', 'c_1'])
    expect(found.accounts.map(({ id }) => id)).toEqual(['a_1', 'c_1'])
    expect(second.next).toBeUndefined()
  })
})

describe('a call through the gateway', () => {
  let started: StartedGateway | undefined

  test('says in the journal which key, model and vendor it was for, with its units', async () => {
    const store = memoryStore()
    started = await startGateway({ store })
    cleanUp.push(async () => started?.close())
    const response = await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number } }
    const ended = await started.ended(response)
    const { accounts } = await started.gateway.accounts.list()
    const pages = await Promise.all(accounts.map(({ id }) => started!.gateway.accounts.journal(id)))
    const line = pages.flatMap(({ entries }) => entries).find(({ kind }) => kind === 'charge')

    expect(line).toMatchObject({
      due: ended.dueNanoDollars,
      details: { keyId: ended.keyId, endpoint: 'chat', model: 'chat-relayed', vendor: ended.vendor },
    })
    expect(line?.details?.usage.inputTokens).toBe(usage.prompt_tokens)
  })
})

test.each([
  ['plain', 'plain'],
  ['', ''],
  ['-0.5', '-0.5'],
  ['-0.5)', "'-0.5)"],
  ['=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
  ['+1 555', "'+1 555"],
  ['@cmd', "'@cmd"],
  ['\tx', '"\'\tx"'],
  ['a;=cmd', '"a;\'=cmd"'],
  ['a\t+1', '"a\t\'+1"'],
  ['a|@x', '"a|\'@x"'],
  ['a,-1-1', '"a,\'-1-1"'],
  ['a; "=cmd|x"', '"a;\' ""=cmd|x"""'],
  [' =cmd', "' =cmd"],
  ['a;b', '"a;b"'],
  ['a=b', 'a=b'],
  [';;=x', '";;\'=x"'],
  ['\uff1d1', "'\uff1d1"],
  ['a,b', '"a,b"'],
  ['a\nb', '"a\nb"'],
])('the text %j is the cell %j', (text, cell) => {
  expect(csvCell(text)).toBe(cell)
})

test('a sweep that the store refuses is told to the host, and made again', async () => {
  const store = memoryStore()
  const { ledger } = store
  let refusals = 1
  const expire: Ledger['expire'] = (nowMs, limit) => {
    if (refusals-- > 0) throw new Error('database is down')
    return ledger.expire(nowMs, limit)
  }
  const refusing = { ...store, ledger: { ...ledger, expire }, start: () => store.start(), close: () => store.close() }
  const clock = fakeClock({ startMs: NOVEMBER_MS })
  const events: GatewayEvent[] = []
  const onEvent = (event: GatewayEvent): void => void events.push(event)
  const gateway = createGateway({ vendors: [], billing: 'off', store: refusing, clock, onEvent })
  cleanUp.push(() => gateway.close())
  await gateway.start()
  await gateway.accounts.create({ id: 'acct' })
  await gateway.accounts.credit('acct', '5', { creditId: 'gift', expiresAtMs: clock.now() + 1_000 })
  await clock.advance(120_000)

  await expect.poll(async () => (await gateway.accounts.get('acct'))?.balance, { timeout: 5_000 }).toBe(0n)
  expect(events).toContainEqual(expect.objectContaining({ type: 'internal-error', where: 'holds' }))
})
