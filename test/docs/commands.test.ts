import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand, runForJson } from '../cli/support/run-command.ts'
import { codeBlocks, readPages } from './support/markdown.ts'

/** Commands of the pages that work on a store; `signalbox serve` is started by the tests of the command itself. */
const commands = readPages()
  .flatMap(codeBlocks)
  .filter(({ language }) => language === 'sh')
  .flatMap(({ code }) => code.split('\n'))
  .filter((line) => /^npx signalbox (?:accounts|keys|usage)(?: |$)/.test(line))

let folder: string
let stores = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-docs-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('the pages show commands for accounts and for keys', () => {
  expect(commands.filter((line) => line.includes(' accounts ')).length).toBeGreaterThan(3)
  expect(commands.filter((line) => line.includes(' keys ')).length).toBeGreaterThan(3)
})

test.each(commands)('%s does something', async (line) => {
  const environment = { SIGNALBOX_STORE: `sqlite:${join(folder, `${++stores}.db`)}` }
  let keyId = ''
  if (!line.includes('accounts create')) {
    await runCommand(['accounts', 'create', '--id', 'acct_acme'], environment)
    await runCommand(['accounts', 'credit', 'acct_acme', '1'], environment)
    keyId = String((await runForJson(['keys', 'create', '--account', 'acct_acme'], environment))['id'])
  }
  const words = line.split(' ').slice(2)

  const printed = await runCommand(
    words.map((word) => (word === 'KEY_ID' ? keyId : word)),
    environment,
  )

  expect(printed.join('\n')).toMatch(/acct_acme|key_|"object"|credit|request|agree/)
})
