import { afterEach, describe, expect, test } from 'vitest'
import { definePrices } from '../../src/catalog/prices/prices.ts'
import { CHAT_SURCHARGES, chatSurcharges } from '../../src/endpoints/chat/chat-surcharges.ts'
import {
  MESSAGES_SURCHARGES,
  messagesFieldParam,
  messagesSearches,
  messagesSurcharges,
} from '../../src/endpoints/messages/messages-estimate.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'

const SURCHARGES = [...CHAT_SURCHARGES, ...MESSAGES_SURCHARGES]

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

describe('what costs more than tokens', () => {
  test.each([
    [{ service_tier: 'priority' }, { service_tier: 'priority' }],
    [{ service_tier: 'of the future' }, { service_tier: 'of the future' }],
    [{ service_tier: 'flex' }, { service_tier: 'default' }],
    [{ service_tier: 'default' }, { service_tier: 'default' }],
    [{ service_tier: null, web_search_options: null, modalities: ['text'] }, {}],
    [{ web_search_options: {} }, { web_search: 'true' }],
    [{ enable_search: true }, { web_search: 'true' }],
    [{ enable_search: false }, {}],
    [{ modalities: ['text', 'audio'] }, { output_audio: 'true' }],
    [{ modalities: ['image', 'text'] }, { output_image: 'true' }],
    [{ provider: { only: ['a-dear-host'] } }, { provider_routing: 'true' }],
    [{ provider: { sort: 'throughput' } }, { provider_routing: 'true' }],
    [{ provider: { data_collection: 'deny' } }, { provider_routing: 'true' }],
    [{ provider: { sort: { by: 'price' } } }, {}],
    [{ provider: { sort: { by: 'price', partition: 'model' } } }, {}],
    [{ provider: { sort: { by: 'price', partition: null } } }, {}],
    [{ provider: { sort: { by: 'price', partition: 'none' } } }, { provider_routing: 'true' }],
    [{ provider: { sort: { by: 'latency' } } }, { provider_routing: 'true' }],
    [{ provider: { sort: {} } }, { provider_routing: 'true' }],
    [{ provider: { sort: 'price', max_price: { prompt: 1 }, order: [], zdr: false, data_collection: 'allow' } }, {}],
    [{ provider: null }, {}],
  ])('in a chat: %j is %j', (request, fields) => {
    expect(chatSurcharges(request)).toEqual(fields)
  })

  test.each([
    [{ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, { web_search: 'true' }],
    [
      { tools: [{ name: 'web_search', input_schema: {} }, { type: 'custom', name: 'x' }, { type: 'bash_20250124' }] },
      {},
    ],
    [
      { tools: [{ type: 'code_execution_20250825' }], speed: 'fast' },
      { code_execution: 'true', speed: 'fast' },
    ],
    [{ inference_geo: 'us' }, { inference_geo: 'us' }],
    [{ service_tier: 'auto', speed: 'standard', inference_geo: 'global', tools: null }, {}],
  ])('in a message: %j is %j', (request, fields) => {
    expect(messagesSurcharges(request)).toEqual(fields)
  })

  test.each([
    [[{ type: 'web_search_20250305', max_uses: 3 }], 3],
    [[{ type: 'web_search_20250305' }], 10],
    [[{ type: 'web_search_20250305', max_uses: -1 }], 10],
    [
      [
        { type: 'web_search_20250305', max_uses: 2 },
        { type: 'web_search_20260101', max_uses: 4 },
      ],
      6,
    ],
    [[{ name: 'web_search', input_schema: {}, max_uses: 9 }], undefined],
    [undefined, undefined],
  ])('holds a message with the tools %j for this number of searches: %s', (tools, searches) => {
    expect(messagesSearches({ tools })).toBe(searches)
  })

  test('in a message with tools that are defined between two turns are those of all its tools', () => {
    const definition = { type: 'web_search_20250305', max_uses: 3 }
    const content = [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }]
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'system', content },
    ]

    expect(messagesSurcharges({ messages })).toEqual({ web_search: 'true' })
    expect(messagesSearches({ messages, tools: [{ ...definition, max_uses: 2 }] })).toBe(5)

    // The vendor's summary of turns contains the tools that they defined, and is sent in their place.
    const summary = { type: 'compaction', content: 'So far: hi.', tool_changes: content }
    const compacted = { messages: [{ role: 'assistant', content: [{ type: 'text', text: 'hi' }, summary] }] }
    expect(messagesSurcharges(compacted)).toEqual({ web_search: 'true' })
    expect(messagesFieldParam('web_search', compacted)).toBe(
      'messages[0].content[1].tool_changes[0].tool.definition.type',
    )
    for (const changes of [null, 'x', [null, { type: 'tool_removal' }]])
      expect(
        messagesSurcharges({ messages: [{ role: 'user', content: [{ ...summary, tool_changes: changes }] }] }),
      ).toEqual({})
  })
})

test('a price of searches is a price for calls that may search, and no hindrance to others', () => {
  const token = { model: 'm', meter: 'input_token', amount: '1', per: 1000 } as const
  const search = { model: 'm', meter: 'web_search', amount: '1' } as const
  const everywhere = definePrices({ currency: 'USD', prices: [token, search] })
  const inEurope = definePrices({ currency: 'USD', prices: [token, { ...search, when: { inference_geo: 'eu' } }] })
  const pricesSearch = (prices: typeof everywhere, fields: Record<string, string>): boolean | undefined => {
    const rate = prices.quote('m', fields, SURCHARGES)
    return rate === undefined ? undefined : rate.numerators.web_search !== undefined
  }

  expect(pricesSearch(everywhere, {})).toBe(false)
  expect(pricesSearch(everywhere, { web_search: 'true' })).toBe(true)
  expect(pricesSearch(inEurope, {})).toBe(false)
  expect(pricesSearch(inEurope, { web_search: 'true' })).toBeUndefined()
  expect(pricesSearch(inEurope, { web_search: 'true', inference_geo: 'eu' })).toBe(true)
})

test('a price list without a row for a surcharge has no price for it, and one with a row has', () => {
  const token = { model: 'm', meter: 'input_token', amount: '1', per: 1000 } as const
  const plain = definePrices({ currency: 'USD', prices: [token] })
  const tiered = definePrices({
    currency: 'USD',
    prices: [token, { ...token, amount: '2', when: { service_tier: 'priority' } }],
  })

  expect(plain.quote('m', { size: 'any' }, SURCHARGES)).toBeDefined()
  expect(plain.quote('m', { service_tier: 'priority' }, SURCHARGES)).toBeUndefined()
  expect(tiered.quote('m', { service_tier: 'priority' }, SURCHARGES)).not.toBe(tiered.quote('m', {}, SURCHARGES))
  expect(tiered.quote('m', { service_tier: 'fast' }, SURCHARGES)).toBeUndefined()
  expect(tiered.quote('m', { service_tier: 'priority', web_search: 'true' }, SURCHARGES)).toBeUndefined()
})

describe('a request for what the price list does not name', () => {
  const messages = [{ role: 'user', content: 'hi' }]
  const SEARCH = {
    model: 'cl-sonnet-4-6',
    max_tokens: 9,
    messages,
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  }

  const UNKNOWN_TOOL = { type: 'translate_20270101', name: 'translate' }
  const ADVISOR = { type: 'advisor_20260301', name: 'advisor', model: 'claude-unpriced' }
  const adding = (definition: object) => ({
    ...SEARCH,
    tools: [{ name: 'own', input_schema: { type: 'object' } }],
    messages: [
      ...messages,
      { role: 'system', content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }] },
    ],
  })

  // Searches of `search_parameters` and of tools, unknown tools and unknown betas must not be free.
  test.each<[string, Record<string, unknown>, Record<string, string>, string]>([
    ['/v1/chat/completions', { model: 'chat-relayed', messages, service_tier: 'priority' }, {}, 'service_tier'],
    ['/v1/chat/completions', { model: 'chat-relayed', messages, web_search_options: {} }, {}, 'web_search_options'],
    ['/v1/chat/completions', { model: 'chat-qwen', messages, enable_search: true }, {}, 'enable_search'],
    ['/v1/chat/completions', { model: 'chat-relayed', messages, search_parameters: {} }, {}, 'search_parameters'],
    ['/v1/chat/completions', { model: 'chat-relayed', messages, google_search: {} }, {}, 'google_search'],
    ['/v1/chat/completions', { model: 'chat-relayed', messages, tools: [{ type: 'web_search' }] }, {}, 'tools[0]'],
    [
      '/v1/chat/completions',
      { model: 'chat-relayed', messages, tools: [{ type: 'code_interpreter' }] },
      {},
      'tools[0]',
    ],
    ['/v1/chat/completions', { model: 'chat-relayed', messages, plugins: [{ id: 'web' }] }, {}, 'plugins[0]'],
    ['/v1/chat/completions', { model: 'chat-relayed', messages, provider: { only: ['dear'] } }, {}, 'provider'],
    ['/v1/responses', { model: 'chat-relayed', input: 'hi', provider: { order: ['dear'] } }, {}, 'provider'],
    ['/v1/responses', { model: 'chat-relayed', input: 'hi', plugins: [{ id: 'web' }] }, {}, 'plugins[0]'],
    ['/v1/responses', { model: 'chat-relayed', input: 'hi', tools: [{ type: 'shell' }] }, {}, 'tools[0]'],
    [
      '/v1/responses',
      { model: 'chat-relayed', input: 'hi', tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
      {},
      'tools[0]',
    ],
    ['/v1/messages', SEARCH, {}, 'tools[0].type'],
    ['/v1/messages', { ...SEARCH, tools: [UNKNOWN_TOOL] }, {}, 'tools[0].type'],
    ['/v1/messages', { ...SEARCH, tools: [], speed: 'fast' }, {}, 'speed'],
    [
      '/v1/messages',
      { ...SEARCH, tools: [] },
      { 'anthropic-beta': 'effort-2025-11-24, teleport-2027-01-01' },
      'anthropic-beta',
    ],
    ['/v1/messages', { ...SEARCH, tools: [], betas: ['teleport-2027-01-01'] }, {}, 'betas[0]'],
    ['/v1/messages', { ...SEARCH, tools: [], fallbacks: ['claude-opus-4-7'] }, {}, 'fallbacks'],
    ['/v1/messages', { ...SEARCH, tools: [], fallbacks: 'default' }, {}, 'fallbacks'],
    ['/v1/messages', { ...SEARCH, tools: [ADVISOR] }, {}, 'tools[0].model'],
    ['/v1/messages', adding(SEARCH.tools[0]!), {}, 'messages[1].content[0].tool.definition.type'],
    ['/v1/messages', adding(UNKNOWN_TOOL), {}, 'messages[1].content[0].tool.definition.type'],
    ['/v1/messages', adding(ADVISOR), {}, 'messages[1].content[0].tool.definition.model'],
  ])('reaches no vendor: %s %j %j', async (path, body, headers, param) => {
    started = await startGateway()
    const answer = await started.post(path, body, headers)

    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain(`${param}: this gateway has no price for it`)
    expect(started.sandbox.requests).toHaveLength(0)
    expect(started.events).toMatchObject([{ type: 'request-refused', code: 'unsupported_parameter' }])
  })

  test('passes a shell that the caller runs, without a price of its own', async () => {
    started = await startGateway()
    const tools = [{ type: 'shell', environment: { type: 'local' } }]
    const answer = await started.post('/v1/responses', { model: 'chat-relayed', input: 'hi', tools })

    expect([answer.status, started.sandbox.requests.length], await answer.text()).toEqual([200, 1])
  })

  test.each([
    [{ 'anthropic-beta': 'teleport-2027-01-01' }, {}, ['beta=teleport-2027-01-01']],
    [{ 'anthropic-beta': 'teleport-2027-01-01,more-2027-01-01' }, {}, ['beta=*']],
    [{}, { tools: [UNKNOWN_TOOL] }, ['server_tool=translate_20270101']],
    [{}, { tools: [UNKNOWN_TOOL] }, ['server_tool']],
    [{}, { tools: SEARCH.tools }, ['web_search']],
  ])('goes through where an option names it: %j %j %j', async (headers, body, unpricedFeatures) => {
    started = await startGateway({ unpricedFeatures })
    const answer = await started.post('/v1/messages', { ...SEARCH, tools: [], ...body }, headers)

    // The stand-in rejects what it does not know, like the vendor. Only the call itself matters here.
    expect(started.sandbox.requests, await answer.text()).toHaveLength(1)
  })

  test('is accepted if it is not sent to any vendor', async () => {
    started = await startGateway()
    const provider = { only: ['a-dear-host'] }
    const answer = await started.post('/v1/chat/completions', { model: 'cl-sonnet-4-6', messages, provider })

    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-signalbox-dropped')).toBe('provider')
  })

  test('goes through where a price row names it, at the price of the row', async () => {
    const when = { server_tool: 'translate_20270101' }
    const row = { model: 'cl-sonnet-4-6', meter: 'request', amount: '0.05', when } as const
    const free = { model: 'cl-sonnet-4-6', meter: 'request', amount: '0' } as const
    started = await startGateway({ prices: { ...testPrices, prices: [...testPrices.prices, row, free] } })
    const principal = { accountId: 'acct_test', keyId: 'key_1', tier: 'paid' } as const
    const costs: number[] = []
    for (const tools of [[], [UNKNOWN_TOOL]]) {
      const body = { ...SEARCH, tools: [{ name: 'own', input_schema: { type: 'object' } }, ...tools] }
      const { cost } = await started.gateway.estimate(principal, { endpoint: 'messages', body })
      costs.push(Number(cost))
    }

    expect(costs[0]).toBeLessThan(0.05)
    expect(costs[1]).toBeGreaterThan(0.05)
    expect(started.events.filter((event) => event.type === 'configuration-warning')).toEqual([])
  })

  test.each([
    ['claude-code-20250219,interleaved-thinking-2025-05-14,thinking-token-count-2026-05-13'],
    ['context-management-2025-06-27,prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07'],
    ['per-turn-control-2026-07-01,mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15'],
    ['advisor-tool-2026-03-01,advanced-tool-use-2025-11-20,effort-2025-11-24,extended-cache-ttl-2025-04-11'],
    ['dangerous-tool-use-2026-09-03,thinking-display-updates-2026-08-18,message-threads-2026-08-12'],
  ])('is none of the betas that coding clients send: %s', async (betas) => {
    started = await startGateway()
    const answer = await started.post('/v1/messages', { ...SEARCH, tools: [] }, { 'anthropic-beta': betas })

    expect(await answer.text()).not.toContain('no price')
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('goes through where the list names it, for what the row says', async () => {
    const row = { model: 'cl-sonnet-4-6', meter: 'request', amount: '0.05', when: { web_search: 'true' } } as const
    const free = { model: 'cl-sonnet-4-6', meter: 'request', amount: '0' } as const
    started = await startGateway({ prices: { ...testPrices, prices: [...testPrices.prices, row, free] } })
    const { tools: _none, ...plain } = SEARCH
    const costs: number[] = []
    for (const body of [plain, SEARCH]) {
      const answer = await started.post('/v1/messages', body)
      expect(answer.status, await answer.clone().text()).toBe(200)
      costs.push(Number(answer.headers.get('x-signalbox-cost')))
      await answer.text()
    }

    expect(costs[0]).toBeLessThan(0.05)
    expect(costs[1]).toBeGreaterThan(0.05)
  })

  test('costs one search in a chat, whose vendor does not count them, and none in a chat that may not search', async () => {
    const row = { model: 'chat-relayed', meter: 'web_search', amount: '0.03' } as const
    started = await startGateway({ prices: { ...testPrices, prices: [...testPrices.prices, row] } })
    const costs: number[] = []
    for (const rest of [{}, { web_search_options: {} }]) {
      const answer = await started.post('/v1/chat/completions', { model: 'chat-relayed', messages, ...rest })
      costs.push(Number(answer.headers.get('x-signalbox-cost')))
      await answer.text()
    }

    expect(costs[0]).toBeGreaterThan(0)
    expect(costs[1]! - costs[0]!).toBeCloseTo(0.03, 9)
  })

  test.each(['cl-sonnet-4-6', 'gmn-2.5-flash'])(
    'is accepted in a chat with %s, which never sends it to the vendor',
    async (model) => {
      started = await startGateway()

      const answer = await started.post('/v1/chat/completions', {
        model,
        messages,
        service_tier: 'priority',
        web_search_options: {},
      })

      expect(answer.status, await answer.clone().text()).toBe(200)
    },
  )

  test('goes through where nothing is billed', async () => {
    started = await startGateway({ billing: 'off' })

    expect((await started.post('/v1/messages', SEARCH)).status).toBe(200)
  })
})
