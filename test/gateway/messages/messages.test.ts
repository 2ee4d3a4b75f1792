import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { eventsOf } from '../../endpoints/messages/stream-events.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { messagesBody } from './messages-requests.ts'

const PATH = '/v1/messages'
const MODELS = ['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-relayed'] as const

/** Model whose vendor fetches no images. */
const BLIND = { id: 'fetches-nothing', kind: 'chat', vendor: 'gemini', upstream: 'gemini-2.0-flash' } as const

let started: StartedGateway

afterEach(() => started.close())

/** Posts with the key in `x-api-key`, as older clients of the dialect do. */
function postWithKeyHeader(path: string, body: unknown): Promise<Response> {
  return fetch(`${started.url}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': TEST_KEY, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

describe.each(MODELS)('%s', (model) => {
  test('the same answer costs the same whole and streamed, cache reads and writes included', async () => {
    started = await startGateway()
    const text = 'a cached text with a cache-write in it'
    const whole = await started.post(PATH, messagesBody(model, text))
    await whole.text()
    const streamed = await started.post(PATH, messagesBody(model, text, { stream: true }))
    const events = eventsOf(new Uint8Array(await streamed.arrayBuffer()))

    const [one, other] = [await started.ended(whole), await started.ended(streamed)]
    expect(one.costNanoDollars).toBeGreaterThan(0n)
    expect(other.costNanoDollars).toBe(one.costNanoDollars)
    expect(other.usage).toMatchObject({ cachedInputTokens: one.usage?.cachedInputTokens })
    expect(one.usage?.cachedInputTokens).toBeGreaterThan(0)
    const usage = events.find(({ type }) => type === 'message_delta')?.['usage'] as Record<string, number>
    const { input_tokens: fresh = 0, cache_read_input_tokens: read = 0, cache_creation_input_tokens: made = 0 } = usage
    expect(fresh + read + made).toBe(one.usage?.inputTokens)
    expect(usage['output_tokens']).toBe(one.usage?.outputTokens)
  })

  test.each([false, true])('every answer tells its request id as clients read it (stream: %s)', async (stream) => {
    started = await startGateway()
    const response = await postWithKeyHeader(PATH, messagesBody(model, 'hello', { stream }))
    await response.text()

    expect(response.status).toBe(200)
    expect(response.headers.get('request-id')).toMatch(/^req_/)
    expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id'))
  })

  test('ends a stream that breaks off with an error event and no message_stop, and charges the output received so far', async () => {
    started = await startGateway()
    const body = messagesBody(model, '[[fault:reset-mid-stream=6]] one two three four five six', { stream: true })
    const response = await started.post(PATH, body)
    const events = eventsOf(new Uint8Array(await response.arrayBuffer()))
    const ended = await started.ended(response)

    expect(events.at(-1)).toEqual({ type: 'error', error: { type: 'api_error', message: expect.any(String) } })
    expect(events.map(({ type }) => type)).not.toContain('message_stop')
    expect(ended.ending).toBe('failed')
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
  })

  test('an error before any content has its own status', async () => {
    started = await startGateway()
    const body = messagesBody(model, '[[fault:status=429,retry-after=7]] hello', { stream: true })
    const response = await started.post(PATH, body)

    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe('7')
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } })
  })

  test("a vendor's complaint about our key shows no key", async () => {
    started = await startGateway()
    const response = await started.post(PATH, messagesBody(model, '[[fault:leak-key]] hello'))
    const text = await response.text()

    expect(response.status).toBe(503)
    expect(text).not.toContain('canary')
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { type: 'api_error' } })
  })

  test("the content filter's verdict is a refusal", async () => {
    started = await startGateway()
    const response = await started.post(PATH, messagesBody(model, '[[fault:blocked]] hello'))

    expect(await response.json()).toMatchObject({ stop_reason: 'refusal' })
  })

  test('a count is free, holds nothing, and needs no price', async () => {
    started = await startGateway({ prices: { currency: 'USD', prices: [] } })
    const { max_tokens: _bound, ...body } = messagesBody(model, 'How many tokens are these?')
    const response = await started.post(`${PATH}/count_tokens`, body)
    const count = (await response.json()) as { input_tokens: number; estimated?: boolean }
    const ended = await started.ended(response)

    expect(response.status).toBe(200)
    expect(count.input_tokens).toBeGreaterThan(3)
    expect(count.estimated).toBe(model === 'chat-relayed' ? true : undefined)
    expect(ended).toMatchObject({ endpoint: 'messages', costNanoDollars: 0n })
    expect(started.sandbox.requests).toHaveLength(model === 'chat-relayed' ? 0 : 1)
  })
})

describe('the model', () => {
  test('is the id that the caller wrote, be it an alias', async () => {
    started = await startGateway()
    const answers = await Promise.all(
      ['claude-sonnet-4-6', 'gemini-2.5-flash'].map(async (alias) => {
        const response = await started.post(PATH, messagesBody(alias, 'hello'))
        return ((await response.json()) as { model: string }).model
      }),
    )

    expect(answers).toEqual(['claude-sonnet-4-6', 'gemini-2.5-flash'])
  })

  test('is that of the fallback, across dialects', async () => {
    const definition = { id: 'first', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-4-6' } as const
    started = await startGateway({
      billing: 'off',
      models: [...TEST_MODELS, { ...definition, fallbacks: ['gmn-2.5-flash'] }],
    })
    started.sandbox.fault({ kind: 'status', status: 529, vendor: 'anthropic', times: 2 })
    const response = await started.post(PATH, messagesBody('first', 'hello', { stream: true }))
    const [start] = eventsOf(new Uint8Array(await response.arrayBuffer()))

    expect(start).toMatchObject({ message: { model: 'gmn-2.5-flash' } })
    expect(response.headers.get('x-signalbox-vendor')).toBe('gemini')
  })
})

describe('errors are written as callers of the dialect read them', () => {
  const cases: readonly [string, number, string, Partial<GatewayOptions>, () => Promise<Response>][] = [
    ['no key', 401, 'authentication_error', {}, () => fetch(`${started.url}${PATH}`, { method: 'POST' })],
    [
      'too little money',
      402,
      'billing_error',
      {},
      () => started.post(PATH, messagesBody('cl-sonnet-4-6', 'hello', { max_tokens: 100_000_000 })),
    ],
    ['an unknown model', 404, 'not_found_error', {}, () => started.post(PATH, messagesBody('no-such-model', 'hello'))],
    ['an unknown path', 404, 'not_found_error', {}, () => started.post(`${PATH}/batches`, {})],
    ['another method', 405, 'invalid_request_error', {}, () => fetch(`${started.url}${PATH}`)],
    ['a body that is no JSON', 400, 'invalid_request_error', {}, () => started.post(PATH, undefined)],
    [
      'a bound that is missing',
      400,
      'invalid_request_error',
      {},
      () => started.post(PATH, { model: 'cl-sonnet-4-6', messages: [{ role: 'user', content: 'hello' }] }),
    ],
    [
      'a body that is too large',
      413,
      'request_too_large',
      { bodyLimitBytes: 100 },
      () => started.post(PATH, messagesBody('cl-sonnet-4-6', 'a'.repeat(200))),
    ],
    [
      'what the vendor objects to',
      400,
      'invalid_request_error',
      {},
      () => started.post(PATH, messagesBody('cl-sonnet-4-6', 'hello', { temperature: 0.5, top_p: 0.5 })),
    ],
  ]

  test.each(cases)('%s: %i %s', async (_what, status, type, options, call) => {
    started = await startGateway(options)
    const response = await call()

    expect(response.status).toBe(status)
    expect(await response.json()).toEqual({
      type: 'error',
      error: { type, message: expect.any(String) },
      request_id: response.headers.get('request-id'),
    })
  })

  test("the vendor's words about the caller's input are kept", async () => {
    started = await startGateway()
    const body = messagesBody('cl-sonnet-4-6', 'hello', { temperature: 0.5, top_p: 0.5 })
    const response = await started.post(PATH, body)

    expect(await response.json()).toMatchObject({
      error: { message: '`temperature` and `top_p` cannot both be specified for this model. Please use only one.' },
    })
  })

  test('too many requests: 429 with the time to wait', async () => {
    started = await startGateway({ limits: { requestsPerMinute: 1 } })
    const { max_tokens: _bound, ...count } = messagesBody('cl-sonnet-4-6', 'hello')
    await started.post(`${PATH}/count_tokens`, count).then((response) => response.text())
    const response = await started.post(`${PATH}/count_tokens`, count)

    expect(response.status).toBe(429)
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } })
  })
})

test.each([
  ['GET', '/v1/nothing', 404, 'not_found_error'],
  ['DELETE', '/v1/models', 405, 'invalid_request_error'],
  ['POST', '/v1/messages/nothing', 404, 'not_found_error'],
  ['GET', '/v1/messages', 405, 'invalid_request_error'],
])('%s %s is an error in the shape that clients of the dialect read', async (method, path, status, type) => {
  started = await startGateway()
  const headers = { 'x-api-key': TEST_KEY, 'anthropic-version': '2023-06-01' }
  const answer = await fetch(`${started.url}${path}`, { method, headers })

  expect([answer.status, await answer.json()]).toEqual([
    status,
    { type: 'error', error: { type, message: expect.any(String) }, request_id: answer.headers.get('request-id') },
  ])
})

test('a key for messages may count too, and a key for chat neither', async () => {
  started = await startGateway()
  const keyFor = async (endpoint: string): Promise<Record<string, string>> => {
    const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes: { endpoints: [endpoint] } })
    return { authorization: `Bearer ${key}` }
  }
  const [messages, chat] = [await keyFor('messages'), await keyFor('chat')]
  const body = messagesBody('cl-sonnet-4-6', 'hello')
  const statuses = await Promise.all(
    [messages, chat].flatMap((headers) =>
      [PATH, `${PATH}/count_tokens`].map(async (path) => (await started.post(path, body, headers)).status),
    ),
  )

  expect(statuses).toEqual([200, 200, 403, 403])
})

test('fetches an image by URL for a vendor that fetches none, and passes the URL to one that does', async () => {
  started = await startGateway({ billing: 'off', models: [...TEST_MODELS, BLIND] })
  const origin = await sandboxOrigin()
  const picture = { type: 'image', source: { type: 'url', url: `${origin}/sandbox-files/boat-8x8.png` } }
  const content = [picture, { type: 'text', text: 'Which boat?' }]
  const ask = async (model: string): Promise<string> => {
    started.sandbox.reset()
    const response = await started.post(PATH, { model, max_tokens: 100, messages: [{ role: 'user', content }] })
    await response.text()
    return JSON.stringify(started.sandbox.requests.at(-1)?.body)
  }

  const [translated, relayed] = [await ask(BLIND.id), await ask('cl-sonnet-4-6')]
  expect(translated).toContain('"inlineData"')
  expect(translated).not.toContain('boat-8x8')
  expect(relayed).toContain('boat-8x8.png')
  expect(started.sandbox.requests).toHaveLength(1)
})

test('rejects an image at a private address if the gateway would fetch it', async () => {
  started = await startGateway({ allowPrivateUrls: false, billing: 'off', models: [...TEST_MODELS, BLIND] })
  const content = [{ type: 'image', source: { type: 'url', url: 'http://169.254.169.254/latest/meta-data' } }]
  const body = { model: BLIND.id, max_tokens: 100, messages: [{ role: 'user', content }] }
  const response = await started.post(PATH, body)

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
  expect(started.sandbox.requests).toHaveLength(0)
})

/** Where the stand-ins listen, as a call that reached them tells. */
async function sandboxOrigin(): Promise<string> {
  await started.post(PATH, messagesBody('cl-sonnet-4-6', 'hello')).then((response) => response.text())
  const call = await started.sandbox.nextRequest()
  return `http://${call.headers['host']}`
}
