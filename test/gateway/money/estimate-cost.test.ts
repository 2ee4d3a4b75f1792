import { afterAll, beforeAll, expect, test } from 'vitest'
import { ENDPOINTS } from '../../../src/endpoints/registry.ts'
import type { Principal } from '../../../src/stores/principal.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

const CALLER: Principal = { accountId: TEST_ACCOUNT, keyId: 'key_test', tier: 'paid' }

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

test('an estimate is what the same request holds while it runs', async () => {
  const body = chatBody('cl-sonnet-4-6', '[[fault:delay=200]] good morning', { max_tokens: 100 })
  const { cost } = await started.gateway.estimate(CALLER, { endpoint: 'chat', body })
  const answer = started.post('/v1/chat/completions', body)
  await started.sandbox.nextRequest()
  const { held } = await started.account()
  await answer

  expect(Number(cost)).toBeGreaterThan(0)
  expect(held).toBe(BigInt(Math.round(Number(cost) * 1e9)))
})

test.each([
  ['chat', chatBody('cl-sonnet-4-6', 'hi', { max_tokens: 1_000_000 }), 128_000],
  ['chat', chatBody('cl-sonnet-4-6', 'hi', { max_completion_tokens: 1_000_000, max_tokens: 5 }), 128_000],
  ['chat', chatBody('cl-sonnet-4-6', 'hi', { max_tokens: 100 }), 100],
  ['messages', chatBody('gmn-2.5-flash', 'hi', { max_tokens: 1_000_000 }), 65_536],
  ['responses', { model: 'gmn-2.5-flash', input: 'hi', max_output_tokens: 1_000_000 }, 65_536],
  ['responses', { model: 'cl-sonnet-4-6', input: 'hi', max_output_tokens: 1_000_000 }, 128_000],
  // These vendors get what the caller asks for, and refuse it.
  ['chat', chatBody('gmn-2.5-flash', 'hi', { max_tokens: 1_000_000 }), 1_000_000],
  ['chat', chatBody('chat-relayed', 'hi', { max_tokens: 1_000_000, n: 2 }), 2_000_000],
  ['messages', chatBody('cl-sonnet-4-6', 'hi', { max_tokens: 1_000_000 }), 1_000_000],
])('an estimate of %s counts the bound of output that the vendor gets: %j', async (endpoint, body, tokens) => {
  const { usage } = await started.gateway.estimate(CALLER, { endpoint, body })

  expect(usage.outputTokens).toBe(tokens)
})

test('a chat whose bound is above what its model can write needs the money for what it can write', async () => {
  const { gateway, post, sandbox } = started
  await gateway.accounts.create({ id: 'acct_two' })
  await gateway.accounts.credit('acct_two', '2')
  const { key } = await gateway.keys.create({ accountId: 'acct_two' })
  const body = chatBody('cl-sonnet-4-6', 'hi', { max_tokens: 1_000_000 })
  const response = await post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })

  expect(response.status).toBe(200)
  expect(sandbox.requests.at(-1)?.body).toMatchObject({ max_tokens: 128_000 })
})

test('an estimate counts the bound that the model of a route gets, and not that of its row', async () => {
  const row = { id: 'chat-relayed', kind: 'chat', vendor: 'anthropic', upstream: 'claude-3-haiku-20240307' } as const
  const routed = { ...row, routes: [{ vendor: 'anthropic', upstream: 'claude-opus-4-8' }] }
  const { gateway, close } = await startGateway({ models: [routed] })
  const body = chatBody('chat-relayed', 'hi', { max_tokens: 100_000 })
  const { usage } = await gateway.estimate(CALLER, { endpoint: 'chat', body })
  await close()

  expect(usage.outputTokens).toBe(100_000)
})

test('an estimate takes nothing from the limits of the caller', async () => {
  const caller = { ...CALLER, keyId: 'key_slow', limits: { requestsPerMinute: 1, concurrency: 1 } }
  const body = chatBody('cl-sonnet-4-6', 'hello')
  for (let round = 0; round < 5; round++) await started.gateway.estimate(caller, { endpoint: 'chat', body })

  expect(started.events).not.toContainEqual(expect.objectContaining({ type: 'request-started', keyId: 'key_slow' }))
})

test('a request that would be refused is refused alike', async () => {
  const estimate = (endpoint: string, body: unknown, caller = CALLER) =>
    started.gateway.estimate(caller, { endpoint, body })

  await expect(estimate('no-such', {})).rejects.toMatchObject({ code: 'invalid_request', param: 'endpoint' })
  await expect(estimate('chat', undefined)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(estimate('chat', chatBody('no-such', 'a'))).rejects.toMatchObject({ code: 'model_not_found' })
  await expect(estimate('embeddings', chatBody('cl-sonnet-4-6', 'a'))).rejects.toMatchObject({ status: 400 })
  await expect(
    estimate('chat', chatBody('cl-sonnet-4-6', 'a'), { ...CALLER, scopes: { endpoints: ['videos'] } }),
  ).rejects.toMatchObject({ code: 'permission_denied' })
})

test('every endpoint can be asked about', async () => {
  for (const { id } of ENDPOINTS) {
    await expect(started.gateway.estimate(CALLER, { endpoint: id, body: {} }), id).rejects.toMatchObject({
      status: 400,
    })
  }
})
