import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/price-file.ts'
import { awsSignature } from '../../../src/credentials/index.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic, anthropicBedrock } from '../../../src/vendors/anthropic/anthropic.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const sandbox = sandboxVendors()
const CLAUDE = 'us.anthropic.claude-haiku-4-5-20251001-v1:0'
const keys = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 't/o=',
}
let started: StartedGateway

/** Equal prices at both vendors, so that equal usage costs the same. */
const prices = ['converse', 'direct', 'nova', CLAUDE, `anthropic-bedrock/${CLAUDE}`].flatMap((model): PriceRow[] =>
  (
    [
      ['input_token', '1'],
      ['output_token', '5'],
      ['cached_input_token', '0.1'],
      ['cache_write_token', '1.25'],
    ] as const
  ).map(([meter, amount]) => ({ model, meter, amount, per: 1_000_000 })),
)

beforeAll(async () => {
  const { origin } = await sandbox.listen()
  const apiKey = awsSignature({ region: 'us-east-1', credentials: () => keys })
  started = await startGateway({
    prices: { currency: 'USD', prices },
    vendors: [
      amazonBedrock({
        endpoint: `${origin}/bedrock`,
        apiKey,
        models: [
          { id: 'converse', kind: 'chat', upstream: CLAUDE, limits: { maxOutputTokens: 64_000 } },
          { id: 'nova', kind: 'chat', upstream: 'us.amazon.nova-pro-v1:0' },
        ],
      }),
      anthropicBedrock({ endpoint: `${origin}/bedrock`, apiKey }),
      anthropic({ baseURL: origin, apiKey: 'sk-ant-0123456789' }),
    ],
    models: [
      {
        id: 'direct',
        kind: 'chat',
        vendor: 'anthropic',
        upstream: 'claude-haiku-4-5',
        limits: { maxOutputTokens: 64_000 },
      },
    ],
  })
})
afterAll(async () => {
  await started.close()
  await sandbox.close()
})

const text = 'Hello'
const callers: readonly (readonly [string, string, object])[] = [
  ['chat', '/v1/chat/completions', { messages: [{ role: 'user', content: text }] }],
  ['Messages', '/v1/messages', { max_tokens: 100, messages: [{ role: 'user', content: text }] }],
  ['Responses', '/v1/responses', { input: text }],
]

describe.each(callers)('a caller of %s', (_, path, body) => {
  test('gets a whole answer and a stream of the same text for the same price, signed and in frames', async () => {
    const whole = await started.post(path, { model: 'converse', ...body })
    const stream = await started.post(path, { model: 'converse', ...body, stream: true })
    const events = (await readEvents(stream)).join('\n')

    expect(await whole.text()).toContain('You said: Hello')
    expect(events).toContain('Hello')
    expect(sandbox.requests.slice(-2).map(({ path: sent }) => sent)).toEqual([
      `/bedrock/model/${encodeURIComponent(CLAUDE)}/converse`,
      `/bedrock/model/${encodeURIComponent(CLAUDE)}/converse-stream`,
    ])
    const [one, other] = [await started.ended(whole), await started.ended(stream)]
    expect(one.costNanoDollars).toBeGreaterThan(0n)
    expect(other.costNanoDollars).toBe(one.costNanoDollars)
  })

  test('gets an error and no end mark where an exception comes inside the stream', async () => {
    const marked = JSON.parse(JSON.stringify(body).replace('Hello', 'Hello to all [[fault:error-event=3]]')) as object
    const stream = await started.post(path, { model: 'converse', ...marked, stream: true })
    const events = (await readEvents(stream)).join('\n')

    expect(stream.status).toBe(200)
    expect(events).toMatch(/error/)
    expect(events).not.toMatch(/\[DONE\]|message_stop|response\.completed/)
    await started.ended(stream)
    expect(await started.account()).toMatchObject({ held: 0n })
  })
})

test.each([1, 3, 7, 100])('a stream in reads of %i bytes is the same answer', async (size) => {
  const stream = await started.post('/v1/chat/completions', {
    ...chatBody('nova', `Grüße, 世界 [[fault:cut=${size}]]`),
    ...{ stream: true, stream_options: { include_usage: true } },
  })
  const chunks = (await readEvents(stream)).slice(0, -1).map((data) => JSON.parse(data) as Chunk)

  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('You said: Grüße, 世界')
  expect(chunks.at(-1)?.usage).toMatchObject({ completion_tokens: 4 })
})

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[]
  readonly usage?: object
}

test.each([
  ['plain', 'Hello'],
  ['with tokens from and into the cache', 'cached and cache-write words of a prompt'],
])('a prompt costs what it costs at the direct vendor: %s', async (_, content) => {
  const costs: bigint[] = []
  for (const stream of [false, true])
    for (const model of ['converse', 'direct']) {
      const response = await started.post('/v1/chat/completions', { ...chatBody(model, content), stream })
      await response.text()
      costs.push((await started.ended(response)).costNanoDollars)
    }

  expect(costs[0]).toBeGreaterThan(0n)
  expect(new Set(costs).size).toBe(1)
})

test('charges nothing for an exception before any content, so that the caller can retry', async () => {
  const before = await started.account()
  const stream = await started.post('/v1/chat/completions', {
    ...chatBody('nova', 'Hello [[fault:error-event=0]]'),
    stream: true,
  })

  expect(stream.status).toBe(503)
  await started.ended(stream)
  expect(await started.account()).toEqual(before)
})

test.each(['reset-mid-stream=3', 'end-early=3'])(
  'a stream that is cut (%s) ends with an error, and is charged once',
  async (fault) => {
    const before = await started.account()
    const stream = await started.post('/v1/chat/completions', {
      ...chatBody('nova', `Hello to all of you [[fault:${fault}]]`),
      stream: true,
    })
    const events = (await readEvents(stream).catch(() => ['broken'])).join('\n')

    expect(events).not.toContain('[DONE]')
    const { costNanoDollars } = await started.ended(stream)
    expect(await started.account()).toEqual({ balance: before.balance - costNanoDollars, held: 0n })
  },
)

test('passes tools, an image, a file and reasoning in both directions', async () => {
  const content = [
    { type: 'text', text: 'call get_weather' },
    {
      type: 'image_url',
      image_url: {
        url: 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      },
    },
    { type: 'file', file: { filename: 'notes.txt', file_data: 'data:text/plain;base64,aGVsbG8=' } },
  ]
  const tools = [
    {
      type: 'function',
      function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    },
  ]
  const request = {
    model: 'converse',
    tools,
    reasoning_effort: 'low',
    max_tokens: 4000,
    messages: [{ role: 'user', content }],
  }
  const first = (await (await started.post('/v1/chat/completions', request)).json()) as Completion
  const { message } = first.choices[0]!
  const [call] = message.tool_calls

  expect(message.thinking_blocks).toHaveLength(1)
  const result = { role: 'tool', tool_call_id: call?.id, content: 'rain' }
  const second = await started.post('/v1/chat/completions', {
    ...request,
    messages: [...request.messages, message, result],
  })
  expect(await second.json()).toMatchObject({ choices: [{ message: { content: 'The tools answered: rain' } }] })
  expect(JSON.stringify(sandbox.requests.at(-1)?.body)).toContain(
    `"signature":"${message.thinking_blocks[0]?.signature}"`,
  )
})

interface Completion {
  readonly choices: readonly {
    readonly message: {
      readonly tool_calls: readonly { readonly id: string }[]
      readonly thinking_blocks: readonly { readonly signature: string }[]
    }
  }[]
}

test('cache controls of a Messages caller become cache points', async () => {
  const cache_control = { type: 'ephemeral' }
  const response = await started.post('/v1/messages', {
    ...{ model: 'converse', max_tokens: 50, system: [{ type: 'text', text: 'Long.', cache_control }] },
    tools: [{ name: 'look', input_schema: { type: 'object' }, cache_control }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello', cache_control }] }],
  })

  const point = { cachePoint: { type: 'default' } }
  expect(response.status).toBe(200)
  expect(response.headers.get('x-signalbox-dropped')).toBeNull()
  expect(sandbox.requests.at(-1)?.body).toMatchObject({
    system: [{ text: 'Long.' }, point],
    messages: [{ content: [{ text: 'Hello' }, point] }],
    toolConfig: { tools: [{ toolSpec: { name: 'look' } }, point] },
  })
})

test('a request that the service refuses is the caller’s, and costs nothing', async () => {
  const before = await started.account()
  const response = await started.post('/v1/chat/completions', chatBody('nova', 'Hello [[fault:status=400]]'))

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    error: { code: 'ValidationException', message: 'The request is invalid.' },
  })
  expect(await started.account()).toEqual(before)
})

test('Messages of Claude are signed too, whole and as a stream', async () => {
  const body = { model: CLAUDE, max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }
  const whole = await started.post('/v1/messages', { ...body, model: `anthropic-bedrock/${CLAUDE}` })
  const stream = await started.post('/v1/messages', { ...body, model: `anthropic-bedrock/${CLAUDE}`, stream: true })

  expect(whole.status).toBe(200)
  expect((await readEvents(stream)).join('\n')).toContain('message_stop')
  expect(sandbox.requests.at(-1)?.path).toBe('/bedrock/anthropic/v1/messages')
  expect(sandbox.requests.at(-1)?.headers['authorization']).toMatch(/^AWS4-HMAC-SHA256 /)
})
