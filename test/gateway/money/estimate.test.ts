import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const ESTIMATE = '/v1/estimate'
const BODY = chatBody('cl-sonnet-4-6', 'good morning', { max_tokens: 100 })

interface Estimate {
  held: string | null
  [member: string]: unknown
}

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

async function start(options: Partial<GatewayOptions> = {}) {
  started = await startGateway(options)
  return started
}

async function estimateOf(response: Response): Promise<Estimate> {
  expect(response.status).toBe(200)
  return (await response.json()) as Estimate
}

const errorOf = async (response: Response) => ((await response.json()) as { error: Record<string, unknown> }).error
const ask = (endpoint: string, body: unknown, headers?: Record<string, string>) =>
  started!.post(ESTIMATE, { endpoint, body }, headers)

test('returns the amount that the same request holds while it runs, by the path and by the id of the endpoint', async () => {
  await start()
  const body = chatBody('cl-sonnet-4-6', '[[fault:delay=200]] good morning', { max_tokens: 100 })
  const byPath = await estimateOf(await ask(CHAT, body))
  const byId = await estimateOf(await ask('chat', body))
  const answer = started!.post(CHAT, body)
  await started!.sandbox.nextRequest()
  const { held } = await started!.account()
  await answer

  expect(byPath).toEqual({
    object: 'estimate',
    endpoint: 'chat',
    model: 'cl-sonnet-4-6',
    usage: { inputTokens: expect.any(Number), outputTokens: 100 },
    billing: 'on',
    held: expect.any(String),
    currency: 'USD',
    exact: false,
    models: ['cl-sonnet-4-6'],
  })
  expect(byId).toEqual(byPath)
  expect(held).toBe(BigInt(Math.round(Number(byPath.held) * 1e9)))
})

test('the example of the page is so', async () => {
  const row = { model: 'claude-sonnet-5-5', per: 1_000_000 }
  const prices = [
    { ...row, meter: 'input_token', amount: '2' },
    { ...row, meter: 'output_token', amount: '10' },
  ] as const
  await start({ prices: { currency: 'USD', prices } })
  const body = { model: 'claude-sonnet-5-5', max_tokens: 500, messages: [{ role: 'user', content: 'Hello' }] }
  const page = readFileSync(new URL('../../../docs/billing.md', import.meta.url), 'utf8')
  const shown = /```json\n(\{\n {2}"object": "estimate"[^`]+)```/.exec(page)?.[1] ?? ''

  expect(await estimateOf(await ask('chat', body))).toEqual(JSON.parse(shown))
})

test('journal, usage records, events and vendors stay untouched', async () => {
  const clock = fakeClock({ startMs: Date.now() })
  await start({ clock })
  const ledger = await started!.gateway.accounts.ledger(TEST_ACCOUNT)
  const before = await started!.account()
  await estimateOf(await ask('chat', BODY))
  await estimateOf(await ask('chat', { ...BODY, stream: true }))
  await estimateOf(
    await ask('videos', { model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } }),
  )
  clock.advance(1_000)
  await new Promise((resolve) => setImmediate(resolve))

  expect(await started!.account()).toEqual(before)
  expect(await started!.gateway.accounts.ledger(TEST_ACCOUNT)).toEqual(ledger)
  expect((await started!.gateway.usage.records({ accountId: TEST_ACCOUNT })).records).toEqual([])
  expect((await started!.gateway.tasks.listAll()).tasks).toEqual([])
  expect(started!.events.map(({ type }) => type)).not.toContain('request-started')
  expect(started!.sandbox.requests).toEqual([])
  expect(started!.sandbox.openConnections).toBe(0)
})

test('no Idempotency-Key is claimed', async () => {
  await start()
  const key = { 'idempotency-key': 'once' }
  await estimateOf(await ask('chat', BODY, key))
  const response = await started!.post(CHAT, BODY, key)

  expect(response.headers.get('idempotent-replayed')).toBeNull()
  expect(await response.json()).toMatchObject({ object: 'chat.completion' })
})

test('runs no hook', async () => {
  const hook: AnyHook = { name: 'never', request: () => ({ deny: {} }) }
  await start({ hooks: [hook] })
  await estimateOf(await ask('chat', BODY))
  expect((await started!.post(CHAT, BODY)).status).toBe(400)
})

describe('limits', () => {
  test('counts an estimate against limits of requests, but not of tokens', async () => {
    await start({ limits: { requestsPerMinute: 2, tokensPerMinute: 150, concurrency: 1 } })
    const first = await ask('chat', BODY)
    const second = await ask('chat', BODY)
    const third = await ask('chat', BODY)

    expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('1')
    expect(first.headers.get('x-ratelimit-remaining-tokens')).toBeNull()
    expect([first.status, second.status, third.status]).toEqual([200, 200, 429])
    expect(third.headers.get('retry-after')).not.toBeNull()
  })

  test('lets the request itself pass despite limits of tokens', async () => {
    await start({ limits: { tokensPerMinute: 150 } })
    for (let round = 0; round < 3; round++) await estimateOf(await ask('chat', BODY))
    expect((await started!.post(CHAT, BODY)).status).toBe(200)
  })
})

describe('the models', () => {
  test('lists the models that may answer, and holds for the most expensive one', async () => {
    const row = { meter: 'request', per: 1 } as const
    await start({
      models: [
        { id: 'cheap', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o', fallbacks: ['dear', 'unpriced'] },
        { id: 'dear', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' },
        { id: 'unpriced', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o-mini' },
      ],
      prices: {
        currency: 'USD',
        prices: [
          { ...row, model: 'cheap', amount: '0.01' },
          { ...row, model: 'dear', amount: '0.05' },
        ],
      },
    })
    expect(await estimateOf(await ask('chat', chatBody('cheap', 'Hi')))).toMatchObject({
      model: 'cheap',
      models: ['cheap', 'dear'],
      held: '0.05',
    })
  })

  test('hold nothing for a free endpoint, and report if billing is off', async () => {
    await start()
    const counted = { model: 'cl-sonnet-4-6', messages: [{ role: 'user', content: 'Hi' }] }
    expect(await estimateOf(await ask('/v1/messages/count_tokens', counted))).toMatchObject({
      held: '0',
      billing: 'on',
    })
    expect(await estimateOf(await ask('moderations', { input: 'Hi' }))).toMatchObject({ held: '0' })
    await started!.close()
    await start({ billing: 'off' })
    expect(await estimateOf(await ask('chat', BODY))).toMatchObject({ held: null, billing: 'off' })
  })
})

test('estimates the edit of an image that is in the body', async () => {
  await start()
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const images = [{ image_url: `data:image/png;base64,${png}` }]
  const response = await ask('/v1/images/edits', { model: 'gp-image-2', prompt: 'more light', images })

  expect(await estimateOf(response)).toMatchObject({ endpoint: 'image_edits', usage: { images: 1 } })
  expect(started!.sandbox.requests).toEqual([])
})

test('rejects a transcription, which is always a form', async () => {
  await start()
  const response = await ask('transcriptions', { model: 'whisper-1' })

  expect(response.status).toBe(415)
})

describe('what is refused', () => {
  test.each([
    ['an unknown endpoint', { endpoint: 'no-such', body: {} }, 'endpoint'],
    ['no endpoint', { body: {} }, 'endpoint'],
    ['no body', { endpoint: 'chat' }, 'body'],
    ['another member', { endpoint: 'chat', body: BODY, dry: true }, 'dry'],
    ['a body that the endpoint refuses', { endpoint: 'chat', body: { model: 'cl-sonnet-4-6' } }, 'messages'],
  ])('%s', async (_title, body, param) => {
    await start()
    const response = await started!.post(ESTIMATE, body)
    expect(response.status).toBe(400)
    expect(await errorOf(response)).toMatchObject({ param })
  })

  test('no key, a key without the scope, and a model without a price', async () => {
    await start()
    const { key } = await started!.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes: { endpoints: ['videos'] } })
    const statuses = [
      (await ask('chat', BODY, { authorization: 'Bearer wrong' })).status,
      (await ask('chat', BODY, { authorization: `Bearer ${key}` })).status,
      (await ask('chat', chatBody('gpt-4o', 'Hi'))).status,
    ]
    expect(statuses).toEqual([401, 403, 400])
  })

  test('other methods of the path', async () => {
    await start()
    const response = await fetch(`${started!.url}${ESTIMATE}`, { headers: { authorization: `Bearer ${TEST_KEY}` } })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

test('the client asks by the same route, in process too', async () => {
  await start()
  const client = started!.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'key_1', tier: 'paid' })
  const estimate = await client.estimate({ endpoint: 'chat', body: BODY })
  expect(estimate).toEqual(await estimateOf(await ask('chat', BODY)))
})
