import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { defaultEngine } from '../stores/sqlite/support/sqlite-engines.ts'
import { runCommand, runCommandWithWarnings, runForJson } from './support/run-command.ts'

let folder: string
let environment: Record<string, string>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-audit-'))
  environment = { SIGNALBOX_STORE: `sqlite:${join(folder, 'money.db')}` }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('lists changes of the command line with the user, the values before and after, and no key', async () => {
  await runCommand(['accounts', 'create', '--id', 'acct_one'], environment)
  await runCommand(['accounts', 'credit', 'acct_one', '5'], environment)
  const key = await runForJson(['keys', 'create', '--account', 'acct_one'], environment)
  const { data } = await runForJson(['audit', 'list', '--subject', 'acct_one'], environment)
  const lines = await runCommand(['audit', 'list', '--limit', '1'], environment)
  const common = { operator: userInfo().username, subject: 'acct_one', source: 'command_line', address: null }

  expect(data).toMatchObject([
    { ...common, action: 'create_key' },
    { ...common, action: 'credit_account', before: { balance: '0' }, after: { balance: '5' } },
    { ...common, action: 'create_account' },
  ])
  expect(key['key']).toEqual(expect.any(String))
  expect(JSON.stringify(data)).not.toContain(key['key'])
  expect(lines[1]).toContain('create_key')
})

test('prints the result of a change whose entry cannot be written, warns of it, and exits with status 1', async () => {
  await runCommand(['accounts', 'create', '--id', 'acct_one'], environment)
  const database = defaultEngine.open(join(folder, 'money.db'))
  database.exec(`CREATE TRIGGER no_audit BEFORE INSERT ON signalbox_audit BEGIN SELECT RAISE(ABORT, 'disk full'); END`)
  database.close()
  const made = await runCommandWithWarnings(['accounts', 'credit', 'acct_one', '5', '--json'], environment)
  const account = await runForJson(['accounts', 'show', 'acct_one'], environment)

  expect(made.lines).toHaveLength(1)
  expect(made.warnings).toEqual([
    expect.stringMatching(
      /^the change credit_account of acct_one was made, but could not be added to the audit: .*disk full/,
    ),
  ])
  expect(made.hasFailed).toBe(true)
  expect(account['balance']).toBe('5')
})

test('rejects a time that cannot be read', async () => {
  await runCommand(['accounts', 'create', '--id', 'acct_one'], environment)
  await expect(runCommand(['audit', 'list', '--from', 'soon'], environment)).rejects.toThrow(
    '--from: "soon" is not a UTC time',
  )
})
