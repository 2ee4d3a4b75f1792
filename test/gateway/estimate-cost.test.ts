import { afterAll, beforeAll, expect, test } from 'vitest'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import type { Principal } from '../../src/stores/principal.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

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
