import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SettingError } from '../../src/cli/setting-values.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { runCommand, runForJson } from './support/run-command.ts'

let folder: string
let path: string
let environment: Record<string, string>

/** An account with $10, one charge of $4 and one open hold of $1. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-books-'))
  path = join(folder, 'money.db')
  environment = { SIGNALBOX_STORE: `sqlite:${path}` }
  const store = sqliteStore({ path })
  await store.start()
  const nowMs = Date.now()
  await store.ledger.createAccount({ id: 'acct_one' }, nowMs)
  const credit = { creditId: 'c1', accountId: 'acct_one', amount: 10_000_000_000n, description: 'start' }
  await store.ledger.credit(credit, nowMs)
  const hold = { accountId: 'acct_one', keyId: 'key_1', expiresAtMs: nowMs + 900_000 }
  await store.ledger.reserve({ ...hold, holdId: 'req_1', amount: 5_000_000_000n }, nowMs)
  const details = { keyId: 'key_1', endpoint: 'chat', model: 'm', vendor: 'v', usage: { inputTokens: 3 } }
  await store.ledger.settle({ holdId: 'req_1', amount: 4_000_000_000n, description: 'chat m', details }, nowMs)
  await store.ledger.reserve({ ...hold, holdId: 'req_2', amount: 1_000_000_000n }, nowMs)
  await store.close()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const run = (...words: string[]) => runCommand(words, environment)
const json = (...words: string[]) => runForJson(words, environment)
const chargeId = async () => {
  const { data } = await json('accounts', 'journal', 'acct_one')
  return String(data.find(({ kind }) => kind === 'charge')?.['id'])
}

describe('signalbox accounts', () => {
  test('list prints a table, and pages for machines', async () => {
    await run('accounts', 'create', '--id', 'acct_two')

    const [head, one] = await run('accounts', 'list')
    const page = await json('accounts', 'list', '--limit', '1')
    const rest = await json('accounts', 'list', '--cursor', String(page['next']))

    expect(head).toMatch(/^account {3}balance {2}held {2}owed {2}tier {2}made$/)
    expect(one).toMatch(/^acct_one {2}\$5 {7}\$1 {4}\$0 {4}paid {2}\d{4}-/)
    expect(page.data.map(({ id }) => id)).toEqual(['acct_one'])
    expect(rest.data.map(({ id }) => id)).toEqual(['acct_two'])
    expect(rest['next']).toBeNull()
    expect((await json('accounts', 'list', '--search', 'two')).data.map(({ id }) => id)).toEqual(['acct_two'])
  })

  test('adjust takes and adds money, with the amounts that the tables print', async () => {
    const taken = await run('accounts', 'adjust', 'acct_one', '-$1.5', '--reason', 'charged back', '--id', 'a1')
    const again = await run('accounts', 'adjust', 'acct_one', '-1.5', '--reason', 'charged back', '--id', 'a1')
    const added = await json('accounts', 'adjust', 'acct_one', '0.5', '--reason', 'sorry')

    expect(taken).toEqual(['adjusted acct_one by -$1.5; the balance is $3.5'])
    expect(again).toEqual(['a1 was made before, so nothing was changed; the balance is $3.5'])
    expect(added).toEqual({
      ...{ object: 'account.change', account: 'acct_one' },
      ...{ is_new: true, amount: '0.5', balance: '4', owed: '0' },
    })
    await expect(run('accounts', 'adjust', 'acct_one', '-4.01', '--reason', 'x')).rejects.toThrow(
      'the balance of "acct_one" is below the debit of $4.01; nothing was changed',
    )
    await expect(run('accounts', 'adjust', 'acct_one', '5')).rejects.toThrow(
      new SettingError('--reason is missing; see signalbox --help'),
    )
  })

  test('refund gives money of a charge back, never more than it was', async () => {
    const id = await chargeId()

    const part = await run('accounts', 'refund', id, '--amount', '1', '--reason', 'bad answer', '--id', 'r1')
    const rest = await json('accounts', 'refund', id, '--reason', 'bad answer')

    expect(part).toEqual([`refunded $1 of ${id} to acct_one; the balance is $6`])
    expect(rest).toMatchObject({
      object: 'account.change',
      account: 'acct_one',
      is_new: true,
      amount: '3',
      balance: '9',
    })
    await expect(run('accounts', 'refund', id, '--amount', '0.1', '--reason', 'x')).rejects.toThrow(
      'only $0 of the charge can be refunded; nothing was changed',
    )
    expect((await run('accounts', 'show', 'acct_one'))[1]).toBe('balance  $9')
  })

  test('statement shows how a month came to its balance', async () => {
    const month = new Date().toISOString().slice(0, 7)

    const lines = await run('accounts', 'statement', 'acct_one')
    const statement = await json('accounts', 'statement', 'acct_one', '--month', month)

    expect(lines.map((line) => line.replaceAll(/ {2,}/g, '  '))).toEqual([
      `acct_one ${month}  lines  balance  owed`,
      'opening  $0  $0',
      'credit  1  $10  $0',
      'charge  1  -$4  $0',
      'closing  $6  $0',
    ])
    expect(statement).toMatchObject({ opening_balance: '0', closing_balance: '6', closing_owed: '0' })
    await expect(run('accounts', 'statement', 'acct_one', '--month', 'may')).rejects.toThrow('"may" is not a month')
  })

  test('journal prints lines of a range with what was left, and CSV', async () => {
    const lines = await run('accounts', 'journal', 'acct_one', '--oldest-first')
    const none = await json('accounts', 'journal', 'acct_one', '--until', '2020-01-01')
    const csv = (await run('accounts', 'journal', 'acct_one', '--csv')).join('\n')
    const page = await run('accounts', 'journal', 'acct_one', '--limit', '1')

    expect(lines[0]).toMatch(/^line +time +kind +amount +balance +text$/)
    expect(lines.slice(1).map((line) => line.replace(/^entry_\d+ {2}\S+Z {2}/, ''))).toEqual([
      'credit  $10     $10      start',
      'charge  -$4     $6       chat m',
    ])
    expect(none.data).toEqual([])
    expect(csv.split('\r\n')).toHaveLength(3)
    expect(csv).toContain(',charge,-4,0,6,4,chat m,req_1,')
    expect(page[2]).toMatch(/^more: --cursor \S+$/)
  })

  test.each([
    [['--csv', '--limit', '1'], '--limit: has no effect with --csv'],
    [['--csv', '--oldest-first'], '--oldest-first: has no effect with --csv'],
    [['--month', '2026-11', '--from', '2026-11-05'], '--month: give it without from and until'],
  ])('journal %j is refused, because one of them would do nothing', async (words, message) => {
    await expect(run('accounts', 'journal', 'acct_one', ...words)).rejects.toThrow(message)
  })

  test('a reason that begins like a negative number stays as it is', async () => {
    await run('accounts', 'adjust', 'acct_one', '-1', '--reason', '-3 seats')
    const { data } = await json('accounts', 'journal', 'acct_one', '--limit', '1')

    expect(data).toMatchObject([{ kind: 'adjustment', description: '-3 seats' }])
  })

  test('credit takes a day on which it expires', async () => {
    await run('accounts', 'credit', 'acct_one', '3', '--expires', '2999-12-31')

    await expect(run('accounts', 'credit', 'acct_one', '3', '--expires', '2020-01-01')).rejects.toThrow(
      'a credit must expire in the future',
    )
    await expect(run('accounts', 'credit', 'acct_one', '3', '--expires', '30d')).rejects.toThrow(
      '--expires: "30d" is not a UTC time such as 2026-12-31',
    )
    await expect(run('accounts', 'credit', 'acct_one', '3', '--expires', '2999-02-30')).rejects.toThrow(
      '--expires: "2999-02-30" is not a UTC time such as 2026-12-31',
    )
    expect((await run('accounts', 'show', 'acct_one'))[1]).toBe('balance  $8')
  })
})

describe('signalbox holds', () => {
  test('lists holds, and ends each once', async () => {
    const rows = await run('holds', 'list')
    const { data } = await json('holds', 'list', '--account', 'acct_one')
    const settled = await run('holds', 'settle', 'req_2', '1.25', '--reason', 'vendor billed it')

    expect(rows[0]).toMatch(/^hold {3}account {3}key {4}amount {2}made {22}expires$/)
    expect(rows[1]).toMatch(/^req_2 {2}acct_one {2}key_1 {2}\$1 {6}\d{4}-/)
    expect(data).toMatchObject([{ object: 'hold', id: 'req_2', amount: '1' }])
    expect(settled).toEqual(['req_2 has ended: $1.25 was charged'])
    await expect(run('holds', 'void', 'req_2')).rejects.toThrow(
      new SettingError('the hold "req_2" was settled before; nothing was changed'),
    )
    await expect(run('holds', 'void', 'req_9')).rejects.toThrow('there is no hold "req_9"')
    expect((await run('accounts', 'show', 'acct_one'))[1]).toBe('balance  $4.75')
  })
})
