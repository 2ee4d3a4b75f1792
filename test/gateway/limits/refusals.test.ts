import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

const CHAT = '/v1/chat/completions'
const HI = { model: 'chat-relayed', messages: [{ role: 'user', content: 'hi' }] }

function refusals({ events }: StartedGateway): GatewayEvent[] {
  return events.filter(({ type }) => type === 'request-refused')
}

describe('a request that is refused before it is announced', () => {
  test.each([
    ['an unknown route', 'GET', '/v1/nothing', undefined, { status: 404, code: 'route_not_found' }],
    ['a wrong method', 'GET', CHAT, undefined, { status: 405, code: 'method_not_allowed' }],
    ['a wrong key', 'POST', CHAT, 'sk-wrong', { status: 401, code: 'invalid_api_key', endpoint: 'chat' }],
    ['a wrong key where nothing is called', 'GET', '/v1/account', 'sk-wrong', { status: 401, code: 'invalid_api_key' }],
  ])('is one event that names nobody: %s', async (_what, method, path, key, expected) => {
    started = await startGateway()
    const answer = await fetch(`${started.url}${path}`, {
      method,
      headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), 'content-type': 'application/json' },
      ...(method === 'POST' ? { body: JSON.stringify(HI) } : {}),
    })

    expect(answer.status).toBe(expected.status)
    expect(started.events).toEqual([
      {
        type: 'request-refused',
        requestId: answer.headers.get('x-request-id'),
        endpoint: undefined,
        accountId: undefined,
        keyId: undefined,
        model: undefined,
        ...expected,
      },
    ])
  })

  test('is one event that names the caller, and the model once it was found', async () => {
    started = await startGateway({ limits: { requestsPerMinute: 1 } })
    const answers = [
      await started.post(CHAT, { ...HI, model: 'nobody' }),
      await started.post(CHAT, { ...HI, max_tokens: -5 }),
      await started.post(CHAT, HI),
      await started.post(CHAT, HI),
    ]

    expect(answers.map(({ status }) => status)).toEqual([404, 400, 200, 429])
    const caller = { type: 'request-refused', endpoint: 'chat', accountId: TEST_ACCOUNT }
    expect(refusals(started)).toMatchObject([
      { ...caller, status: 404, code: 'model_not_found', model: undefined },
      { ...caller, status: 400, code: 'invalid_request', model: undefined },
      { ...caller, status: 429, code: 'rate_limited', model: 'chat-relayed' },
    ])
  })

  test.each([
    ['GET', '/v1/videos/generations/task_unknown', 'task_not_found'],
    ['GET', '/v1/videos/generations?limit=nonsense', 'invalid_request'],
    ['GET', '/v1/models/nobody', 'model_not_found'],
  ])('is one event that names the caller where nothing is called: %s %s', async (method, path, code) => {
    started = await startGateway()
    const answer = await fetch(`${started.url}${path}`, { method, headers: { authorization: `Bearer ${TEST_KEY}` } })

    expect(started.events).toEqual([
      {
        type: 'request-refused',
        requestId: answer.headers.get('x-request-id'),
        endpoint: undefined,
        accountId: TEST_ACCOUNT,
        keyId: expect.stringMatching(/^key_/),
        model: undefined,
        status: answer.status,
        code,
      },
    ])
  })

  test('names the caller for whom the host vouches, where nothing is called too', async () => {
    started = await startGateway()
    const client = started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'nightly-job', tier: 'paid' })

    await expect(client.videos.get('task_unknown')).rejects.toMatchObject({ status: 404 })

    expect(started.events).toMatchObject([
      { type: 'request-refused', accountId: TEST_ACCOUNT, keyId: 'nightly-job', code: 'task_not_found' },
    ])
  })

  test('counts a rejection for a low balance as one, and announces nothing', async () => {
    started = await startGateway()
    const { gateway, url } = started
    await gateway.accounts.create({ id: 'acct_poor' })
    const { key } = await gateway.keys.create({ accountId: 'acct_poor' })
    const answer = await fetch(`${url}${CHAT}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(HI),
    })

    expect(answer.status).toBe(402)
    expect(started.events).toMatchObject([
      { type: 'request-refused', status: 402, code: 'insufficient_balance', accountId: 'acct_poor' },
    ])
  })
})

test('emits request-ended for a request that failed at its vendor, not a rejection', async () => {
  started = await startGateway()
  const answer = await fetch(`${started.url}${CHAT}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...HI, messages: [{ role: 'user', content: '[[fault:status=400]]' }] }),
  })
  await answer.text()

  expect(await started.ended(answer)).toMatchObject({ status: 400, code: 'upstream_rejected' })
  expect(refusals(started)).toEqual([])
})

test('does not count an answered request as a rejection', async () => {
  started = await startGateway()
  const answer = await started.post(CHAT, HI)
  await answer.text()
  await started.ended(answer)

  expect(started.events.map(({ type }) => type)).toEqual(['request-started', 'request-ended'])
})
