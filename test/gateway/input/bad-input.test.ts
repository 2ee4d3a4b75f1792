import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { RawClient } from '../../adapters/support/raw-client.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const EMBEDDINGS = '/v1/embeddings'
const BODY_LIMIT_BYTES = 64 * 1024

let started: StartedGateway
let balanceBefore: bigint

beforeAll(async () => {
  started = await startGateway({ bodyLimitBytes: BODY_LIMIT_BYTES })
})
beforeEach(async () => {
  started.sandbox.reset()
  balanceBefore = (await started.account()).balance
})
afterAll(() => started.close())

function send(path: string, body: BodyInit, headers: Record<string, string> = {}): Promise<Response> {
  const type = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  return fetch(`${started.url}${path}`, { method: 'POST', headers: { ...type, ...headers }, body })
}

/** Checks what every refusal has in common, and gives its error object. */
async function refusalOf(response: Response, status: number): Promise<Record<string, unknown>> {
  const body = (await response.json()) as { error: Record<string, unknown> }
  expect({ status: response.status, body }).toMatchObject({
    status,
    body: { error: { message: expect.any(String), type: 'invalid_request_error', code: expect.any(String) } },
  })
  expect(Object.keys(body.error)).toEqual(['message', 'type', 'param', 'code'])
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
  expect(started.sandbox.requests).toHaveLength(0)
  expect(await started.account()).toEqual({ balance: balanceBefore, held: 0n })
  return body.error
}

const USER = [{ role: 'user', content: 'hello' }]
const FIVE = ['a', 'b', 'c', 'd', 'e']

/** A field, a value out of its bounds, and the name by which the refusal must call it when that is not the field's own. */
type OutOfBounds = readonly [field: string, value: unknown, param?: string]

const named = (rows: readonly OutOfBounds[]): [field: string, value: unknown, param: string][] =>
  rows.map(([field, value, param = field]) => [field, value, param])

const CHAT_BOUNDS: readonly OutOfBounds[] = [
  ['model', undefined],
  ['model', ''],
  ['model', 5],
  ['messages', undefined],
  ['messages', []],
  ['messages', 'hello'],
  ['messages', { 0: USER[0] }],
  ['messages', ['hello'], 'messages[0]'],
  ['messages', [{ role: 'robot', content: 'hello' }], 'messages[0].role'],
  ['messages', [{ content: 'hello' }], 'messages[0].role'],
  ['messages', [...USER, { role: 'user' }], 'messages[1].content'],
  ['messages', [{ role: 'user', content: null }], 'messages[0].content'],
  ['messages', [{ role: 'assistant', content: null }], 'messages[0].content'],
  ['messages', [{ role: 'assistant', content: null, audio: null }], 'messages[0].content'],
  ['messages', [{ role: 'assistant', content: null, function_call: null }], 'messages[0].content'],
  ['messages', [{ role: 'user', content: 7 }], 'messages[0].content'],
  ['messages', [{ role: 'user', content: [{ type: 'text' }] }], 'messages[0].content[0].text'],
  ['messages', [{ role: 'user', content: [{ type: 'text', text: 7 }] }], 'messages[0].content[0].text'],
  ['messages', [{ role: 'user', content: [{ type: 'image_url' }] }], 'messages[0].content[0].image_url'],
  [
    'messages',
    [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }],
    'messages[0].content[0].image_url.url',
  ],
  ['messages', [{ role: 'user', content: 'hello', name: 7 }], 'messages[0].name'],
  ['messages', [{ role: 'tool', content: 'sunny' }], 'messages[0].tool_call_id'],
  ['messages', [{ role: 'user', content: 'hello', tool_call_id: 'call_1' }], 'messages[0].tool_call_id'],
  ['temperature', 2.1],
  ['temperature', -0.1],
  ['temperature', '1'],
  ['top_p', 1.1],
  ['top_p', -0.1],
  ['top_p', true],
  ['max_tokens', -5],
  ['max_tokens', 0],
  ['max_tokens', 1.5],
  ['max_tokens', '100'],
  ['max_tokens', 1e300],
  ['max_completion_tokens', 0],
  ['max_completion_tokens', 10.5],
  ['n', 1e9],
  ['n', 0],
  ['n', 1.5],
  ['n', '2'],
  ['stream', 'true'],
  ['stream', 1],
  ['stream_options', 'include_usage'],
  ['stream_options', { include_usage: 'yes' }, 'stream_options.include_usage'],
  ['stop', FIVE],
  ['stop', [5], 'stop[0]'],
  ['stop', 5],
  ['presence_penalty', 2.1],
  ['presence_penalty', -2.1],
  ['presence_penalty', '0'],
  ['frequency_penalty', 2.1],
  ['frequency_penalty', -2.1],
  ['logit_bias', { 42: 101 }, 'logit_bias.42'],
  ['logprobs', 'yes'],
  ['top_logprobs', 21],
  ['seed', 1.5],
  ['tools', 'get_weather'],
  ['tools', [7], 'tools[0]'],
  ['tool_choice', 7],
  ['parallel_tool_calls', 'no'],
  ['response_format', 'json_object'],
  ['response_format', {}, 'response_format.type'],
  ['reasoning_effort', 'extreme'],
  ['user', 7],
]

const EMBEDDING_BOUNDS: readonly OutOfBounds[] = [
  ['model', undefined],
  ['model', 5],
  ['input', undefined],
  ['input', ''],
  ['input', []],
  ['input', 5],
  ['input', { text: 'hello' }],
  ['input', ['hello', ''], 'input[1]'],
  ['input', ['hello', 5], 'input[1]'],
  ['input', ['hello', null], 'input[1]'],
  ['input', [1, 1.5], 'input[1]'],
  ['input', [[]], 'input[0]'],
  ['encoding_format', 'int8'],
  ['encoding_format', 5],
  ['dimensions', 0],
  ['dimensions', -1],
  ['dimensions', 1.5],
  ['dimensions', '256'],
  ['dimensions', 1e9],
  ['user', 7],
]

test.each(named(CHAT_BOUNDS))(
  'a chat whose %s is %j is refused by name, before anything is held',
  async (field, value, param) => {
    const response = await started.post(CHAT, { model: 'chat-relayed', messages: USER, [field]: value })

    expect(await refusalOf(response, 400)).toMatchObject({ param, code: 'invalid_request' })
  },
)

test.each(named(EMBEDDING_BOUNDS))(
  'an embedding whose %s is %j is refused by name, before anything is held',
  async (field, value, param) => {
    const response = await started.post(EMBEDDINGS, { model: 'embedding-relayed', input: 'hello', [field]: value })

    expect(await refusalOf(response, 400)).toMatchObject({ param, code: 'invalid_request' })
  },
)

test('names a limit in the message', async () => {
  const response = await started.post(CHAT, { model: 'chat-relayed', messages: USER, stop: FIVE })

  expect((await refusalOf(response, 400))['message']).toMatch(/^stop: .*4/)
})

describe.each([CHAT, EMBEDDINGS])('on %s', (path) => {
  const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)

  test.each([
    ['an empty body', ''],
    ['half an object', '{"model":"chat-relayed","messages":['],
    ['words', 'hello'],
    ['two objects', '{}{}'],
    ['invalid UTF-8 in a text', Buffer.concat([Buffer.from('{"model":"'), bytes(0xc3, 0x28), Buffer.from('"}')])],
    ['an unclosed nesting of 20,000', '['.repeat(20_000)],
  ])('rejects %s as invalid JSON', async (_name, body) => {
    expect(await refusalOf(await send(path, body), 400)).toMatchObject({ code: 'invalid_json', param: null })
  })

  test.each([
    ['arrays', `${'['.repeat(10_000)}${']'.repeat(10_000)}`],
    ['objects', `${'{"a":'.repeat(6_000)}1${'}'.repeat(6_000)}`],
    ['arrays in a member', `{"model":"chat-relayed","extra":${'['.repeat(64)}${']'.repeat(64)}}`],
  ])('JSON that nests too deep (%s) is refused', async (_name, body) => {
    expect(await refusalOf(await send(path, body), 400)).toMatchObject({ code: 'json_too_deep' })
  })

  test.each(['null', 'true', '5', '"hello"', '[]'])('%s instead of an object is refused', async (body) => {
    expect(await refusalOf(await send(path, body), 400)).toMatchObject({ code: 'invalid_request' })
  })

  test.each([
    '{"model":"chat-relayed","__proto__":{"stream":true}}',
    '{"model":"chat-relayed","messages":[{"role":"user","content":"hello","__proto__":{"role":"system"}}]}',
    '{"model":"chat-relayed","metadata":{"a":[{"\\u005f_proto__":1}]}}',
  ])('__proto__ is refused anywhere: %s', async (body) => {
    expect(await refusalOf(await send(path, body), 400)).toMatchObject({ param: '__proto__' })
    expect(({} as Record<string, unknown>)['stream']).toBeUndefined()
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'a model called %s is one that nobody knows',
    async (model) => {
      const response = await started.post(path, { model, messages: USER, input: 'hello' })

      expect(await refusalOf(response, 404)).toMatchObject({ code: 'model_not_found', param: 'model' })
    },
  )

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
  ])('the content type %s is not taken', async (type) => {
    const response = await send(path, '{}', { 'content-type': type })

    expect(await refusalOf(response, 415)).toMatchObject({ code: 'unsupported_media_type' })
  })

  test('a body without a content type is not taken', async () => {
    const response = await send(path, Buffer.from('{}'), { 'content-type': '' })

    expect(await refusalOf(response, 415)).toMatchObject({ code: 'unsupported_media_type' })
  })

  test.each(['gzip', 'br', 'x-unknown'])('distinguishes a body compressed by %s from broken JSON', async (encoding) => {
    const response = await send(path, gzipSync('{}'), { 'content-encoding': encoding })

    expect(await refusalOf(response, 415)).toMatchObject({
      code: 'unsupported_media_type',
      message: `The request body has the Content-Encoding "${encoding}", which is not supported. Send it without one.`,
    })
  })

  test('broken JSON without a compression stays broken JSON', async () => {
    const response = await send(path, '{', { 'content-encoding': 'identity' })

    expect(await refusalOf(response, 400)).toMatchObject({ code: 'invalid_json' })
  })

  test('an Idempotency-Key above 255 characters is refused', async () => {
    const model = path === CHAT ? 'chat-relayed' : 'embedding-relayed'
    const response = await started.post(
      path,
      { model, messages: USER, input: 'hello' },
      { 'idempotency-key': 'k'.repeat(256) },
    )

    expect(await refusalOf(response, 400)).toMatchObject({ param: 'Idempotency-Key' })
  })

  test('only POST is taken', async () => {
    const response = await fetch(`${started.url}${path}`, { headers: { authorization: `Bearer ${TEST_KEY}` } })

    expect(response.headers.get('allow')).toBe('POST')
    expect(await refusalOf(response, 405)).toMatchObject({ code: 'method_not_allowed' })
  })

  test('a body whose announced length is over the limit is refused before it is sent', async () => {
    const client = await RawClient.open(Number(new URL(started.url).port))
    client.send('POST', path, [
      `authorization: Bearer ${TEST_KEY}`,
      'content-type: application/json',
      `content-length: ${BODY_LIMIT_BYTES + 1}`,
    ])
    const answer = await client.until('"code":"body_too_large"')
    client.leave()

    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain(`larger than ${BODY_LIMIT_BYTES} bytes`)
    expect(started.sandbox.requests).toHaveLength(0)
  })

  test('a chunked body over the limit is refused, and the connection closes in order', async () => {
    const client = await RawClient.open(Number(new URL(started.url).port))
    const lines = [`authorization: Bearer ${TEST_KEY}`, 'content-type: application/json', 'transfer-encoding: chunked']
    const text = 'x'.repeat(BODY_LIMIT_BYTES + 1)
    client.send('POST', path, lines, `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`)
    const answer = await client.ended()

    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('"code":"body_too_large"')
    expect(client.failure).toBeUndefined()
  })
})

test('a body of exactly the limit is taken', async () => {
  const json = JSON.stringify(chatBody('chat-relayed', 'hello'))
  const response = await send(CHAT, json.padEnd(BODY_LIMIT_BYTES, ' '))

  expect(response.status).toBe(200)
  await response.body?.cancel()
})

test('a member called constructor is an ordinary unknown member', async () => {
  const response = await send(
    CHAT,
    '{"model":"chat-relayed","messages":[{"role":"user","content":"hello"}],"metadata":{"constructor":"x"}}',
  )

  expect(response.status).toBe(200)
  expect(started.sandbox.requests[0]?.body).toMatchObject({ metadata: { constructor: 'x' } })
  await response.body?.cancel()
})

test.each([
  ['GET', '/v1'],
  ['POST', '/v1/chat/completion'],
  ['POST', '/v1/chat/completions/'],
  ['POST', '/v1/chat/../chat'],
  ['DELETE', '/v2/models'],
])('has no route for %s %s', async (method, path) => {
  const response = await fetch(`${started.url}${path}`, { method, headers: { authorization: `Bearer ${TEST_KEY}` } })

  expect(await refusalOf(response, 404)).toMatchObject({ code: 'route_not_found' })
})

test.each([
  ['POST', '/chat/completions', 'There is no route POST /chat/completions. Set a base URL that ends with /v1.'],
  ['GET', '/models/gpt-5.4', 'There is no route GET /models/gpt-5.4. Set a base URL that ends with /v1.'],
  ['POST', '/v1/v1/messages', 'There is no route POST /v1/v1/messages. Set a base URL without /v1.'],
  ['POST', '/v1/batches', 'There is no route POST /v1/batches. Batches are off at this gateway.'],
  ['POST', '/v1/nothing', 'There is no route POST /v1/nothing.'],
])('explains what is wrong with the address %s %s', async (method, path, message) => {
  const response = await fetch(`${started.url}${path}`, { method, headers: { authorization: `Bearer ${TEST_KEY}` } })

  expect(await refusalOf(response, 404)).toMatchObject({ code: 'route_not_found', message })
})

test.each(['/v1/models', '/v1/models/chat-relayed', '/v1/account', '/healthz'])('%s is only read', async (path) => {
  const response = await fetch(`${started.url}${path}`, { method: 'DELETE' })

  expect(response.headers.get('allow')).toBe('GET, HEAD')
  expect(await refusalOf(response, 405)).toMatchObject({ code: 'method_not_allowed' })
})

test.each([
  [CHAT, 'embedding-relayed'],
  [CHAT, 'wv2.6-t2v'],
  [EMBEDDINGS, 'chat-relayed'],
  [EMBEDDINGS, 'qw-image-2.0'],
])('%s refuses the model %s, which is for another endpoint', async (path, model) => {
  const response = await started.post(path, { model, messages: USER, input: 'hello' })

  expect(await refusalOf(response, 400)).toMatchObject({ code: 'endpoint_model_mismatch', param: 'model' })
})

test('refuses a model whose vendor has no key with a neutral text, and tells the operator what to set', async () => {
  const other = await startGateway({ vendors: [anthropic({})] })
  const keyless = await other.post(CHAT, chatBody('cl-sonnet-4-6', 'hello'))
  const absent = await other.post(CHAT, chatBody('gmn-2.5-flash', 'hello'))
  const bodies = [await keyless.json(), await absent.json()]
  const warnings = other.gateway.warnings().filter(({ code }) => code === 'vendor-unconfigured')
  await other.close()

  expect([keyless.status, absent.status]).toEqual([503, 503])
  expect(bodies[0].error).toMatchObject({ code: 'model_not_configured', param: 'model' })
  expect(bodies.map(({ error }) => error.message)).toEqual([
    'The model "cl-sonnet-4-6" is not available here.',
    'The model "gmn-2.5-flash" is not available here.',
  ])
  expect(warnings.map(({ message }) => message)).toEqual(
    expect.arrayContaining([
      'The vendor "anthropic" has no key, so no call goes to it. Set ANTHROPIC_API_KEY or anthropic({ apiKey }).',
      'There is no vendor "gemini", so no call goes to it. Add it to the option vendors.',
    ]),
  )
  expect(keyless.headers.get('retry-after')).toBe('5')
  expect(keyless.headers.get('x-should-retry')).toBe('false')
})
