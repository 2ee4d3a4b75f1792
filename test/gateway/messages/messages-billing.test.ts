import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../../src/catalog/model.ts'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import { parseDollars } from '../../../src/core/money.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { type MessagesVendor, messagesVendor } from './messages-vendor.ts'

const MODEL = 'cl-sonnet-4-6'
const PRINCIPAL = { accountId: TEST_ACCOUNT, keyId: 'key_1', tier: 'paid' } as const
const TEXT = 'word '.repeat(2_000)
const SEARCH = { type: 'web_search_20250305', name: 'web_search' }

let vendor: MessagesVendor
let started: StartedGateway | undefined

beforeEach(async () => {
  vendor = await messagesVendor()
})

afterEach(async () => {
  await started?.close()
  started = undefined
  await vendor.close()
})

const perMillion = (meter: PriceRow['meter'], amount: string): PriceRow => ({
  model: MODEL,
  meter,
  amount,
  per: 1_000_000,
})
const TOKENS = [
  perMillion('input_token', '3.00'),
  perMillion('cached_input_token', '0.30'),
  perMillion('cache_write_token', '3.75'),
  perMillion('output_token', '15.00'),
]

async function start(more: readonly PriceRow[]): Promise<void> {
  started = await startGateway({
    vendors: [anthropic({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
    prices: { currency: 'USD', prices: [...TOKENS, ...more] },
  })
}

function request(rest: Record<string, unknown>): Record<string, unknown> {
  return { model: MODEL, max_tokens: 100, messages: [{ role: 'user', content: TEXT }], ...rest }
}

/** Returns the hold and the final cost of a request in nano-dollars, streamed or whole. */
async function billed(body: Record<string, unknown>, stream: boolean): Promise<{ held: bigint; charged: bigint }> {
  const { cost } = await started!.gateway.estimate(PRINCIPAL, { endpoint: 'messages', body })
  const before = await started!.account()
  const answer = await started!.post('/v1/messages', { ...body, stream })
  expect(await answer.text()).toContain('hello')
  await started!.ended(answer)
  const after = await started!.account()
  expect(after.held).toBe(0n)
  return { held: parseDollars(cost ?? ''), charged: before.balance - after.balance }
}

describe.each([false, true])('tokens that were written to a cache for an hour (streamed: %s)', (stream) => {
  const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
  const cached = request({ system: [{ type: 'text', text: 'Be brief.', ...hour }] })

  beforeEach(() => {
    vendor.usage = {
      input_tokens: 10,
      cache_creation_input_tokens: 3_000,
      cache_read_input_tokens: 200,
      cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 2_000 },
      output_tokens: 7,
    }
    // The last event repeats the totals, and does not say for how long they were written.
    vendor.lastUsage = {
      input_tokens: 10,
      cache_creation_input_tokens: 3_000,
      cache_read_input_tokens: 200,
      output_tokens: 7,
    }
  })

  const rest = 10n * 3_000n + 200n * 300n + 1_000n * 3_750n + 7n * 15_000n

  test('cost their own price, within the hold', async () => {
    await start([perMillion('cache_write_1h_token', '6.01')])

    const { held, charged } = await billed(cached, stream)

    expect(charged).toBe(rest + 2_000n * 6_010n)
    expect(held).toBeGreaterThanOrEqual(charged)
  })

  test('cost 1.6 times what five minutes cost where the list does not say, within the hold', async () => {
    await start([])

    const { held, charged } = await billed(cached, stream)

    expect(charged).toBe(rest + 2_000n * 6_000n)
    expect(held).toBeGreaterThanOrEqual(charged)
  })
})

describe('the hold of a message', () => {
  const control = { type: 'ephemeral' }
  const hour = { type: 'ephemeral', ttl: '1h' }
  const block = (cache_control: object) => [{ type: 'text', text: TEXT, cache_control }]

  test.each([
    ['nothing is cached', {}, '3.00'],
    ['the request is cached', { cache_control: control }, '3.75'],
    ['the system prompt is cached', { system: block(control) }, '3.75'],
    ['a tool is cached', { tools: [{ name: 'f', input_schema: {}, cache_control: control }] }, '3.75'],
    ['a turn is cached for an hour', { messages: [{ role: 'user', content: block(hour) }] }, '6.00'],
    ['one thing of two is cached for an hour', { system: block(control), cache_control: hour }, '6.00'],
    [
      'the content of a tool result is cached for an hour',
      {
        messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: block(hour) }] }],
      },
      '6.00',
    ],
  ])('holds every token of the prompt at its highest price: %s', async (_what, rest, price) => {
    await start([])
    const body = request(rest)
    const { cost } = await started!.gateway.estimate(PRINCIPAL, { endpoint: 'messages', body })
    const tokens = BigInt(Math.ceil(Buffer.byteLength(JSON.stringify(body)) / 3))

    expect(parseDollars(cost ?? '')).toBe((tokens * parseDollars(price)) / 1_000_000n + 100n * 15_000n)
  })

  test('is not lower where writing to the cache is cheaper than reading a fresh prompt', async () => {
    const cheap = [
      perMillion('input_token', '3.00'),
      perMillion('output_token', '0'),
      perMillion('cache_write_token', '1'),
    ]
    started = await startGateway({
      vendors: [anthropic({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
      prices: { currency: 'USD', prices: cheap },
    })
    vendor.usage = { input_tokens: 3_000, cache_creation_input_tokens: 0, output_tokens: 1 }

    const { held, charged } = await billed(request({ cache_control: control }), false)

    expect(charged).toBe(9_000_000n)
    expect(held).toBeGreaterThanOrEqual(charged)
  })
})

describe.each([false, true])('web searches that have a price (streamed: %s)', (stream) => {
  const price: PriceRow = { model: MODEL, meter: 'web_search', amount: '10.00', per: 1_000 }
  const tokens = { input_tokens: 10, output_tokens: 7 }
  const tokenCost = 10n * 3_000n + 7n * 15_000n
  const one = 10_000_000n
  const report = (searches: Record<string, unknown>): void => {
    vendor.usage = stream ? tokens : { ...tokens, ...searches }
    vendor.lastUsage = { ...tokens, ...searches }
  }

  test.each([
    [{ server_tool_use: { web_search_requests: 3 } }, 3n],
    [{ server_tool_use: { web_search_requests: 0 } }, 0n],
    [{ server_tool_use: null }, 0n],
    [{}, 1n],
  ])('are charged by the number that the vendor reports, and once if it reports none: %j', async (searches, count) => {
    await start([price])
    report(searches)

    const { held, charged } = await billed(request({ tools: [{ ...SEARCH, max_uses: 5 }] }), stream)

    expect(charged).toBe(tokenCost + count * one)
    expect(held).toBeGreaterThanOrEqual(charged)
  })

  test('are not charged in a request that could not search', async () => {
    await start([price])
    report({})

    expect((await billed(request({}), stream)).charged).toBe(tokenCost)
  })

  test('are held for as often as the request allows, and ten times where it sets no end', async () => {
    await start([price])
    report({})
    const { held: plain } = await billed(request({ tools: [] }), stream)
    const { held: five } = await billed(request({ tools: [{ ...SEARCH, max_uses: 5 }] }), stream)
    const { held: open } = await billed(request({ tools: [SEARCH] }), stream)

    expect((five - plain) / one).toBe(5n)
    expect((open - plain) / one).toBe(10n)
  })

  test('are charged as reported, up to 16 for each of 64 samplings', async () => {
    await start([price])
    report({ server_tool_use: { web_search_requests: 60 } })

    expect((await billed(request({ tools: [{ ...SEARCH, max_uses: 5 }] }), stream)).charged).toBe(tokenCost + 60n * one)
    expect(started!.events).not.toContainEqual(expect.objectContaining({ type: 'usage-implausible' }))

    report({ server_tool_use: { web_search_requests: 2_000 } })

    expect((await billed(request({ tools: [SEARCH] }), stream)).charged).toBe(tokenCost + 1_024n * one)
    expect(started!.events).toContainEqual(
      expect.objectContaining({
        type: 'usage-implausible',
        fields: ['webSearches'],
        reported: { webSearches: 2_000 },
        charged: { webSearches: 1_024 },
        reportedNanoDollars: tokenCost + 2_000n * one,
        dueNanoDollars: tokenCost + 1_024n * one,
      }),
    )
  })
})

describe('surcharges of a vendor that only another route of the model uses', () => {
  const ROUTED: ModelDefinition = {
    id: MODEL,
    kind: 'chat',
    vendor: 'openai',
    upstream: 'gpt-x',
    routes: [
      { vendor: 'anthropic', upstream: 'claude-x' },
      { vendor: 'openai', priority: 1 },
    ],
  }

  async function startRouted(more: readonly PriceRow[]): Promise<void> {
    started = await startGateway({
      vendors: [
        openai({ apiKey: 'vendor-key-canary-1c55' }),
        anthropic({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin }),
      ],
      models: [ROUTED],
      prices: { currency: 'USD', prices: [...TOKENS, ...more] },
    })
  }

  test('is charged', async () => {
    await startRouted([{ model: MODEL, meter: 'web_search', amount: '10.00', per: 1_000 }])
    vendor.usage = { input_tokens: 0, output_tokens: 0, server_tool_use: { web_search_requests: 3 } }

    const { held, charged } = await billed(request({ tools: [{ ...SEARCH, max_uses: 5 }] }), false)

    expect(charged).toBe(30_000_000n)
    expect(held).toBeGreaterThanOrEqual(charged)
  })

  test('is refused without a price', async () => {
    await startRouted([])

    expect((await started!.post('/v1/messages', request({ speed: 'fast' }))).status).toBe(400)
  })
})

const COMPACTED = {
  input_tokens: 23_000,
  output_tokens: 1_000,
  iterations: [
    { type: 'compaction', input_tokens: 180_000, output_tokens: 3_500 },
    { type: 'message', input_tokens: 23_000, output_tokens: 1_000 },
  ],
}
const ADVISED = {
  input_tokens: 412,
  output_tokens: 531,
  iterations: [
    { type: 'message', input_tokens: 412, output_tokens: 89 },
    { type: 'advisor_message', model: 'claude-opus-4-7', input_tokens: 823, output_tokens: 1_612 },
    { type: 'message', input_tokens: 1_348, cache_read_input_tokens: 412, output_tokens: 442 },
  ],
}
const ADVISOR = { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-7', max_uses: 1 }
const ADVISOR_PRICES: readonly PriceRow[] = [
  { model: 'cl-opus-4-7', meter: 'input_token', amount: '5.00', per: 1_000_000 },
  { model: 'cl-opus-4-7', meter: 'output_token', amount: '25.00', per: 1_000_000 },
]

describe.each([false, true])('a call of several samplings (streamed: %s)', (stream) => {
  beforeEach(() => start(ADVISOR_PRICES))

  const chat = { model: MODEL, max_tokens: 100, messages: [{ role: 'user', content: TEXT }], stream }
  const report = (usage: Record<string, unknown>): void => {
    vendor.usage = stream ? { input_tokens: usage['input_tokens'], output_tokens: 1 } : usage
    vendor.lastUsage = usage
  }

  test('is charged for the summary of the conversation too', async () => {
    report(COMPACTED)
    const { charged } = await billed(request({}), stream)

    // Before: $0.084, the last sampling alone.
    expect(charged).toBe(parseDollars('0.6765'))
  })

  test('is charged the same in a chat, whose caller reads the same tokens', async () => {
    report(COMPACTED)
    const before = await started!.account()
    const answer = await started!.post('/v1/chat/completions', { ...chat, stream_options: { include_usage: true } })
    const text = await answer.text()
    await started!.ended(answer)
    const after = await started!.account()

    expect(before.balance - after.balance).toBe(parseDollars('0.6765'))
    expect(text).toContain('"prompt_tokens":203000')
  })

  test("is charged for an advisor at the advisor's price, and held for it", async () => {
    report(ADVISED)
    const { charged, held } = await billed(request({ tools: [ADVISOR] }), stream)
    const plain = await started!.gateway.estimate(PRINCIPAL, { endpoint: 'messages', body: request({}) })

    // 1,760 fresh and 412 cached tokens in and 531 out of its own, 823 in and 1,612 out of the advisor's. Before: $0.009201.
    expect(charged).toBe(parseDollars('0.0133686') + parseDollars('0.044415'))
    expect(held - parseDollars(plain.cost ?? '')).toBeGreaterThan(parseDollars('0.044415'))
  })

  test('is charged at its own price for a model that the request does not name', async () => {
    report({ ...ADVISED, iterations: [{ ...ADVISED.iterations[1], model: 'claude-unheard-of' }] })
    const { charged } = await billed(request({}), stream)

    expect(charged).toBe(parseDollars('0.009201') + parseDollars('0.026649'))
  })
})

test('a request that the vendor may summarise is held for the summary', async () => {
  await start([])
  const long = { messages: [{ role: 'user', content: 'word '.repeat(200_000) }] }
  const edits = [{ type: 'compact_20260112' }]
  const held = async (body: Record<string, unknown>): Promise<number> =>
    Number((await started!.gateway.estimate(PRINCIPAL, { endpoint: 'messages', body })).cost)
  const plain = await held(request(long))

  expect(await held(request({ ...long, context_management: { edits } }))).toBeCloseTo(2 * plain, 2)
  expect(await held(request({ context_management: { edits } }))).toBeLessThan(plain / 10)
})

test('runs tools that the caller executes without a price of their own', async () => {
  await start([])
  for (const type of ['browser_toolset_20260801', 'computer_toolset_20260801']) {
    const messages = [{ role: 'user', content: 'hi' }]
    const answer = await started!.post('/v1/messages', { model: MODEL, max_tokens: 50, messages, tools: [{ type }] })
    expect([type, answer.status]).toEqual([type, 200])
  }
})
