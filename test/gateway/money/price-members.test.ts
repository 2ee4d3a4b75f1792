import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined
let server: Server | undefined

afterEach(async () => {
  await started?.close()
  server?.closeAllConnections()
  server?.close()
  started = server = undefined
})

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-5.4',
  output: [{ type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [] }],
  usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20 },
}
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-5-5',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 10 },
}
const IMAGE = {
  created: 1,
  data: [{ b64_json: 'aGk=' }],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
}
const ANSWERS: Readonly<Record<string, object>> = {
  responses: RESPONSE,
  messages: MESSAGE,
  edits: IMAGE,
  generations: IMAGE,
}

/** Starts a vendor and counts what reaches it. */
async function startWith(prices: readonly PriceRow[], options: Partial<GatewayOptions> = {}) {
  const received: string[] = []
  const http = createServer(async (request, response) => {
    for await (const chunk of request) void chunk
    received.push(request.url ?? '')
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(ANSWERS[(request.url ?? '').split('/').at(-1) ?? '']))
  })
  server = http
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const baseURL = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  started = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key', baseURL }), anthropic({ apiKey: 'vendor-key', baseURL })],
    models: [],
    prices: { currency: 'USD', prices },
    ...options,
  })
  return { ...started, received }
}

const tokens = (model: string): PriceRow[] =>
  (['input_token', 'output_token'] as const).map((meter) => ({ model, meter, amount: '1', per: 1_000_000 }))
const request = (model: string, amount: string, when?: PriceRow['when']): PriceRow => ({
  model,
  meter: 'request',
  amount,
  per: 1,
  ...(when === undefined ? {} : { when }),
})

const CONTAINER = [
  ...tokens('gpt-5.4'),
  request('gpt-5.4', '0'),
  request('gpt-5.4', '0.03', { code_interpreter: 'true' }),
]
const codeAt = (container: object): object => ({
  model: 'gpt-5.4',
  input: 'hi',
  max_output_tokens: 100,
  tools: [{ type: 'code_interpreter', container: { type: 'auto', ...container } }],
})

describe('memory of a container', () => {
  test('is rejected without a price, and the answer names the member', async () => {
    const { post, received, account } = await startWith(CONTAINER)
    const response = await post('/v1/responses', codeAt({ memory_limit: '64g' }))
    const { error } = (await response.json()) as { error: { message: string; param: string } }

    expect(response.status).toBe(400)
    expect(error.param).toBe('tools[0].container.memory_limit')
    expect(error.message).toContain('container_memory: "64g"')
    expect(received).toEqual([])
    expect((await account()).held).toBe(0n)
  })

  test.each([
    ['its own price', '64g', 1_920_000_020n],
    ['the ordinary price where it is the ordinary one', '1g', 30_000_020n],
  ])('costs %s', async (_title, memory, cost) => {
    const rows = [...CONTAINER, request('gpt-5.4', '1.92', { code_interpreter: 'true', container_memory: '64g' })]
    const { post, account } = await startWith(rows)
    const before = (await account()).balance
    expect((await post('/v1/responses', codeAt({ memory_limit: memory }))).status).toBe(200)

    const { balance, held } = await account()
    expect(held).toBe(0n)
    // Ten input and ten output tokens at $1 a million each.
    expect(before - balance).toBe(cost + 19_980n)
  })

  test('passes without a price where the operator says so', async () => {
    const { post } = await startWith(CONTAINER, { unpricedFeatures: ['container_memory'] })

    expect((await post('/v1/responses', codeAt({ memory_limit: '64g' }))).status).toBe(200)
  })

  test('is found in tools that items of the input bring', async () => {
    const { post } = await startWith(CONTAINER)
    const tools = [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '4g' } }]
    const input = [{ type: 'tool_search_output', call_id: 'c', status: 'completed', tools }]
    const response = await post('/v1/responses', { model: 'gpt-5.4', input, max_output_tokens: 100 })

    expect(await response.json()).toMatchObject({ error: { param: 'input[0].tools[0].container.memory_limit' } })
  })
})

describe('members of the image tool', () => {
  const IMAGE = 'gpt-image-2.6-sunburst'
  const drawing = (members: object): object => ({
    model: 'gpt-5.4',
    input: 'hi',
    max_output_tokens: 100,
    tools: [{ type: 'image_generation', model: IMAGE, ...members }],
  })

  test.each([
    ['complexity', 'high'],
    ['frame_count', 24],
    ['svg', { model: 'gpt-5.5-pro' }],
    ['output_format', 'gif'],
  ])('are rejected without a price: %s', async (name, value) => {
    const { post, received, account } = await startWith([...tokens('gpt-5.4'), ...tokens(IMAGE)])
    const response = await post('/v1/responses', drawing({ [name]: value }))

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: `tools[0].${name}` } })
    expect(received).toEqual([])
    expect((await account()).held).toBe(0n)
  })

  test('pass with an ordinary format', async () => {
    const { post } = await startWith([...tokens('gpt-5.4'), ...tokens(IMAGE)])

    expect((await post('/v1/responses', drawing({ output_format: 'webp' }))).status).toBe(200)
  })
})

describe('a message that another organization pays', () => {
  const message = (billTo: string): object => ({
    model: 'claude-sonnet-5-5',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'hi' }],
    billing_policy: { type: 'billing_policy', bill_to: billTo },
  })

  test('is rejected, and passes if the operator allows it', async () => {
    const { post, received } = await startWith(tokens('claude-sonnet-5-5'))
    expect((await post('/v1/messages', message('self'))).status).toBe(200)
    const rejected = await post('/v1/messages', message('user_profile'))
    expect(rejected.status).toBe(400)
    expect(JSON.stringify(await rejected.json())).toContain('billing_policy.bill_to')
    expect(received).toHaveLength(1)
    await started?.close()

    const allowed = await startWith(tokens('claude-sonnet-5-5'), { unpricedFeatures: ['billing_policy'] })
    expect((await allowed.post('/v1/messages', message('user_profile'))).status).toBe(200)
  })
})

describe('an image that takes more than its size and quality say', () => {
  const rows: PriceRow[] = [{ model: 'gpt-image-2.5', meter: 'image', amount: '0.04', per: 1 }]
  const image = (members: object): object => ({ model: 'gpt-image-2.5', prompt: 'a cat', ...members })

  test.each([
    [{ complexity: 'high' }, 'complexity'],
    [{ output_format: 'gif', frame_count: 16 }, 'output_format'],
    [{ svg: { model: 'gpt-6-sol' } }, 'svg'],
  ])('%j is rejected without a price', async (members, param) => {
    const { post, received } = await startWith(rows)
    const response = await post('/v1/images/generations', image(members))

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param } })
    expect(received).toEqual([])
  })

  test('is rejected without a price in an edit, as a form', async () => {
    const { url, received } = await startWith(rows)
    const form = new FormData()
    form.set('model', 'gpt-image-2.5')
    form.set('prompt', 'a cat')
    form.set('complexity', 'high')
    form.set(
      'image',
      new Blob(
        [
          Buffer.from(
            'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
            'base64',
          ),
        ],
        { type: 'image/png' },
      ),
      'cat.png',
    )
    const response = await fetch(`${url}/v1/images/edits`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })

    expect(response.status).toBe(400)
    expect(JSON.stringify(await response.json())).toContain('complexity')
    expect(received).toEqual([])
  })
})
