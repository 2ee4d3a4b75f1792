import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

/** Members in which OpenRouter, xAI, Perplexity and DeepInfra report costs to the operator. */
const PURCHASE = {
  cost: 0.000125,
  cost_details: { upstream_inference_cost: 0.0001 },
  is_byok: false,
  cost_in_usd_ticks: 1_466_250,
  estimated_cost: 0.1,
}
const COUNTS = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const PICTURE_COUNTS = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }

const chat = (body: object) => ({ id: 'gen-1', created: 1_795_132_800, model: 'their-model', ...body })
const chunk = (body: object) => `data: ${JSON.stringify(chat({ object: 'chat.completion.chunk', ...body }))}\n\n`

const ANSWERS: Readonly<Record<string, { readonly whole: object; readonly events?: readonly string[] }>> = {
  '/v1/chat/completions': {
    whole: chat({
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'hello', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { ...COUNTS, ...PURCHASE },
    }),
    events: [
      chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'hello' }, finish_reason: null }] }),
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      chunk({ choices: [], usage: { ...COUNTS, ...PURCHASE } }),
      'data: [DONE]\n\n',
    ],
  },
  '/v1/embeddings': {
    whole: {
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }],
      model: 'served-embedding',
      usage: { prompt_tokens: 10, total_tokens: 10, ...PURCHASE },
    },
  },
  '/v1/images/generations': {
    whole: {
      created: 1,
      data: [{ b64_json: 'AAAA' }],
      usage: { ...PICTURE_COUNTS, ...PURCHASE },
      background: 'opaque',
    },
    events: [
      `event: image_generation.completed\ndata: ${JSON.stringify({
        type: 'image_generation.completed',
        b64_json: 'AAAA',
        usage: { ...PICTURE_COUNTS, ...PURCHASE },
      })}\n\n`,
    ],
  },
}

let vendor: Server
let started: StartedGateway

beforeEach(async () => {
  vendor = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    const answer = ANSWERS[request.url ?? '']!
    const isStream = (JSON.parse(body) as { stream?: boolean }).stream === true
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
    response.end(isStream ? answer.events!.join('') : JSON.stringify(answer.whole))
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
})

afterEach(async () => {
  await started.close()
  vendor.closeAllConnections()
  await new Promise((resolve) => vendor.close(resolve))
})

async function start(billing: 'on' | 'off'): Promise<void> {
  const baseURL = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`
  const serving = { ...presets.openrouter, serves: ['chat', 'embeddings', 'images'] } as const
  const price = (model: string, meter: 'input_token' | 'output_token' | 'output_image_token') =>
    ({ model, meter, amount: '1', per: 1_000 }) as const
  started = await startGateway({
    vendors: [openaiCompatible(serving, { apiKey: 'vendor-key-canary-7f3a', baseURL })],
    models: [
      { id: 'served', kind: 'chat', vendor: 'openrouter', upstream: 'their-model', limits: { maxOutputTokens: 2000 } },
      { id: 'served-embedding', kind: 'embedding', vendor: 'openrouter', limits: { dimensions: 2 } },
      {
        id: 'served-picture',
        kind: 'image',
        vendor: 'openrouter',
        protocol: 'generations',
        image: { outputTokens: { default: 100 } },
      },
    ],
    ...(billing === 'off'
      ? { billing }
      : {
          prices: {
            currency: 'USD',
            prices: [
              price('served', 'input_token'),
              price('served', 'output_token'),
              price('served-embedding', 'input_token'),
              price('served-picture', 'input_token'),
              price('served-picture', 'output_token'),
              price('served-picture', 'output_image_token'),
            ],
          },
        }),
  })
}

const USAGE = { stream: true, stream_options: { include_usage: true } }
const CALLS: readonly (readonly [string, string, object])[] = [
  ['a whole chat', '/v1/chat/completions', { model: 'served', messages: [{ role: 'user', content: 'hi' }] }],
  [
    'a streamed chat',
    '/v1/chat/completions',
    { model: 'served', messages: [{ role: 'user', content: 'hi' }], ...USAGE },
  ],
  ['a whole message', '/v1/messages', { model: 'served', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }],
  ['vectors', '/v1/embeddings', { model: 'served-embedding', input: 'hi' }],
  ['pictures', '/v1/images/generations', { model: 'served-picture', prompt: 'a boat' }],
  ['streamed pictures', '/v1/images/generations', { model: 'served-picture', prompt: 'a boat', stream: true }],
]

/** Everything of the kind in a text, but for what the gateway itself adds to streams. */
const told = (text: string): string[] => text.match(/"(?:cost_\w+|\w+_cost|is_byok)"|"cost":0\.000125/g) ?? []

describe.each(CALLS)('%s', (_name, path, body) => {
  test('tells a caller who is charged nothing of what the operator pays', async () => {
    await start('on')
    const answer = await started.post(path, body)
    const text = await answer.text()

    expect(answer.status).toBe(200)
    expect(told(text)).toEqual([])
    expect(text).toMatch(/"(?:total_tokens|output_tokens)":\d/)
  })
})

test('a stream tells what its caller pays in that place', async () => {
  await start('on')
  const answer = await started.post('/v1/chat/completions', CALLS[1]![2])
  const text = await answer.text()

  // 15 tokens at a tenth of a cent.
  expect(text).toContain('"cost":"0.015"')
  expect((await started.ended(answer)).costNanoDollars).toBe(15_000_000n)
})

test('keeps images byte for byte around removed parts', async () => {
  await start('on')
  const text = await (await started.post('/v1/images/generations', CALLS[4]![2])).text()

  expect(JSON.parse(text)).toEqual({ ...ANSWERS['/v1/images/generations']!.whole, usage: PICTURE_COUNTS })
})

test('without billing the callers are the operator, and read what the vendor says', async () => {
  await start('off')
  const whole = await (await started.post('/v1/chat/completions', CALLS[0]![2])).json()
  const streamed = await (await started.post('/v1/chat/completions', CALLS[1]![2])).text()
  const vectors = await (await started.post('/v1/embeddings', CALLS[3]![2])).json()

  expect(whole.usage).toEqual({ ...COUNTS, ...PURCHASE })
  expect(streamed).toContain('"cost":0.000125')
  expect(vectors.usage).toEqual({ prompt_tokens: 10, total_tokens: 10, ...PURCHASE })
})
