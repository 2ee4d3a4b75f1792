import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type ResponsesVendor, responsesVendor } from '../responses/responses-vendor.ts'

const MODEL = 'perplexity/sonar'
const UNLISTED = 'perplexity/sonar-of-next-week'

const USAGE = {
  cost: { currency: 'USD', total_cost: 0.00105, tool_calls_cost: 0.001 },
  input_tokens: 3000,
  input_tokens_details: { cache_creation_input_tokens: 1000, cache_read_input_tokens: 500, cached_tokens: 500 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 0 },
  tool_calls_details: { search_web: { cost_usd: 0.001, invocation: 2 } },
  total_tokens: 3040,
}

const SEARCH = {
  type: 'search_results',
  queries: ['trains'],
  results: [{ id: 1, url: 'https://a.example', title: 'A' }],
}
const MESSAGE = {
  content: [{ annotations: [], text: 'The 7:04 train.[1]', type: 'output_text' }],
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  type: 'message',
}
const CALL = {
  arguments: '{"queries":["trains"]}',
  call_id: 'call_1',
  id: 'fc_1',
  name: 'search_web',
  status: 'completed',
  type: 'function_call',
}

const response = (rest: object) => ({
  created_at: 1_795_132_800,
  id: 'resp_1',
  model: MODEL,
  object: 'response',
  tools: [{ type: 'web_search' }],
  ...rest,
})

/** Members are in alphabetical order, and a search begins as a function call. */
const event = (sequence_number: number, type: string, rest: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ ...rest, sequence_number, type })}\n\n`
const EVENTS = [
  event(0, 'response.created', { response: response({ output: [], status: 'in_progress', usage: null }) }),
  event(1, 'response.output_item.added', { item: CALL, output_index: 0 }),
  event(2, 'response.reasoning.search_queries', { call_id: 'call_1', queries: ['trains'], thought: 'Searching …' }),
  event(3, 'response.output_item.done', { item: SEARCH, output_index: 0 }),
  event(4, 'response.output_item.added', { item: { ...MESSAGE, content: null }, output_index: 1 }),
  event(5, 'response.output_text.delta', {
    content_index: 0,
    delta: 'The 7:04 train.[1]',
    item_id: 'msg_1',
    output_index: 1,
  }),
  event(6, 'response.output_item.done', { item: MESSAGE, output_index: 1 }),
  event(7, 'response.completed', {
    response: response({ output: [SEARCH, MESSAGE], status: 'completed', usage: USAGE }),
  }),
]

const pricesOf = (model: string): PriceRow[] => [
  { model, meter: 'input_token', amount: '1', per: 1_000_000 },
  { model, meter: 'cached_input_token', amount: '0.1', per: 1_000_000 },
  { model, meter: 'cache_write_token', amount: '1.25', per: 1_000_000 },
  { model, meter: 'output_token', amount: '10', per: 1_000_000 },
  { model, meter: 'web_search', amount: '5', per: 1000 },
]
// 1,500 fresh, 500 read and 1,000 written tokens, 40 of output, and two searches.
const COST = 1_500n * 1_000n + 500n * 100n + 1_000n * 1_250n + 40n * 10_000n + 2n * 5_000_000n

let vendor: ResponsesVendor
let started: StartedGateway

beforeEach(async () => {
  vendor = await responsesVendor()
  vendor.answer = {
    whole: JSON.stringify(response({ output: [SEARCH, MESSAGE], status: 'completed', usage: USAGE })),
    events: EVENTS,
    end: 'clean',
  }
  started = await startGateway({
    vendors: [
      openaiCompatible(presets.perplexity, {
        apiKey: 'k-0123456789',
        baseURL: `${vendor.origin}/v1`,
        passUnknownModels: true,
      }),
    ],
    models: [{ id: 'own-row', kind: 'chat', vendor: 'perplexity', upstream: 'sonar-of-tomorrow' }],
    prices: { currency: 'USD', prices: [MODEL, 'own-row', UNLISTED].flatMap(pricesOf) },
  })
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

const chat = (fields: object) =>
  started.post('/v1/chat/completions', {
    model: MODEL,
    messages: [{ role: 'user', content: 'Which train goes first?' }],
    web_search_options: {},
    ...fields,
  })

test.each([false, true])(
  'chats go to the Agent API, and its searches and cache writes are charged; stream: %s',
  async (stream) => {
    const before = await started.account()
    const text = await (await chat({ stream })).text()

    expect(vendor.calls).toMatchObject([{ path: 'POST /v1/responses' }])
    expect(JSON.parse(vendor.calls[0]!.body)).toMatchObject({
      model: MODEL,
      store: false,
      tools: [{ type: 'web_search' }],
    })
    expect(text).toContain('The 7:04 train.[1]')
    expect(text).toContain('"finish_reason":"stop"')
    expect(text).not.toContain('search_web')
    expect(before.balance - (await started.account()).balance).toBe(COST)
  },
)

test.each(['own-row', UNLISTED])('each search is charged also of a model that no list knows: %s', async (model) => {
  const before = await started.account()
  await (await chat({ model })).text()

  expect(before.balance - (await started.account()).balance).toBe(COST)
})

test.each([false, true])('Responses show no purchase price to those who are billed; stream: %s', async (stream) => {
  const before = await started.account()
  const body = { model: MODEL, input: 'Which train goes first?', tools: [{ type: 'web_search' }], stream }
  const text = await (await started.post('/v1/responses', body)).text()

  expect(text).toContain('"cache_creation_input_tokens":1000')
  expect(text).not.toContain('cost')
  expect(before.balance - (await started.account()).balance).toBe(COST)
})

test.each(['models', 'preset'])('%s is refused, because it lets other models answer', async (field) => {
  const answer = await started.post('/v1/responses', { model: MODEL, input: 'Hi', [field]: ['fast'] })

  expect(answer.status).toBe(400)
  expect(((await answer.json()) as { error: { param: string } }).error.param).toBe(field)
  expect(vendor.calls).toEqual([])
})

test.each(['/v1/chat/completions', '/v1/responses'])('reads the error next to a failed response; %s', async (path) => {
  vendor.answer.events = [
    EVENTS[0]!,
    event(1, 'response.failed', { error: { message: 'Your credits are used up', code: 'insufficient_quota' } }),
  ]
  const request = path.endsWith('responses') ? { input: 'Hi' } : { messages: [{ role: 'user', content: 'Hi' }] }

  await (await started.post(path, { model: MODEL, ...request, stream: true })).text()

  expect(started.events.find(({ type }) => type === 'vendor-account-problem')).toMatchObject({
    code: 'insufficient_quota',
    message: 'Your credits are used up',
  })
})
