import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import {
  type ResponsesVendor,
  responsesVendor,
  sameQuestion,
  VENDOR_USAGE,
  vendorEvents,
  vendorResponse,
} from './responses-vendor.ts'

/** A model that its vendor offers by Responses only, as the catalog knows it. */
const MODEL = 'gpt-5.4-pro'

const price = (meter: PriceRow['meter'], amount: string): PriceRow => ({ model: MODEL, meter, amount, per: 1_000_000 })
const PRICES = {
  currency: 'USD',
  prices: [price('input_token', '30.01'), price('cached_input_token', '3.03'), price('output_token', '180.07')],
} as const

const REQUESTS = sameQuestion(MODEL)
const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const TRANSLATED = [CHAT, MESSAGES]

const REASONING = { type: 'reasoning', id: 'rs_9', summary: [], encrypted_content: 'gAAAA-state' }
const CALLING = vendorResponse({
  output: [
    REASONING,
    {
      type: 'function_call',
      id: 'fc_9',
      call_id: 'call_9',
      name: 'look',
      arguments: '{"at":"x"}',
      status: 'completed',
    },
  ],
})

let vendor: ResponsesVendor
let started: StartedGateway

async function start({ billing, ...options }: Partial<GatewayOptions> = {}): Promise<void> {
  started = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
    ...(billing === 'off' ? { billing } : { prices: PRICES }),
    models: [],
    disconnect: 'cancel',
    drainMs: 50,
    ...options,
  })
}

beforeEach(async () => {
  vendor = await responsesVendor()
  await start()
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

type Json = Record<string, unknown>

const sent = (): Json[] => vendor.calls.map(({ body }) => JSON.parse(body) as Json)

async function charged(path: string, rest: object = {}): Promise<bigint> {
  const before = await started.account()
  const answer = await started.post(path, { ...REQUESTS[path], ...rest })
  await answer.text()
  await started.ended(answer)
  const after = await started.account()
  expect(after.held).toBe(0n)
  return before.balance - after.balance
}

test.each([false, true])(
  'the same answer costs the same to the nano-dollar by all three paths (streamed: %s)',
  async (stream) => {
    const { input_tokens: input, output_tokens: output } = VENDOR_USAGE
    const cost = BigInt(input - 5) * 30_010n + 5n * 3_030n + BigInt(output) * 180_070n
    for (const path of Object.keys(REQUESTS)) expect(await charged(path, { stream }), path).toBe(cost)
    expect(vendor.calls.map(({ path }) => path)).toEqual(Array(3).fill('POST /v1/responses'))
    expect(
      sent()
        .slice(0, 2)
        .map(({ store }) => store),
    ).toEqual([false, false])
  },
)

test('callers read the usage with its parts, and the public id of the model', async () => {
  const chat = (await (await started.post(CHAT, REQUESTS[CHAT])).json()) as Json
  const message = (await (await started.post(MESSAGES, REQUESTS[MESSAGES])).json()) as Json

  expect(chat).toMatchObject({
    object: 'chat.completion',
    model: MODEL,
    choices: [{ message: { role: 'assistant', content: 'hello there', refusal: null }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: 20,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens: 7,
      completion_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 27,
    },
  })
  expect(message).toMatchObject({
    type: 'message',
    model: MODEL,
    content: [{ type: 'text', text: 'hello there' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 15, cache_read_input_tokens: 5, output_tokens: 7 },
  })
})

describe('encrypted reasoning', () => {
  beforeEach(() => {
    vendor.answer = { ...vendor.answer, whole: JSON.stringify(CALLING) }
  })

  /** Reasoning as the vendor gets it. Its caller could have any id sent with it. */
  const { id: _id, ...CARRIED } = REASONING

  /** Input of the turn after a call: the reasoning before its call, and nothing else of the first answer. */
  const SECOND_INPUT = [
    { type: 'message', role: 'user', content: 'look at x' },
    CARRIED,
    { type: 'function_call', call_id: 'call_9', name: 'look', arguments: '{"at":"x"}' },
    { type: 'function_call_output', call_id: 'call_9', output: 'seen' },
  ]

  async function chatTurns(): Promise<Response> {
    const request = REQUESTS[CHAT] as { messages: object[] }
    const first = (await (await started.post(CHAT, request)).json()) as { choices: { message: object }[] }
    const result = { role: 'tool', tool_call_id: 'call_9', content: 'seen' }
    const messages = [...request.messages, first.choices[0]!.message, result]
    return started.post(CHAT, { ...request, messages })
  }

  test('comes back without its id over a tool turn of a chat', async () => {
    const second = await chatTurns()

    expect(second.headers.get('x-signalbox-dropped')).toBeNull()
    expect(sent()[1]!['input']).toEqual(SECOND_INPUT)
  })

  test('comes back without its id over a tool turn of Messages', async () => {
    const request = REQUESTS[MESSAGES] as { messages: object[] }
    const first = (await (await started.post(MESSAGES, request)).json()) as { content: object[]; stop_reason: string }
    expect(first.stop_reason).toBe('tool_use')
    const result = { type: 'tool_result', tool_use_id: 'call_9', content: 'seen' }
    const turns = [
      ...request.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [result] },
    ]
    await (await started.post(MESSAGES, { ...request, messages: turns })).text()

    expect(sent()[1]!['input']).toEqual(SECOND_INPUT)
  })

  test('goes to the key that made it, and to no other key or model', async () => {
    await started.close()
    await start({ vendors: [openai({ apiKey: ['key-one', 'key-two', 'key-three'], baseURL: vendor.origin })] })
    for (let round = 0; round < 6; round++) await (await chatTurns()).text()
    const keys = vendor.calls.map(({ key }) => key)

    for (let round = 0; round < 6; round++) expect(keys[2 * round + 1]).toBe(keys[2 * round])
    expect(new Set(keys).size).toBeGreaterThan(1)
    for (const body of sent().filter((_body, index) => index % 2 === 1)) expect(body['input']).toEqual(SECOND_INPUT)
  })

  test('drops and reports encrypted reasoning of a removed key, and continues the turn', async () => {
    const request = REQUESTS[CHAT] as { messages: object[] }
    const first = (await (await started.post(CHAT, request)).json()) as { choices: { message: object }[] }
    await started.close()
    await start({ vendors: [openai({ apiKey: 'another-key', baseURL: vendor.origin })] })
    const result = { role: 'tool', tool_call_id: 'call_9', content: 'seen' }
    const messages = [...request.messages, first.choices[0]!.message, result]
    const second = await started.post(CHAT, { ...request, messages })

    expect(second.status).toBe(200)
    expect(second.headers.get('x-signalbox-dropped')).toBe('messages.extra_content')
    expect(sent()[1]!['input']).toEqual(SECOND_INPUT.filter((item) => item !== CARRIED))
  })
})

describe('a stream', () => {
  const events = vendorEvents()

  test.each(TRANSLATED)(
    'ends once, with an error, and is charged if the vendor cuts it after any event (%s)',
    async (path) => {
      // Before the seventh event nothing was said, so that the caller gets an error instead of a stream.
      for (let count = 7; count < events.length; count++) {
        vendor.answer = { ...vendor.answer, events: events.slice(0, count), end: count % 2 === 0 ? 'reset' : 'clean' }
        const before = await started.account()
        const answer = await started.post(path, { ...REQUESTS[path], stream: true })
        const text = await answer.text()
        await started.ended(answer)
        const after = await started.account()

        expect(answer.status, String(count)).toBe(200)
        expect(text.match(/"error":\{/g), text).toHaveLength(1)
        expect(text).not.toMatch(/\[DONE\]|message_stop|"finish_reason":"|"stop_reason":"/)
        expect(after.held).toBe(0n)
        expect(after.balance).toBeLessThan(before.balance)
      }
    },
  )

  test.each(Object.keys(REQUESTS))(
    'in which the vendor fails ends with one error, and what it reports is charged (%s)',
    async (path) => {
      const error = { type: 'server_error', code: 'server_error', message: 'Sorry.', param: null }
      const failed = { ...vendorResponse({ status: 'failed', output: [] }), error }
      const ending = [
        `event: error\ndata: ${JSON.stringify({ type: 'error', sequence_number: 8, error })}\n\n`,
        `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', sequence_number: 9, response: failed })}\n\n`,
      ]
      vendor.answer = { ...vendor.answer, events: [...events.slice(0, 8), ...ending] }
      const answer = await started.post(path, { ...REQUESTS[path], stream: true })
      const text = await answer.text()
      const ended = await started.ended(answer)

      expect(text).toContain('"error":{')
      expect(text).not.toContain('[DONE]')
      expect(ended).toMatchObject({ ending: 'failed', usage: { inputTokens: 20, outputTokens: 7 } })
      expect((await started.account()).held).toBe(0n)
    },
  )

  test.each(TRANSLATED)('returns an answer with a status if it fails before any content (%s)', async (path) => {
    const error = { code: 'rate_limit_exceeded', message: 'Slow down.' }
    const failed = { ...vendorResponse({ status: 'failed', output: [], usage: null }), error }
    const data = JSON.stringify({ type: 'response.failed', sequence_number: 2, response: failed })
    vendor.answer = { ...vendor.answer, events: [...events.slice(0, 2), `event: response.failed\ndata: ${data}\n\n`] }
    const answer = await started.post(path, { ...REQUESTS[path], stream: true })

    expect(answer.status).toBe(429)
    await answer.text()
  })

  test.each(TRANSLATED)('stops the vendor when the caller disconnects (%s)', async (path) => {
    vendor.answer = { ...vendor.answer, events: events.slice(0, 8), end: 'open' }
    const leaving = new AbortController()
    const answer = await started.post(path, { ...REQUESTS[path], stream: true }, {}, leaving.signal)
    await answer.body!.getReader().read()
    const gone = vendor.nextAbort()
    const ended = started.nextEnded()
    leaving.abort()
    await gone

    expect(await ended).toMatchObject({ ending: 'abandoned' })
    expect((await started.account()).held).toBe(0n)
  })
})

test.each(TRANSLATED)('a whole answer that failed is an error by its code (%s)', async (path) => {
  const error = { code: 'server_is_overloaded', message: 'Too much to do.' }
  vendor.answer = {
    ...vendor.answer,
    whole: JSON.stringify({ ...vendorResponse({ status: 'failed', output: [], usage: null }), error }),
  }
  const answer = await started.post(path, REQUESTS[path])

  expect(answer.status).toBeGreaterThanOrEqual(503)
  await answer.text()
  expect((await started.account()).held).toBe(0n)
})

test('what cannot be carried is 400 under the name of the caller, and nothing is sent', async () => {
  const chat = await started.post(CHAT, { ...REQUESTS[CHAT], stop: ['x'] })
  expect([chat.status, await chat.json()]).toMatchObject([400, { error: { param: 'stop' } }])
  const few = await started.post(MESSAGES, { ...REQUESTS[MESSAGES], max_tokens: 1 })
  expect([few.status, await few.text()]).toEqual([400, expect.stringContaining('max_tokens: must be at least 16')])
  expect(vendor.calls).toEqual([])
  expect((await started.account()).held).toBe(0n)
})

test('a search needs a price, is charged by the report, and its sources come with the answer', async () => {
  const searching = { ...REQUESTS[CHAT], tools: undefined, web_search_options: {} }
  const refused = await started.post(CHAT, searching)
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: 'web_search_options' } }])
  await started.close()
  const search: PriceRow = { model: MODEL, meter: 'web_search', amount: '10.00', per: 1_000 }
  await start({ prices: { currency: 'USD', prices: [...PRICES.prices, search] } })
  const annotations = [{ type: 'url_citation', start_index: 0, end_index: 5, url: 'https://example.com/', title: 'T' }]
  const content = [{ type: 'output_text', text: 'hello there', annotations, logprobs: [] }]
  const whole = vendorResponse({
    tools: [{ type: 'web_search' }],
    tool_usage: { web_search: { num_requests: 3 } },
    output: [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }],
  })
  vendor.answer = { ...vendor.answer, whole: JSON.stringify(whole) }
  const before = await started.account()
  const answer = await started.post(CHAT, searching)
  const { choices } = (await answer.json()) as { choices: { message: object }[] }
  await started.ended(answer)
  const bySearch = before.balance - (await started.account()).balance

  expect(choices[0]!.message).toMatchObject({
    annotations: [
      { type: 'url_citation', url_citation: { url: 'https://example.com/', start_index: 0, end_index: 5 } },
    ],
  })
  expect(sent().at(-1)).toMatchObject({ tools: [{ type: 'web_search' }] })
  expect(bySearch).toBe(15n * 30_010n + 5n * 3_030n + 7n * 180_070n + 3n * 10_000_000n)
  expect(await charged('/v1/responses', { tools: [{ type: 'web_search' }] })).toBe(bySearch)
})

describe('models with only Responses', () => {
  test('an operator says in a row, of any vendor that has Responses', async () => {
    await started.close()
    const connection = { id: 'own', baseURL: `${vendor.origin}/v1`, apiKey: 'key', responses: true }
    const row = { kind: 'chat', vendor: 'own' } as const
    await start({
      billing: 'off',
      vendors: [openaiCompatible({ ...connection, models: [] })],
      models: [
        { ...row, id: 'chats', upstream: 'a' },
        { ...row, id: 'responds', upstream: 'b', protocol: 'responses' },
        { ...row, id: 'all-*', upstream: '*', protocol: 'responses' },
      ],
    })
    for (const model of ['chats', 'responds', 'all-c'])
      await (await started.post(CHAT, { ...REQUESTS[CHAT], model })).text()

    expect(vendor.calls.map(({ path }) => path)).toEqual([
      'POST /v1/chat/completions',
      'POST /v1/responses',
      'POST /v1/responses',
    ])
  })

  test.each([
    ['v1', '/openai/v1/responses'],
    ['2025-04-01-preview', '/openai/responses?api-version=2025-04-01-preview'],
  ])('Azure has them at the paths of version %s', async (apiVersion, path) => {
    await started.close()
    const row = { kind: 'chat', vendor: 'azure-openai' } as const
    await start({
      billing: 'off',
      vendors: [azureOpenai({ endpoint: vendor.origin, apiKey: 'azure-key', apiVersion })],
      models: [
        { ...row, id: 'by-name', upstream: 'gpt-5.4-pro' },
        { ...row, id: 'by-row', upstream: 'my-deployment', protocol: 'responses' },
      ],
    })
    for (const model of ['by-name', 'by-row'])
      for (const [endpoint, body] of Object.entries(REQUESTS))
        expect((await started.post(endpoint, { ...body, model })).status).toBe(200)

    expect(new Set(vendor.calls.map((call) => call.path))).toEqual(new Set([`POST ${path}`]))
    expect(vendor.calls.map(({ body }) => (JSON.parse(body) as { model: string }).model)).toEqual([
      ...Array.from({ length: 3 }, () => 'gpt-5.4-pro'),
      ...Array.from({ length: 3 }, () => 'my-deployment'),
    ])
    expect(vendor.calls.every(({ key }) => key === '')).toBe(true)
  })

  test('the catalog knows by the id of the vendor, for rows too', async () => {
    await started.close()
    const row = { kind: 'chat', vendor: 'openai' } as const
    await start({
      billing: 'off',
      models: [
        { ...row, id: 'own-codex', upstream: 'gpt-5-codex' },
        { ...row, id: 'mine-*', upstream: 'gpt-*' },
      ],
    })
    const models = [
      'own-codex',
      'mine-5.4',
      'mine-5.5-pro',
      'gpt-5.3-codex',
      'openai/o3-pro',
      'o3-deep-research',
      'gpt-5.4',
    ]
    for (const model of models) await (await started.post(CHAT, { ...REQUESTS[CHAT], model })).text()

    const byChat = vendor.calls
      .filter(({ path }) => path.endsWith('/chat/completions'))
      .map(({ body }) => JSON.parse(body).model)
    expect(byChat).toEqual(['gpt-5.4', 'gpt-5.4'])
    expect(vendor.calls).toHaveLength(models.length)
  })
})
