import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { realServer } from '../support/real-servers.ts'
import { chatBody } from '../support/start-gateway.ts'
import { type BuiltCommand, builtCommand, type ServerProcess } from './support/built-command.ts'

const postgres = await realServer('postgres')
const redis = await realServer('redis')
// The servers may be shared with others, so every run has accounts and keys of its own.
const run = randomBytes(6).toString('hex')

let command: BuiltCommand

beforeAll(async () => {
  command = await builtCommand()
})
afterAll(() => command.remove())

function post(server: ServerProcess, key: string): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(chatBody('cl-sonnet-4-6', 'Say hello')),
  })
}

describe.skipIf(postgres.missing !== undefined)('the command line on PostgreSQL', () => {
  test('makes accounts and keys that a server on the same database knows at once', async () => {
    const environment = { SIGNALBOX_STORE: postgres.url }
    const account = `acct_${run}`
    const server = await command.serve(['--sandbox'], { ...environment, SIGNALBOX_API_KEYS: `sk-other-${run}` })

    const steps = [
      await command.run(['accounts', 'create', '--id', account], environment),
      await command.run(['accounts', 'credit', account, '2.5'], environment),
      await command.run(['keys', 'create', '--account', account, '--json'], environment),
    ]
    const { key, id } = JSON.parse(steps[2]?.stdout ?? '') as { key: string; id: string }
    const before = await post(server, key)
    const shown = await fetch(`${server.url}/v1/account`, { headers: { authorization: `Bearer ${key}` } })
    const revoked = await command.run(['keys', 'revoke', id], environment)

    expect(steps.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ])
    expect(before.status).toBe(200)
    expect(await shown.json()).toMatchObject({ id: account, balance: '2.5' })
    expect(revoked.exitCode).toBe(0)
    expect(await server.end('SIGTERM')).toBe(0)
  })
})

describe.skipIf(redis.missing !== undefined)('servers with one REDIS_URL', () => {
  test('share the limits of a key', async () => {
    const key = `sk-shared-${run}`
    const environment = { REDIS_URL: redis.url, SIGNALBOX_API_KEYS: key, SIGNALBOX_LIMITS: 'rpm=3' }
    const servers = [await command.serve(['--sandbox'], environment), await command.serve(['--sandbox'], environment)]

    const statuses = []
    for (const server of [...servers, ...servers]) statuses.push((await post(server, key)).status)

    expect(statuses).toEqual([200, 200, 200, 429])
    for (const server of servers) expect(await server.end('SIGTERM')).toBe(0)
  })
})

/** Result of `signalbox check --json` for one part. */
async function checked(name: string, environment: Record<string, string>): Promise<unknown> {
  const given = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'http://127.0.0.1:1', ...environment }
  const { stdout } = await command.run(['check', '--json'], given)
  return (JSON.parse(stdout) as { data: { name: string }[] }).data.find((one) => one.name === name)
}

describe.skipIf(postgres.missing !== undefined)('check on PostgreSQL', () => {
  test('knows a database that is up to date, and one that is not there', async () => {
    const elsewhere = new URL(postgres.url)
    elsewhere.pathname = `/nowhere_${run}`
    await command.run(['accounts', 'create', '--id', `acct_check_${run}`], { SIGNALBOX_STORE: postgres.url })

    expect(await checked('store', { SIGNALBOX_STORE: postgres.url })).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('its schema is up to date'),
    })
    expect(await checked('store', { SIGNALBOX_STORE: elsewhere.href })).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('does not exist'),
      remedy: expect.stringContaining('SIGNALBOX_STORE'),
    })
  })
})

describe.skipIf(redis.missing !== undefined)('check on Redis', () => {
  test('knows a server that answers', async () => {
    const environment = { SIGNALBOX_STORE: 'memory:', REDIS_URL: redis.url }

    expect(await checked('redis', environment)).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('answers'),
    })
  })
})
