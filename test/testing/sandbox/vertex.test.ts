import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { anthropic, anthropicVertex } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini, vertex } from '../../../src/vendors/gemini/gemini.ts'
import { CODING_CLIENT_HEADERS, codingClientRequest, messagesBody } from '../../gateway/messages/messages-requests.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

/** The same model at its maker and at Vertex AI: public id, vendor and vendor id of each. */
const PAIRS = {
  flash: ['gemini', 'gemini-2.5-flash', 'vertex', 'gemini-2.5-flash'],
  signing: ['gemini', 'gemini-3-pro-preview', 'vertex', 'gemini-3-pro-preview'],
  haiku: ['anthropic', 'claude-haiku-4-5', 'anthropic-vertex', 'claude-haiku-4-5@20251001'],
  opus: ['anthropic', 'claude-opus-4-6', 'anthropic-vertex', 'claude-opus-4-6'],
} as const

const sandbox = sandboxVendors()
let started: StartedGateway

beforeAll(async () => {
  const { origin: baseURL } = await sandbox.listen()
  const place = { project: 'our-project', location: 'us-east5', baseURL, apiKey: () => ({ token: 'any-token' }) }
  const rows = Object.entries(PAIRS).flatMap(([name, [maker, own, cloud, theirs]]) => [
    { id: `${name}-direct`, kind: 'chat' as const, vendor: maker, upstream: own, limits: { maxOutputTokens: 2000 } },
    { id: `${name}-vertex`, kind: 'chat' as const, vendor: cloud, upstream: theirs, limits: { maxOutputTokens: 2000 } },
  ])
  const vectors = [
    { id: 'vectors-direct', kind: 'embedding' as const, vendor: 'gemini', upstream: 'gemini-embedding-001' },
    { id: 'vectors-vertex', kind: 'embedding' as const, vendor: 'vertex', upstream: 'gemini-embedding-001' },
    { id: 'vectors-2-vertex', kind: 'embedding' as const, vendor: 'vertex', upstream: 'gemini-embedding-2-preview' },
    { id: 'texts-vertex', kind: 'embedding' as const, vendor: 'vertex', upstream: 'text-embedding-005' },
  ].map((row) => ({ ...row, limits: { dimensions: 768, nativeDimensions: { min: 128, max: 3072 } } }))
  const open = { id: 'open-vertex', kind: 'chat' as const, vendor: 'vertex', upstream: 'openai/gpt-oss-120b-maas' }
  const pictures = {
    id: 'pictures',
    kind: 'image' as const,
    vendor: 'vertex',
    upstream: 'gemini-2.5-flash-image',
    protocol: 'interactions',
    image: { outputTokens: { default: 1290 } },
  }
  const prices: PriceRow[] = [...rows, ...vectors, open, pictures].flatMap(({ id }) => [
    { model: id, meter: 'input_token' as const, amount: '3.00', per: 1_000_000 },
    { model: id, meter: 'cached_input_token' as const, amount: '0.30', per: 1_000_000 },
    { model: id, meter: 'cache_write_token' as const, amount: '3.75', per: 1_000_000 },
    { model: id, meter: 'output_token' as const, amount: '15.00', per: 1_000_000 },
    { model: id, meter: 'output_image_token' as const, amount: '30.00', per: 1_000_000 },
  ])
  started = await startGateway({
    vendors: [
      gemini({ apiKey: 'direct-key-0123', baseURL }),
      anthropic({ apiKey: 'direct-key-0123', baseURL }),
      vertex(place),
      anthropicVertex(place),
    ],
    models: [...rows, ...vectors, open, pictures],
    prices: { currency: 'USD', prices },
  })
})
beforeEach(() => sandbox.reset())
afterAll(async () => {
  await started.close()
  await sandbox.close()
})

const TOOLS = [
  {
    type: 'function',
    function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
  },
]

/** Returns the account's charge for an answer, in nano-dollars. */
async function paidFor(answer: Response): Promise<bigint> {
  await started.ended(answer)
  const [line] = await started.gateway.accounts.ledger('acct_test', { limit: 1 })
  return line?.amount ?? 0n
}

/** Returns the JSON text of an answer without names of the call or the model. */
const comparable = (text: string): string =>
  text
    .replaceAll(/-(?:direct|vertex)"/g, '"')
    .replaceAll(/"(?:id|created|system_fingerprint|tool_call_id)":(?:"[^"]*"|\d+)/g, '"id":0')

describe.each(Object.keys(PAIRS))('%s', (name) => {
  const ask = async (where: 'direct' | 'vertex', path: string, body: (model: string) => object) => {
    const answer = await started.post(path, body(`${name}-${where}`), { 'x-api-key': TEST_KEY })
    const text = await answer.text()
    expect(answer.status, text).toBe(200)
    return { text: comparable(text), paid: await paidFor(answer), dropped: answer.headers.get('x-signalbox-dropped') }
  }

  test.each<[string, string, (model: string) => object]>([
    ['a chat', CHAT, (model) => chatBody(model, 'Hello there, cached please')],
    [
      'a streamed chat',
      CHAT,
      (model) => chatBody(model, 'Hello there', { stream: true, stream_options: { include_usage: true } }),
    ],
    ['a chat that calls a tool', CHAT, (model) => chatBody(model, 'call get_weather', { tools: TOOLS })],
    ['a streamed call of a tool', CHAT, (model) => chatBody(model, 'call get_weather', { tools: TOOLS, stream: true })],
    ['a message', MESSAGES, (model) => messagesBody(model, 'Hello there cache-write')],
    ['a streamed message', MESSAGES, (model) => messagesBody(model, 'Hello there', { stream: true })],
    ['a response', '/v1/responses', (model) => ({ model, input: 'Hello there', store: false })],
  ])('%s is answered and charged as at its maker', async (_what, path, body) => {
    const direct = await ask('direct', path, body)
    const cloud = await ask('vertex', path, body)

    expect(cloud).toEqual({ ...direct, text: expect.any(String) })
    expect(cloud.paid).toBeLessThan(0n)
    if (path === CHAT) expect(cloud.text.replaceAll(/"id":0/g, '')).toBe(direct.text.replaceAll(/"id":0/g, ''))
  })

  test('the results of tools go back to the model', async () => {
    const first = await started.post(CHAT, chatBody(`${name}-vertex`, 'call get_weather', { tools: TOOLS }))
    const { choices } = (await first.json()) as { choices: { message: { tool_calls: { id: string }[] } }[] }
    const message = choices[0]!.message
    const second = await started.post(CHAT, {
      model: `${name}-vertex`,
      tools: TOOLS,
      messages: [
        { role: 'user', content: 'call get_weather' },
        message,
        { role: 'tool', tool_call_id: message.tool_calls[0]!.id, content: 'sunny' },
      ],
    })

    expect(await second.json()).toMatchObject({ choices: [{ message: { content: expect.stringContaining('sunny') } }] })
  })

  test('tokens are counted by the vendor', async () => {
    const answer = await started.post('/v1/messages/count_tokens', messagesBody(`${name}-vertex`, 'Hello there'))

    expect(await answer.json()).toEqual({ input_tokens: expect.any(Number) })
    expect(sandbox.requests.map(({ vendor, operation }) => `${vendor} ${operation}`)).toEqual(['vertex count-tokens'])
  })
})

test.each([
  ['/v1/messages/count_tokens', messagesBody('open-vertex', 'Hello there')],
  ['/v1/responses/input_tokens', { model: 'open-vertex', input: 'Hello there' }],
])('tokens for an open model, which the vendor does not count, are estimated by %s', async (path, body) => {
  const answer = await started.post(path, body)

  expect(await answer.json()).toMatchObject({ input_tokens: expect.any(Number), estimated: true })
  expect(sandbox.requests).toEqual([])
})

describe('what is sent', () => {
  const sent = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const answer = await started.post(path, body, headers)
    expect(answer.status, await answer.clone().text()).toBe(200)
    await answer.text()
    return sandbox.requests.at(-1)!
  }

  test('goes to the place of the project with a bearer and no key', async () => {
    const call = await sent(CHAT, chatBody('flash-vertex', 'Hello', { stream: true }))

    expect(call.path).toBe(
      '/v1/projects/our-project/locations/us-east5/publishers/google/models/gemini-2.5-flash:streamGenerateContent',
    )
    expect(call.query).toBe('alt=sse')
    expect(call.headers).toMatchObject({ authorization: 'Bearer any-token' })
    expect(call.headers).not.toHaveProperty('x-goog-api-key')
  })

  test('names the model in the path and the version in the body for Claude', async () => {
    const whole = await sent(MESSAGES, messagesBody('haiku-vertex', 'Hello'))
    const stream = await sent(CHAT, chatBody('haiku-vertex', 'Hello', { stream: true }))

    const models = '/v1/projects/our-project/locations/us-east5/publishers/anthropic/models/claude-haiku-4-5@20251001'
    expect(whole.path).toBe(`${models}:rawPredict`)
    expect(Buffer.from(whole.bytes).toString()).toBe(
      '{"anthropic_version":"vertex-2023-10-16","max_tokens":200,"messages":[{"role":"user","content":"Hello"}]}',
    )
    expect(stream.path).toBe(`${models}:streamRawPredict`)
    expect(stream.body).toMatchObject({ anthropic_version: 'vertex-2023-10-16', stream: true })
    expect(stream.body).not.toHaveProperty('model')
    for (const { headers } of [whole, stream]) expect(headers).not.toHaveProperty('anthropic-version')
  })

  test('contains what the cloud accepts of a coding client, and the rest is reported', async () => {
    const request = codingClientRequest('opus-vertex', 'call Bash')
    const system = [{ type: 'text', text: 'Help.', cache_control: { type: 'ephemeral', scope: 'global' } }]
    const answer = await started.post(
      `${MESSAGES}?beta=true`,
      { ...request, system, service_tier: 'auto' },
      CODING_CLIENT_HEADERS,
    )
    const text = await answer.text()

    expect(answer.status, text).toBe(200)
    expect(text).toContain('"name":"Bash"')
    expect(text).not.toContain('vertex_event')
    expect(answer.headers.get('x-signalbox-dropped')?.split(', ').toSorted()).toEqual([
      'anthropic-beta',
      'cache_control.scope',
      'service_tier',
    ])
    const [call] = sandbox.requests
    expect(call?.headers['anthropic-beta']).toBe(
      'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,dangerous-tool-use-2026-09-03',
    )
    expect(call?.body).toMatchObject({ context_management: request['context_management'], system: [{ text: 'Help.' }] })
  })

  test('contains the supported betas of a coding client for a token count', async () => {
    const call = await sent(
      '/v1/messages/count_tokens',
      messagesBody('opus-vertex', 'Hello', { max_tokens: undefined }),
      CODING_CLIENT_HEADERS,
    )

    expect(call.path).toBe(
      '/v1/projects/our-project/locations/us-east5/publishers/anthropic/models/count-tokens:rawPredict',
    )
    expect(call.body).toMatchObject({ model: 'claude-opus-4-6', anthropic_version: 'vertex-2023-10-16' })
    expect(call.headers['anthropic-beta']).toBe(
      'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27',
    )
  })

  test('contains images as bytes, fetched by the gateway', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const server = createServer((_request, response) =>
      response.setHeader('content-type', 'image/png').end(Buffer.from(png, 'base64')),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.png`
    const inChat = [{ type: 'image_url', image_url: { url } }]
    const inMessages = [{ type: 'image', source: { type: 'url', url } }]
    for (const [path, model, content] of [
      [CHAT, 'flash-vertex', inChat],
      [CHAT, 'haiku-vertex', inChat],
      [MESSAGES, 'haiku-vertex', inMessages],
    ] as const) {
      const { bytes } = await sent(path, { model, max_tokens: 50, messages: [{ role: 'user', content }] })
      expect(Buffer.from(bytes).toString()).toContain(png)
    }
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })

  test('never names a file of the project’s storage', async () => {
    const content = [{ type: 'image_url', image_url: { url: 'gs://private-bucket/plan.png' } }]
    const answer = await started.post(CHAT, { model: 'flash-vertex', messages: [{ role: 'user', content }] })

    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: { param: 'messages[0].content[0].image_url.url' } })
    const source = { type: 'url', url: 'gs://private-bucket/plan.png' }
    const picture = { type: 'image', uri: source.url, mime_type: 'image/png' }
    for (const [path, body] of [
      [
        `${MESSAGES}/count_tokens`,
        { model: 'flash-vertex', messages: [{ role: 'user', content: [{ type: 'image', source }] }] },
      ],
      ['/v1/images/generations', { model: 'pictures', input: [{ type: 'text', text: 'Draw it' }, picture] }],
    ] as const)
      expect((await started.post(path, body)).status, path).toBe(400)
    expect(sandbox.requests).toHaveLength(0)
  })
})

describe('embeddings', () => {
  test('have the vectors and the price of the maker’s own API', async () => {
    const body = (model: string) => ({ model, input: ['red', 'green apples', 'blue'], dimensions: 256 })
    const direct = await started.post('/v1/embeddings', body('vectors-direct'))
    const [directJson, directPaid] = [await direct.json(), await paidFor(direct)]
    const cloud = await started.post('/v1/embeddings', body('vectors-vertex'))
    const [cloudJson, cloudPaid] = [await cloud.json(), await paidFor(cloud)]

    expect(cloudJson).toEqual({ ...directJson, model: 'vectors-vertex' })
    expect(cloudPaid).toBe(directPaid)
    expect(cloudPaid).toBeLessThan(0n)
    const calls = sandbox.requests.filter(({ vendor }) => vendor === 'vertex')
    expect(calls.map(({ path }) => path.split('/').at(-1))).toEqual(Array(3).fill('gemini-embedding-001:predict'))
  })

  test.each([
    ['vectors-2-vertex', 'gemini-embedding-2-preview:embedContent', 6],
    ['texts-vertex', 'text-embedding-005:predict', 2],
  ])('use for %s the method %s', async (model, method, calls) => {
    const input = ['a', 'b', 'c', 'd', 'e', 'f']
    const answer = await started.post('/v1/embeddings', { model, input })
    const { data, usage } = (await answer.json()) as { data: { embedding: number[] }[]; usage: object }

    expect(data).toHaveLength(6)
    expect(data[5]?.embedding.length).toBeGreaterThan(700)
    expect(usage).toEqual({ prompt_tokens: 6, total_tokens: 6 })
    expect(sandbox.requests.map(({ path }) => path.split('/').at(-1))).toEqual(Array(calls).fill(method))
    expect(await paidFor(answer)).toBe(-18_000n)
  })
})

test('draws images with generateContent, and charges their tokens', async () => {
  const answer = await started.post('/v1/images/generations', { model: 'pictures', input: 'a crane' })
  const { steps } = (await answer.json()) as { steps: { content: { type: string }[] }[] }

  expect(steps[0]?.content.some(({ type }) => type === 'image')).toBe(true)
  expect(sandbox.requests[0]?.path).toMatch(/publishers\/google\/models\/gemini-2\.5-flash-image:generateContent$/)
  expect(await paidFor(answer)).toBeLessThan(-30_000_000n)
})

test('reports a stream that the vendor cuts as cut, and ends its hold', async () => {
  for (const model of ['flash-vertex', 'haiku-vertex']) {
    const answer = await started.post(
      CHAT,
      chatBody(model, 'one two three [[fault:reset-mid-stream=5]]', { stream: true }),
    )
    const events = await readEvents(answer)

    expect(events.at(-1)).toContain('error')
    await started.ended(answer)
  }
  expect(await started.account()).toMatchObject({ held: 0n })
})
