import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'
import { TEST_KEY } from '../../support/start-gateway.ts'
import { askGateway, databasePaths, OTHER_KEY, startTwoAccounts, storeOf } from './two-accounts.ts'

const MODEL = 'cl-sonnet-4-6'
const CHAT = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 20 }

let started: StartedGateway
const database = databasePaths()
afterEach(() => started.close())

type Json = Record<string, unknown>

const ask = (method: string, path: string, body?: unknown, key = TEST_KEY): Promise<[number, Json]> =>
  askGateway(started, method, `/v1${path}`, body, key)

const codeOf = (answer: Json): unknown => (answer['error'] as Json)['code']

describe.each(['memory', 'sqlite'])('%s store', (driver) => {
  const start = async (accountStorage: GatewayOptions['accountStorage'], clock = systemClock): Promise<void> => {
    started = await startTwoAccounts({ ...storeOf(driver, database.path), accountStorage, clock })
  }

  test('refuses a conversation beyond the number with 429 until one is deleted, and counts other accounts apart', async () => {
    await start({ conversations: { count: 2 } })
    const [, { id }] = await ask('POST', '/conversations', {})
    expect((await ask('POST', '/conversations', {}))[0]).toBe(200)
    const refused = await started.post('/v1/conversations', {})

    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([429, 'false'])
    expect(await refused.json()).toEqual({
      error: {
        message:
          'This account has no room for more conversations with their items (conversations: at most 2 objects and 268435456 bytes). Delete some of them, or some of their items.',
        type: 'insufficient_quota',
        param: null,
        code: 'storage_limit_reached',
      },
    })
    expect((await ask('POST', '/conversations', {}, OTHER_KEY))[0]).toBe(200)
    expect((await ask('DELETE', `/conversations/${String(id)}`))[0]).toBe(200)
    expect((await ask('POST', '/conversations', {}))[0]).toBe(200)
  })

  test('refuses items and turns of conversations beyond the bytes until an item is deleted', async () => {
    await start({ conversations: { byteLength: 10_000 } })
    const items = [{ role: 'user', content: 'x'.repeat(9_000) }]
    const [, { id }] = await ask('POST', '/conversations', { items })
    const [status, refusal] = await ask('POST', `/conversations/${String(id)}/items`, { items })
    expect([status, codeOf(refusal)]).toEqual([429, 'storage_limit_reached'])
    const [, turn] = await ask('POST', '/responses', { model: MODEL, input: 'y'.repeat(2_000), conversation: id })
    expect(turn['status']).toBe('completed')
    const [later, full] = await ask('POST', '/responses', { model: MODEL, input: 'hi', conversation: id })
    expect([later, codeOf(full)]).toEqual([429, 'storage_limit_reached'])

    const [, list] = await ask('GET', `/conversations/${String(id)}/items?order=asc`)
    for (const item of list['data'] as { readonly id: string }[])
      await ask('DELETE', `/conversations/${String(id)}/items/${item.id}`)
    expect((await ask('POST', '/responses', { model: MODEL, input: 'hi', conversation: id }))[0]).toBe(200)
  })

  test('refuses a new Idempotency-Key beyond the number, and still replays the known ones', async () => {
    await start({ idempotencyKeys: { count: 2 } })
    const call = (key: string) => started.post('/v1/chat/completions', CHAT, { 'idempotency-key': key })
    const first = await (await call('a')).text()
    await (await call('b')).text()
    const held = await started.account()
    const refused = await call('c')

    expect([refused.status, codeOf((await refused.json()) as Json)]).toEqual([429, 'storage_limit_reached'])
    const replay = await call('a')
    expect([replay.status, await replay.text()]).toEqual([200, first])
    expect(await started.account()).toEqual(held)
    expect((await started.post('/v1/chat/completions', CHAT)).status).toBe(200)
    expect((await started.post('/v1/conversations', {}, { 'idempotency-key': 'd' })).status).toBe(429)
  })

  test('refuses a response to store beyond the number before the vendor is called', async () => {
    await start({ responses: { count: 1 } })
    const [, { id }] = await ask('POST', '/responses', { model: MODEL, input: 'hi' })
    const calls = started.sandbox.requests.length
    const [status, refusal] = await ask('POST', '/responses', { model: MODEL, input: 'hi' })

    expect([status, codeOf(refusal), started.sandbox.requests.length]).toEqual([429, 'storage_limit_reached', calls])
    expect((await started.account()).held).toBe(0n)
    expect((await ask('POST', '/responses', { model: MODEL, input: 'hi', store: false }))[0]).toBe(200)
    expect((await ask('DELETE', `/responses/${String(id)}`))[0]).toBe(200)
    expect((await ask('POST', '/responses', { model: MODEL, input: 'hi' }))[0]).toBe(200)
  })

  test('refuses a webhook secret beyond the number that sign, until they expire, but never one that ends all others', async () => {
    const clock = fakeClock()
    await start({ webhookSecrets: { count: 3 } }, clock)
    const { webhooks } = started.gateway
    const rotate = (overlapMs: number): Promise<string> => webhooks.rotateSecret('acct_test', { overlapMs })
    for (let count = 0; count < 3; count++) await rotate(60_000)
    const refusal = {
      code: 'storage_limit_reached',
      status: 429,
      message: expect.stringContaining('webhook secrets (webhookSecrets: at most 3 objects and 65536 bytes). Wait'),
    }
    await expect(rotate(60_000)).rejects.toMatchObject(refusal)
    await webhooks.rotateSecret('acct_other', { overlapMs: 60_000 })
    const leaked = await rotate(0)
    expect(await webhooks.secret('acct_test')).toBe(leaked)
    for (let count = 0; count < 2; count++) await rotate(60_000)
    await expect(rotate(60_000)).rejects.toMatchObject(refusal)
    clock.advance(60_000)
    expect(await rotate(60_000)).toMatch(/^whsec_/)
  })

  test('refuses a background response beyond the number of tasks, with no money held, and replays a known one', async () => {
    await start({ tasks: { count: 1 } })
    const body = { model: MODEL, input: 'hi', background: true }
    const call = (key: string) => started.post('/v1/responses', body, { 'idempotency-key': key })
    const { id } = (await (await call('a')).json()) as Json
    await expect.poll(async () => (await ask('GET', `/responses/${String(id)}`))[1]['status']).toBe('completed')
    const refused = await call('b')

    expect([refused.status, codeOf((await refused.json()) as Json)]).toEqual([429, 'storage_limit_reached'])
    expect(((await (await call('a')).json()) as Json)['id']).toBe(id)
    expect((await started.account()).held).toBe(0n)
  })
})

test('refuses a batch that failed its checks beyond the number of tasks', async () => {
  started = await startTwoAccounts({ batches: {}, accountStorage: { tasks: { count: 1 } } })
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new File(['not JSON\n'], 'requests.jsonl'))
  const headers = { authorization: `Bearer ${TEST_KEY}` }
  const uploaded = await fetch(`${started.url}/v1/files`, { method: 'POST', headers, body: form })
  const { id } = (await uploaded.json()) as Json
  const batch = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  const [status, failed] = await ask('POST', '/batches', batch)
  expect([status, failed['status']]).toEqual([200, 'failed'])

  const [later, refusal] = await ask('POST', '/batches', batch)
  expect([later, codeOf(refusal)]).toEqual([429, 'storage_limit_reached'])
})

test('refuses empty files beyond the number', async () => {
  started = await startTwoAccounts({ batches: {}, accountStorage: { files: { count: 2 } } })
  const upload = async (): Promise<number> => {
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new File([''], 'empty.jsonl'))
    const headers = { authorization: `Bearer ${TEST_KEY}` }
    return (await fetch(`${started.url}/v1/files`, { method: 'POST', headers, body: form })).status
  }
  expect([await upload(), await upload(), await upload()]).toEqual([200, 200, 429])
})

test('stores at most 100 conversations of an account without money when 300 requests come at the same time', async () => {
  started = await startTwoAccounts({ accountStorage: { conversations: { count: 100 } } })
  const items = [{ role: 'user', content: 'x' }]
  const statuses = await Promise.all(Array.from({ length: 300 }, () => ask('POST', '/conversations', { items })))
  expect(statuses.filter(([status]) => status === 200).length).toBe(100)
  expect(statuses.filter(([status]) => status === 429).length).toBe(200)
})

test('counts in the store for at most 1 in 20 Idempotency-Keys while there is much room', async () => {
  const store = memoryStore()
  let counts = 0
  started = await startTwoAccounts({
    store: {
      ...store,
      stored(...asked) {
        counts += 1
        return store.stored(...asked)
      },
    },
  })
  for (let index = 0; index < 60; index++)
    await (await started.post('/v1/chat/completions', CHAT, { 'idempotency-key': `key-${index}` })).text()
  expect(counts).toBeGreaterThan(0)
  expect(counts).toBeLessThanOrEqual(3)
})

test.each([
  [{ conversation: { count: 1 } }, 'conversation'],
  [{ files: { bytes: 1 } }, 'bytes'],
  [{ files: { count: -1 } }, 'accountStorage.files.count must be a whole number of at least 0'],
  [{ tasks: { byteLength: Number.NaN } }, 'accountStorage.tasks.byteLength must be a whole number of at least 0'],
])('rejects the option %j at start', async (accountStorage, message) => {
  started = await startTwoAccounts()
  expect(() => createGateway({ vendors: [], billing: 'off', accountStorage } as GatewayOptions)).toThrow(message)
})
