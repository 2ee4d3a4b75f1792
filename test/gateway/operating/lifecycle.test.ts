import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

const CHAT = '/v1/chat/completions'

describe('closing', () => {
  test('lets a stream end, refuses new requests with 503, and settles everything', async () => {
    started = await startGateway()
    const { gateway, post } = started
    const response = await post(
      CHAT,
      chatBody('chat-relayed', '[[fault:pace=10]] one two three four five', { stream: true }),
    )
    const closing = gateway.close({ drainMs: 10_000 })
    const refused = await post(CHAT, chatBody('chat-relayed', 'hello'))
    const events = await readEvents(response)
    await closing

    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect((await refused.json()).error.code).toBe('gateway_closing')
    expect(events.at(-1)).toBe('[DONE]')
    expect((await started.account()).held).toBe(0n)
  })

  test('closes each connection with its next answer while a balancer notices', async () => {
    started = await startGateway()
    const { gateway, url } = started
    const agent = new Agent({ keepAlive: true })
    const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
    const ask = (text: string, stream: boolean): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        const sent = request(`${url}${CHAT}`, { agent, method: 'POST', headers }, resolve).on('error', reject)
        sent.end(JSON.stringify(chatBody('chat-relayed', text, { stream })))
      })
    const ended = async (response: IncomingMessage): Promise<boolean> => {
      const { socket } = response
      response.resume()
      if (!socket.closed) await once(socket, 'close')
      return response.complete
    }
    const early = await ask('[[fault:pace=20]] one two three four five', true)
    const whole = ask('[[fault:delay=50]] one', false)
    await started.sandbox.nextRequest()
    const closing = gateway.close({ delayMs: 1_000 })
    const kept = early.socket
    early.resume()
    await once(early, 'end')
    // Its head said that the connection stays open, so it takes one more request.
    const late = await ask('two', false)

    expect([early, await whole, late].map((response) => response.headers.connection)).toEqual([
      'keep-alive',
      'close',
      'close',
    ])
    expect(late.socket).toBe(kept)
    expect([late.statusCode, await ended(await whole), await ended(late)]).toEqual([200, true, true])
    await closing
  })

  test('ends the remaining requests after the drain time with an error event, and charges the output received so far', async () => {
    started = await startGateway()
    const response = await started.post(
      CHAT,
      chatBody('chat-relayed', '[[fault:hang-body=3]] one two three', { stream: true }),
    )
    await started.gateway.close({ drainMs: 50 })
    const text = await response.text()
    const ended = await started.ended(response)

    expect(text).toContain('"code":"gateway_closing"')
    expect(text).not.toContain('[DONE]')
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect((await started.account()).held).toBe(0n)
  })

  test('tells what the vendor may bill for a whole answer that is cut off', async () => {
    started = await startGateway()
    started.sandbox.fault({ kind: 'hang' })
    const ending = started.nextEnded()
    const asked = started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 500 }))
    await started.sandbox.nextRequest()
    await started.gateway.close({ drainMs: 50 })

    const answer = await asked
    expect([answer.status, (await answer.json()).error.code]).toEqual([503, 'gateway_closing'])
    expect(await ending).toMatchObject({ ending: 'failed', usage: undefined, costNanoDollars: 0n })
    expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([
      expect.objectContaining({ isEstimated: true, usage: expect.objectContaining({ outputTokens: 500 }) }),
    ])
    expect((await started.account()).held).toBe(0n)
  })

  test.each([{ drainMs: Number.NaN }, { drainMs: -1 }, { delayMs: '10' }])(
    'rejects the time %o, and closes nothing',
    async (times) => {
      started = await startGateway()

      await expect(started.gateway.close(times as never)).rejects.toThrow(
        /^gateway\.close: \w+Ms must be a number from 0/,
      )
      expect((await started.post(CHAT, chatBody('chat-relayed', 'hello'))).status).toBe(200)
    },
  )

  test('keeps the process alive until the last settlement is made', async () => {
    const store = memoryStore()
    const clock = fakeClock()
    let isAway = true
    const settle: typeof store.ledger.settle = (...given) => {
      if (isAway) throw new Error('the store is away')
      return store.ledger.settle(...given)
    }
    started = await startGateway({ clock, store: { ...store, ledger: { ...store.ledger, settle } } })
    await (await started.post(CHAT, chatBody('chat-relayed', 'hello'))).text()
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const closing = started.gateway.close({ drainMs: 60_000 })
    const meanwhile = timers()
    isAway = false
    clock.advance(30_000)
    await closing

    expect(meanwhile).toBe(before + 1)
    expect((await started.account()).held).toBe(0n)
  })

  test('twice is closing once, and health says so', async () => {
    started = await startGateway()
    const closing = started.gateway.close()
    expect(started.gateway.close()).toBe(closing)
    const health = await fetch(`${started.url}/healthz`)
    await closing

    expect(await health.json()).toEqual({ status: 'closing' })
  })
})

describe('a client in this process', () => {
  const principal = { accountId: TEST_ACCOUNT, keyId: 'key_host', tier: 'paid' } as const

  test('chats, streams, embeds and lists models without HTTP, on the same bill', async () => {
    started = await startGateway()
    const client = started.gateway.client(principal)
    const ending = started.nextEnded()
    const answer = await client.chat.completions.create({
      model: 'cl-sonnet-4-6',
      messages: [{ role: 'user', content: 'hello' }],
    })
    const ended = await ending
    let streamed = ''
    for await (const chunk of await client.chat.completions.create({
      model: 'chat-relayed',
      messages: [{ role: 'user', content: 'hello' }],
      stream: true,
    })) {
      streamed += chunk.choices[0]?.delta.content ?? ''
    }
    const vectors = await client.embeddings.create({ model: 'vy-4', input: ['a', 'b'], dimensions: 256 })
    const models = await client.models.list()

    expect(answer.choices[0]?.message.content).toBe('You said: hello')
    expect(ended).toMatchObject({ accountId: TEST_ACCOUNT, keyId: 'key_host' })
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect(streamed).toBe('You said: hello')
    expect(vectors.data.map((row) => row.embedding.length)).toEqual([256, 256])
    expect(models.length).toBeGreaterThan(20)
  })

  test('throws the gateway error of a refused call', async () => {
    started = await startGateway()
    const client = started.gateway.client(principal)
    const call = client.chat.completions.create({ model: 'nobody', messages: [{ role: 'user', content: 'hello' }] })

    await expect(call).rejects.toMatchObject({ code: 'model_not_found', status: 404, param: 'model' })
  })

  test('stops the vendor when the loop over a stream is left', async () => {
    started = await startGateway()
    const client = started.gateway.client(principal)
    const stream = await client.chat.completions.create({
      model: 'chat-relayed',
      messages: [{ role: 'user', content: `[[fault:pace=10]] ${'word '.repeat(200)}` }],
      stream: true,
    })
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content !== undefined) break
    await started.sandbox.nextAbort()

    expect(started.sandbox.aborted).toBe(1)
  })
})

describe('createGateway refuses', () => {
  test.each([
    ['prices that are missing', { vendors: [] }, /give prices, or billing: 'off'/],
    [
      'an unknown option',
      { vendors: [], billing: 'off', key: [] },
      /createGateway: key is unknown; did you mean keys\?/,
    ],
    ['prices with billing off', { vendors: [], billing: 'off', prices: { currency: 'USD', prices: [] } }, /contradict/],
    ['a vendor twice', { vendors: [openai({ apiKey: 'a' }), openai({ apiKey: 'b' })], billing: 'off' }, /listed twice/],
    [
      'a time-out of zero',
      { vendors: [], billing: 'off', timeouts: { idleMs: 0 } },
      /timeouts.idleMs must be a positive number/,
    ],
    [
      'keys beside authenticate',
      { vendors: [], billing: 'off', keys: [], authenticate: () => undefined },
      /contradict|no effect/,
    ],
    ['no options', undefined, /^createGateway: options must be an object$/],
    ['null', null, /^createGateway: options must be an object$/],
    ['no vendors', { billing: 'off' }, /^createGateway: vendors must be a list$/],
    ['one vendor without a list', { vendors: openai(), billing: 'off' }, /^createGateway: vendors must be a list$/],
    [
      'a factory that was not called',
      { vendors: [openai], billing: 'off' },
      /^createGateway: vendors\[0\] is a function; call it: openai\(\{ apiKey \}\)$/,
    ],
    ['a name of a vendor', { vendors: ['openai'], billing: 'off' }, /^createGateway: vendors\[0\] must be a vendor/],
    ...(
      [
        [{ keys: { a: 'b' } }, 'keys must be a list'],
        [{ keys: [undefined] }, 'keys[0] must be an object'],
        [
          { keys: [{ key: 'k', account: 'a', limits: { tokensPerMinute: Number.NaN } }] },
          'keys[0].limits.tokensPerMinute',
        ],
        [{ models: {} }, 'models must be a list'],
        [{ models: [null] }, 'models[0] must be an object'],
        [{ models: [{}] }, 'models[0].id must be the id that callers write'],
        [{ models: [{ id: 'a', vendor: 'openai' }] }, "models[0].kind must be what the model does, such as 'chat'"],
        [
          { models: [{ id: 'a', kind: 'chat' }] },
          'models[0].vendor must be the id of a vendor, unless the row has routes',
        ],
        [{ endpoints: {} }, 'endpoints must be a list'],
        [{ endpoints: [{}] }, 'endpoints[0] must be an endpoint with id, path and parse'],
        [{ hooks: {} }, 'hooks must be a list'],
        [{ observe: {} }, 'observe must be a list'],
        [{ observe: [null] }, 'observe[0] must be an object'],
        [{ observe: [{ event: 'all' }] }, 'observe[0].event must be a function'],
        [{ observe: [{ requestEnd: () => undefined }] }, 'observe[0] has none of attached, detached'],
        [{ vendors: [{ id: 'openai' }] }, 'vendors[0] must be a vendor'],
        [
          { vendors: [{ ...openai({ apiKey: ['a', ''] }), keyWeights: [3, 1] }] },
          'the vendor "openai" has 2 keyWeights and 1 key that is set',
        ],
        [{ plans: { free: null } }, 'plans.free must be an object'],
        [{ plans: 5 }, 'plans must be an object of plans by name'],
        [{ allowPrivateUrls: 'false' }, 'allowPrivateUrls must be true or false'],
        [{ showPrices: 0 }, 'showPrices must be true or false'],
        [{ routing: { retryAfterTimeout: 'no' } }, 'routing.retryAfterTimeout must be true or false'],
        [{ keys: [{ key: 'k', account: 'a', namesEndUsers: '0' }] }, 'keys[0].namesEndUsers must be true or false'],
        [{ store: 'sqlite:signalbox.db' }, 'store must be an object with the method start, such as sqliteStore('],
        [
          { rateLimiter: { rateLimiter: {} } },
          'rateLimiter must be an object with the method take, such as redisLimits(',
        ],
        [{ concurrencyLimiter: {} }, 'concurrencyLimiter must be an object with the method acquire'],
        [{ logger: () => undefined }, 'logger must be an object with the method debug, such as console'],
        [{ onEvent: [] }, 'onEvent must be a function'],
        [{ authenticate: {} }, 'authenticate must be a function'],
        [{ estimateTokens: {} }, 'estimateTokens must be a function'],
        [{ transport: {} }, 'transport must be an object with the method send'],
        [{ clock: {} }, 'clock must be an object with the method now'],
        [{ ids: {} }, 'ids must be an object with the method next'],
        [{ operatorKey: null }, 'operatorKey must have at least'],
        [{ disconnect: 'close' }, 'disconnect must be cancel or drain'],
        [{ disconnect: { chat: 'close' } }, 'disconnect.chat must be cancel or drain'],
        [{ billing: 'postpaid' }, "billing must be 'prepaid', 'metered' or 'off'"],
        [{ billing: true }, "billing must be 'prepaid', 'metered' or 'off'"],
        [{ billing: null }, "billing must be 'prepaid', 'metered' or 'off'"],
        [{ routing: { fallback: true } }, 'routing.fallback must be on-failure, never, or'],
      ] as const
    ).map(([option, message]): [string, object, string] => [
      JSON.stringify(option),
      { vendors: [], billing: 'off', ...option },
      `createGateway: ${message}`,
    ]),
    ['prices by the name of a file', { vendors: [], prices: 'prices.json' }, /^prices: expected \{ currency/],
  ])('%s', (_name, options, message) => {
    expect(() => createGateway(options as never)).toThrow(message)
  })
})
