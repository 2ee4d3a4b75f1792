import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chatBody } from '../support/start-gateway.ts'
import { type BuiltCommand, builtCommand, type ServerProcess } from './support/built-command.ts'

const KEY = 'sk-of-the-operator-1'

let command: BuiltCommand

beforeAll(async () => {
  command = await builtCommand()
})
afterAll(() => command.remove())

function post(server: ServerProcess, body: unknown): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

async function balance(server: ServerProcess): Promise<unknown> {
  const response = await fetch(`${server.url}/v1/account`, { headers: { authorization: `Bearer ${KEY}` } })
  return ((await response.json()) as { balance: unknown }).balance
}

function writePrices(dollars: string): string {
  const path = join(command.folder, 'prices.json')
  const prices = [{ model: 'cl-sonnet-4-6', meter: 'request', amount: dollars }]
  writeFileSync(path, JSON.stringify({ currency: 'USD', prices }))
  return path
}

describe('the command line', () => {
  test.each([[[]], [['--help']], [['-h']], [['help']], [['serve', '--help']], [['keys', 'create', '-h']]])(
    'explains itself for %j',
    async (words) => {
      const { exitCode, stdout, stderr } = await command.run(words)

      expect([exitCode, stderr]).toEqual([0, ''])
      for (const part of ['serve', 'models', 'accounts ledger', 'keys rotate', 'SIGNALBOX_STORE', 'REDIS_URL'])
        expect(stdout).toContain(part)
    },
  )

  test('prints its version and the models', async () => {
    const [version, models] = [await command.run(['--version']), await command.run(['models'])]

    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(models.stdout).toMatch(/^cl-sonnet-4-6 +chat +anthropic +claude-sonnet-4-6$/m)
  })

  test.each([
    [['surf'], 'there is no command "surf"; see signalbox --help'],
    [['models', 'all'], 'unexpected argument "all"; see signalbox --help'],
    [['serve', '--sandbx'], "Unknown option '--sandbx'"],
    [['keys'], 'keys: say create, list, revoke or rotate; see signalbox --help'],
    [['keys', 'list'], 'SIGNALBOX_STORE: there is no database sqlite:signalbox.db'],
  ])('ends with 1 and one line for %j', async (words, message) => {
    const { exitCode, stdout, stderr } = await command.run(words)

    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^signalbox: [^\n]+\n$/)
    expect(stderr).toContain(message)
  })

  test('ends with 1 and one line for a setting that serve cannot use', async () => {
    const { exitCode, stderr } = await command.run(['serve'], { SIGNALBOX_LIMITS: 'rpm=none' })

    expect(exitCode).toBe(1)
    expect(stderr).toBe('signalbox: SIGNALBOX_LIMITS: rpm: "none" is not a whole number above 0\n')
  })
})

describe('a served gateway', () => {
  test('ends a stream under way after SIGTERM, exits with 0, and keeps what it charged', async () => {
    const environment = {
      SIGNALBOX_STORE: 'sqlite:drained.db',
      SIGNALBOX_API_KEYS: KEY,
      SIGNALBOX_CREDIT: '5',
      SIGNALBOX_PRICES: writePrices('1'),
    }
    const server = await command.serve(['--sandbox'], environment)
    const prompt = 'Count slowly [[fault:pace=60]]'
    const response = await post(server, chatBody('cl-sonnet-4-6', prompt, { stream: true }))
    const exited = server.end('SIGTERM')

    const text = await response.text()

    expect(text).toContain('data: [DONE]')
    expect(await exited).toBe(0)
    const again = await command.serve(['--sandbox'], environment)
    expect(await balance(again)).toBe('4')
    expect(await again.end('SIGINT')).toBe(0)
  })

  test('reads its prices again on SIGHUP, logs a bad file and keeps the last good prices', async () => {
    const server = await command.serve(['--sandbox'], {
      SIGNALBOX_STORE: 'memory:',
      SIGNALBOX_API_KEYS: KEY,
      SIGNALBOX_CREDIT: '10',
      SIGNALBOX_PRICES: writePrices('1'),
    })
    const spend = async (): Promise<unknown> => {
      await post(server, chatBody('cl-sonnet-4-6', 'Say hello'))
      return balance(server)
    }

    writePrices('2')
    server.process.kill('SIGHUP')
    await server.logged('the prices were read again')
    const afterGood = await spend()
    writePrices('a lot')
    server.process.kill('SIGHUP')
    const fault = JSON.parse(await server.logged('the last good ones stay')) as Record<string, unknown>
    const afterBad = await spend()

    expect([afterGood, afterBad]).toEqual(['8', '6'])
    expect(fault).toMatchObject({
      level: 'error',
      fault: 'SIGNALBOX_PRICES: prices[0].amount: must be a decimal string, such as "3.00"',
    })
    expect(await server.end('SIGTERM')).toBe(0)
  })

  test('leaves nothing behind when it was only tried out', async () => {
    const server = await command.serve(['--sandbox'])

    expect(await server.end('SIGTERM')).toBe(0)
    expect(existsSync(join(command.folder, 'signalbox.db'))).toBe(false)
  })

  test('uses sqlite:signalbox.db when nothing is said, as the other commands do', async () => {
    const server = await command.serve([])
    const { stdout } = await command.run(['keys', 'list'])

    expect(server.lines).toContain('store     sqlite:signalbox.db')
    expect(stdout).toMatch(/^key_\S+ {2}acct_\S+ {2}valid {2}made at the first start\n$/)
    expect(await server.end('SIGTERM')).toBe(0)
  })

  test('says so when its port is taken', async () => {
    const server = await command.serve(['--sandbox'])

    const { exitCode, stderr } = await command.run(['serve', '--sandbox'], { PORT: new URL(server.url).port })

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^signalbox: listen EADDRINUSE[^\n]+\n$/)
    await server.end('SIGTERM')
  })

  test('goes on with limits of its own when Redis is not there, and shows no password of it', async () => {
    const server = await command.serve(['--sandbox'], {
      SIGNALBOX_API_KEYS: KEY,
      SIGNALBOX_LIMITS: 'rpm=1',
      REDIS_URL: 'redis://:canary-7f3a@127.0.0.1:1/0',
    })

    const statuses = []
    for (const _ of [1, 2]) statuses.push((await post(server, chatBody('cl-sonnet-4-6', 'Say hello'))).status)

    expect(statuses).toEqual([200, 429])
    expect(server.lines).toContain('limits    shared through redis://127.0.0.1:1/0')
    expect(await server.end('SIGTERM')).toBe(0)
    expect(server.lines.join('\n') + server.log()).not.toContain('canary-7f3a')
  })
})
