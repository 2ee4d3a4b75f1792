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
  test.each([[[]], [['--help']], [['-h']], [['help']], [['surf', '--help']]])(
    'explains itself for %j',
    async (words) => {
      const { exitCode, stdout, stderr } = await command.run(words)

      expect([exitCode, stderr]).toEqual([0, ''])
      for (const part of ['serve', 'models', 'accounts ledger', 'keys rotate', 'SIGNALBOX_STORE', 'REDIS_URL'])
        expect(stdout).toContain(part)
    },
  )

  test.each([
    [
      ['serve', '--help'],
      ['--port', 'REDIS_URL', 'GROQ_API_KEY'],
      ['accounts ledger', 'keys rotate'],
    ],
    [
      ['help', 'keys'],
      ['keys create', 'keys rotate', '--store STORE'],
      ['accounts ledger', 'REDIS_URL'],
    ],
    [
      ['keys', 'create', '-h'],
      ['keys create', '--names-end-users', 'SIGNALBOX_STORE'],
      ['keys rotate', 'REDIS_URL'],
    ],
    [
      ['models', '--help'],
      ['signalbox models', '--all'],
      ['keys create', 'HOST, PORT'],
    ],
  ])('explains one command for %j', async (words, present, absent) => {
    const { exitCode, stdout, stderr } = await command.run(words)

    expect([exitCode, stderr]).toEqual([0, ''])
    for (const part of present) expect(stdout).toContain(part)
    for (const part of absent) expect(stdout).not.toContain(part)
  })

  test('takes flags before the variables that they replace', async () => {
    const environment = { PORT: 'not read', SIGNALBOX_STORE: 'not read', SIGNALBOX_LOG: 'not read' }
    const words = ['--sandbox', '--port', '0', '--store', 'memory:', '--log', 'text', '--access-log', '1']
    const server = await command.serve(words, environment)
    const key = server.lines.find((line) => line.startsWith('key '))?.split(/ +/)[1]

    const answer = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'cl-sonnet-4-6', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    const logged = await server.logged('request completed')

    expect(answer.status).toBe(200)
    expect(logged).toMatch(/^[\d:.]+ INFO {2}request completed requestId=req_\S+ endpoint=chat /)
    expect(await server.end('SIGTERM')).toBe(0)
  })

  test('lists the models as JSON', async () => {
    const { stdout } = await command.run(['models', '--json'])

    const { object, data } = JSON.parse(stdout) as { object: string; data: unknown[] }
    expect(object).toBe('list')
    expect(data).toContainEqual({
      id: 'cl-sonnet-4-6',
      kinds: ['chat'],
      vendor: 'anthropic',
      upstream: 'claude-sonnet-4-6',
      retires: null,
    })
  })

  test('prints its version and the models', async () => {
    const [version, models] = [await command.run(['--version']), await command.run(['models'])]

    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(models.stdout).toMatch(/^model +kind +vendor +id at the vendor +retires$/m)
    expect(models.stdout).toMatch(/^cl-sonnet-4-6 +chat +anthropic +claude-sonnet-4-6$/m)
  })

  test.each([
    [['surf'], 'there is no command "surf"; see signalbox --help'],
    [['models', 'all'], 'unexpected argument "all"; see signalbox models --help'],
    [['serve', '--sandbx'], 'there is no option --sandbx here; did you mean --sandbox? see signalbox serve --help'],
    [['serv'], 'there is no command "serv"; did you mean serve? see signalbox --help'],
    [['keys', 'revok', 'key_1'], 'keys: say create, list, revoke or rotate; did you mean revoke?'],
    [['--prot'], 'there is no option --prot here; see signalbox --help'],
    [['serve', '--port', 'many'], '--port: "many" is not a port'],
    [['serve', '--port'], '--port needs a value'],
    [['serve', '--sandbox=1'], '--sandbox takes no value'],
    [['keys'], 'keys: say create, list, revoke or rotate; see signalbox --help'],
    [['keys', 'list'], 'SIGNALBOX_STORE: there is no database sqlite:signalbox.db'],
  ])('exits with status 1 and one line for %j', async (words, message) => {
    const { exitCode, stdout, stderr } = await command.run(words)

    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^signalbox: [^\n]+\n$/)
    expect(stderr).toContain(message)
  })

  test('exits with status 1 and one line for a setting that serve cannot use', async () => {
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
    expect(stdout).toMatch(/\nkey_\S+ {2}acct_\S+ {2}valid {2}made at the first start\n$/)
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

describe('the package with its dependencies alone, as npx leaves it', () => {
  let bare: BuiltCommand
  beforeAll(async () => {
    bare = await builtCommand('dependencies')
  })
  afterAll(() => bare.remove())

  test('serves: with a database where Node has SQLite, else from memory, and says so loudly', async () => {
    const server = await bare.serve([], { OPENAI_API_KEY: 'k' })
    const hasEngine = process.getBuiltinModule?.('node:sqlite') !== undefined

    const shown = server.lines.join('\n')
    expect(shown.includes('NOTHING SURVIVES A RESTART')).toBe(!hasEngine)
    expect(shown.includes('npm install @photostructure/sqlite, then start again')).toBe(!hasEngine)
    expect(server.lines.some((line) => line.startsWith('key '))).toBe(true)
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
    expect(await server.end('SIGTERM')).toBe(0)
  })

  test.each([
    [{ SIGNALBOX_STORE: 'postgres://db.example/money' }, 'store', 'npm install pg'],
    [{ SIGNALBOX_STORE: 'memory:', REDIS_URL: 'redis://cache.example' }, 'redis', 'npm install ioredis'],
  ])('names the package that %j needs in check, and exits with status 1', async (environment, name, remedy) => {
    const given = { ...environment, OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'http://127.0.0.1:1' }
    const { exitCode, stdout, stderr } = await bare.run(['check', '--json'], given)

    const { data } = JSON.parse(stdout) as { data: { name: string }[] }
    expect([exitCode, stderr]).toEqual([1, ''])
    expect(data.find((one) => one.name === name)).toMatchObject({ status: 'failed', remedy })
  })
})
