import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SETTINGS, VENDOR_VARIABLES } from '../../src/cli/settings.ts'
import { nearestName } from '../../src/core/known-members.ts'
import { runCommand } from './support/run-command.ts'

const help = async (...words: string[]): Promise<string> => (await runCommand([...words, '--help'], {})).join('\n')

describe('the help', () => {
  test('lists each setting of serve and of check once, with its flag and its variable', async () => {
    for (const command of ['serve', 'check']) {
      const text = await help(command)

      for (const { variable, flag, text: told } of SETTINGS) {
        expect(text.split(told.split(' ', 3).join(' ')).length - 1, told).toBeGreaterThan(0)
        if (flag === undefined) expect(text).toMatch(new RegExp(`^  ${variable} `, 'm'))
        else expect(text).toMatch(new RegExp(`^  --${flag}[ \n]`, 'm'))
      }
      for (const { variable, flag } of VENDOR_VARIABLES)
        expect(text).toContain(flag === undefined ? variable : `--${flag}`)
    }
  })

  test('lists every action, and each action has one of its own', async () => {
    const actions = (await help())
      .split('\n')
      .filter((line) => line.startsWith('  signalbox '))
      .map((line) => line.trim().split('  ', 1)[0] ?? '')
      .map((usage) => usage.replace(/^signalbox /, '').replace(/(?: [A-Z_]+)+$/, ''))

    expect(actions.length).toBeGreaterThan(25)
    expect(actions).toContain('check')
    for (const action of actions) expect(await help(...action.split(' '))).toContain(`Usage: signalbox ${action}`)
  })

  test('lists the options of all actions of a command once', async () => {
    const text = await help('holds')

    expect(text).toMatch(/^Options of every action:\n {2}--store STORE .*\n {2}--json /m)
    expect(text).toContain('--config FILE')
  })
})

describe('words that are not understood', () => {
  test.each([
    [['serv'], 'there is no command "serv"; did you mean serve? see signalbox --help'],
    [['fly'], 'there is no command "fly"; see signalbox --help'],
    [['accounts', 'lst'], /^accounts: say list, create, .* or ledger; did you mean list\? see signalbox --help$/],
    [['serve', '--prot', '1'], 'there is no option --prot here; did you mean --port? see signalbox serve --help'],
    [['models', '--everything'], 'there is no option --everything here; the options are --all, --json, --config; see'],
    [['serve', '--port'], '--port needs a value; see signalbox serve --help'],
    [['keys', 'list', '--account', '--json'], '--account needs a value'],
    [['serve', '--console=yes'], '--console takes no value'],
    [['holds', 'settle', 'hold_1'], 'the amount is missing; see signalbox holds settle --help'],
    [['accounts', 'credit', 'a', '5', '6'], 'unexpected argument "6"; see signalbox accounts credit --help'],
    [['accounts', 'credit', 'a', '-5'], '-5: must not be negative'],
  ])("answers %j with the command line's own message", async (words, message) => {
    await expect(runCommand(words, {})).rejects.toThrow(message)
  })

  test('lead to the nearest known one, if there is one near', () => {
    const known = ['--port', '--prices', '--host', '--limits']

    expect(nearestName('--prot', known)).toBe('--port')
    expect(nearestName('--prizes', known)).toBe('--prices')
    expect(nearestName('--LIMITS', known)).toBe('--limits')
    expect(nearestName('--verbose', known)).toBeUndefined()
  })
})

test('every command uses the store of the configuration file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-line-'))
  const path = join(folder, 'own.config.json')
  writeFileSync(path, JSON.stringify({ store: `sqlite:${join(folder, 'money.db')}` }))

  await runCommand(['accounts', 'create', '--id', 'acct_one', '--config', path], {})
  const lines = await runCommand(['accounts', 'list'], { SIGNALBOX_CONFIG: path })

  expect(lines[0]).toMatch(/^account +balance +held +owed +tier +made$/)
  expect(lines[1]).toMatch(/^acct_one +\$0 /)
  rmSync(folder, { recursive: true })
})
