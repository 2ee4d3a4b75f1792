import { afterEach, describe, expect, test } from 'vitest'
import { formatDollars } from '../../../src/core/money.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { type AnsweringVendor, answeringVendor, eventStream, json } from '../streams/answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const SURE = { temperature: 0 }
const PLAIN = {
  ...{ id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini' },
  limits: { maxOutputTokens: 2000 },
} as const

let started: StartedGateway
let vendor: AnsweringVendor | undefined

afterEach(async () => {
  await started.close()
  await vendor?.close()
  vendor = undefined
})

function start(options: Partial<GatewayOptions> = {}): Promise<StartedGateway> {
  const vendors = vendor === undefined ? {} : { vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })] }
  return startGateway({ ...vendors, models: [...TEST_MODELS, PLAIN], cache: {}, ...options })
}

async function ask(body: unknown, path = CHAT, headers: Record<string, string> = {}) {
  const response = await started.post(path, body, headers)
  return { response, cache: response.headers.get('x-signalbox-cache'), text: await response.text() }
}

const ANSWER_ID = 'chatcmpl-0123456789abcdefghij'

/** The events of a streamed chat with everything in them that a client reads. */
const EVENTS = [
  chunk([{ index: 0, delta: { role: 'assistant', content: '' } }]),
  chunk([{ index: 0, delta: { reasoning_content: 'I think "id" is é' } }]),
  chunk([{ index: 0, delta: { content: `it says \\"id\\":\\"${ANSWER_ID}\\"` } }]),
  chunk([
    {
      index: 0,
      delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] },
    },
  ]),
  chunk([{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{"at":"🙂"}' } }] } }]),
  chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]),
  chunk([], { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }),
]

function chunk(choices: object[], usage?: object): object {
  const head = { id: ANSWER_ID, object: 'chat.completion.chunk', created: 1, model: 'gpt-4.1-mini' }
  return { ...head, choices, ...(usage === undefined ? {} : { usage }) }
}

describe('a stream from the cache', () => {
  test.each([true, false])('has the same bytes but for its id and its cost (with usage: %s)', async (withUsage) => {
    vendor = await answeringVendor((response) => {
      eventStream(response)
      for (const event of EVENTS) response.write(`data: ${JSON.stringify(event)}\n\n`)
      response.end('data: [DONE]\n\n')
    })
    started = await start()
    const body = chatBody('chat-relayed', 'hello', {
      ...{ ...SURE, stream: true },
      ...(withUsage ? { stream_options: { include_usage: true } } : {}),
    })
    const first = await ask(body)
    const before = await started.account()
    const second = await ask(body)
    const id = /"id":"(chatcmpl-\w+)"/.exec(second.text)?.[1] ?? ''

    expect([first.cache, second.cache, vendor.calls]).toEqual(['miss', 'hit', 1])
    expect(id).toHaveLength(ANSWER_ID.length)
    expect(id).not.toBe(ANSWER_ID)
    expect(second.text).toBe(
      first.text.replaceAll(`"id":"${ANSWER_ID}"`, `"id":"${id}"`).replace(/"cost":"[^"]+"/, '"cost":"0"'),
    )
    expect(second.text.includes('"cost":"0"')).toBe(withUsage)
    // A text that quotes the id is left as it is.
    expect(second.text).toContain(ANSWER_ID)
    expect(second.text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(second.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(second.response.headers.get('cache-control')).toBe('no-cache, no-transform')
    expect(second.response.headers.get('content-length')).toBeNull()
    expect(await started.account()).toEqual(before)
  })

  test('says the cost of a hit where one has a price', async () => {
    const prices = [
      ...testPrices.prices,
      { model: 'chat-relayed', meter: 'request' as const, amount: '0.5', when: { cache: 'hit' } },
    ]
    started = await start({ prices: { currency: 'USD', prices } })
    const body = chatBody('chat-relayed', 'hello', {
      ...{ ...SURE, stream: true, stream_options: { include_usage: true } },
    })
    await ask(body)
    const second = await ask(body)

    expect(second.text).toContain('"cost":"0.5"')
    expect(second.response.headers.get('x-signalbox-cost')).toBe('0.5')
  })

  test.each([
    ['a message', '/v1/messages', chatBody('cl-sonnet-4-6', 'hello', { max_tokens: 50, stream: true, ...SURE })],
    ['a translated chat', CHAT, chatBody('cl-sonnet-4-6', 'hello', { stream: true, ...SURE })],
    ['a response', '/v1/responses', { model: 'chat-relayed', input: 'hello', store: false, stream: true, ...SURE }],
  ])('is given for %s too', async (_name, path, body) => {
    started = await start()
    const first = await ask(body, path)
    const second = await ask(body, path)
    const blank = (text: string) => text.replace(/"(msg|chatcmpl|resp)[-_]\w+"/g, '"-"')

    expect([first.cache, second.cache]).toEqual(['miss', 'hit'])
    expect(blank(second.text)).toBe(blank(first.text))
    expect(second.text).not.toBe(first.text)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('does not answer a request for a whole answer, or for usage', async () => {
    started = await start()
    const seen = []
    for (const rest of [
      {},
      { stream: false },
      { stream: true },
      { stream: true, stream_options: { include_usage: true } },
    ])
      seen.push((await ask(chatBody('chat-relayed', 'hello', { ...SURE, ...rest }))).cache)

    // An absent `stream` is the same as false.
    expect(seen).toEqual(['miss', 'hit', 'miss', 'miss'])
  })

  test.each(['reset-mid-stream', 'end-early', 'error-event'] as const)('is never one that broke (%s)', async (kind) => {
    started = await start()
    started.sandbox.fault({ kind, events: 3, times: 1 })
    const body = chatBody('chat-relayed', 'one two three four', { ...SURE, stream: true })
    await ask(body).catch(() => undefined)

    expect(started.gateway.cache.stats().writes).toBe(0)
    expect((await ask(body)).cache).toBe('miss')
  })

  test('is never one whose caller disconnected', async () => {
    started = await start({ disconnect: 'cancel' })
    const body = chatBody('chat-relayed', '[[fault:pace=30]] one two three four five six', { ...SURE, stream: true })
    const caller = rawPost(started.url, CHAT, body)
    await caller.received('data: ')
    const ending = started.nextEnded()
    caller.leave()
    await ending

    expect(started.gateway.cache.stats().writes).toBe(0)
  })
})

describe('equal requests at the same time', () => {
  const body = chatBody('chat-relayed', 'hello', SURE)
  const ANSWER = {
    ...{ id: ANSWER_ID, object: 'chat.completion', created: 1, model: 'gpt-4.1-mini' },
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
  }

  /** Vendor whose calls wait for the command to end. */
  async function waitingVendor() {
    const calls: ((status?: number) => void)[] = []
    const watchers: (() => void)[] = []
    vendor = await answeringVendor((response) => {
      calls.push((status = 200) => json(response, status === 200 ? ANSWER : { error: { message: 'no' } }, status))
      for (const watcher of watchers.splice(0)) watcher()
    })
    const called = async (count: number): Promise<void> => {
      while (calls.length < count) await new Promise<void>((resolve) => watchers.push(resolve))
    }
    return { calls, called }
  }

  /** Resolves when so many requests wait for the leader. */
  async function followers(count: number): Promise<void> {
    await expect.poll(() => started.gateway.cache.stats().misses).toBe(count + 1)
  }

  test('ask the vendor once, and one of them pays', async () => {
    const { calls, called } = await waitingVendor()
    started = await start()
    const all = Array.from({ length: 200 }, () => ask(body))
    await called(1)
    await followers(199)
    const { held } = await started.account()
    calls[0]!()
    const answers = await Promise.all(all)

    expect(vendor?.calls).toBe(1)
    expect(answers.map(({ response }) => response.status)).toEqual(answers.map(() => 200))
    expect(answers.filter(({ cache }) => cache === 'hit')).toHaveLength(199)
    expect(new Set(answers.map(({ text }) => (JSON.parse(text) as { id: string }).id)).size).toBe(200)
    const { entries } = await started.gateway.accounts.journal('acct_test')
    expect(entries.filter(({ kind }) => kind === 'charge')).toHaveLength(1)
    // Nobody who waits holds money.
    const one = await started.gateway.estimate(
      { accountId: 'acct_test', keyId: 'k', tier: 'paid' },
      { endpoint: 'chat', body },
    )
    expect(formatDollars(held)).toBe(one.cost)
    expect((await started.account()).held).toBe(0n)
  })

  test('are not held up where the host wants it so', async () => {
    const { calls, called } = await waitingVendor()
    started = await start({ cache: { collapse: false } })
    const all = [ask(body), ask(body)]
    await called(2)
    for (const end of calls) end()

    expect((await Promise.all(all)).map(({ cache }) => cache)).toEqual(['miss', 'miss'])
  })

  test.each([429, 400, 500])('do not share the failure of the first (%i)', async (status) => {
    const { calls, called } = await waitingVendor()
    started = await start({ routing: { fallback: 'never' } })
    const all = Array.from({ length: 5 }, () => ask(body))
    await called(1)
    await followers(4)
    calls[0]!(status)
    // A vendor that fails may be asked again for the same request.
    let next = 1
    const answering = setInterval(() => {
      while (next < calls.length) calls[next++]!()
    }, 5)
    const answers = await Promise.all(all)
    clearInterval(answering)

    expect(answers.filter(({ response }) => response.status === 200).length).toBeGreaterThanOrEqual(4)
    expect(vendor?.calls).toBeLessThanOrEqual(3)
    expect((await started.account()).held).toBe(0n)
  })

  test('take the place of a leader twice, and go alone after that', async () => {
    const { calls, called } = await waitingVendor()
    started = await start()
    const all = Array.from({ length: 6 }, () => ask(body))
    await called(1)
    await followers(5)
    for (let leader = 1; leader <= 3; leader++) {
      await called(leader)
      calls[leader - 1]!(400)
    }
    await called(6)
    for (const end of calls.slice(3)) end()
    const statuses = (await Promise.all(all)).map(({ response }) => response.status)

    expect(statuses.sort()).toEqual([200, 200, 200, 400, 400, 400])
    expect(vendor?.calls).toBe(6)
  })

  test('have the answer of a leader who has left', async () => {
    const { calls, called } = await waitingVendor()
    started = await start({ disconnect: 'cancel', drainMs: 60_000 })
    const leader = rawPost(started.url, CHAT, body)
    await called(1)
    const waiting = ask(body)
    await followers(1)
    leader.leave()
    // The leader's socket is closed for both sides before the vendor answers.
    await leader.closed
    const left = started.nextEnded()
    calls[0]!()
    const answer = await waiting

    expect([answer.cache, answer.response.status, vendor?.calls]).toEqual(['hit', 200, 1])
    expect((await left).costNanoDollars).toBeGreaterThan(0n)
  })

  test('wait no longer than their own time, and leave when their callers do', async () => {
    const { calls, called } = await waitingVendor()
    const clock = fakeClock()
    started = await start({ clock, timeouts: { totalMs: 30_000, firstByteMs: 30_000 }, limits: { concurrency: 3 } })
    const leader = ask(body)
    await called(1)
    const leaver = rawPost(started.url, CHAT, body)
    await followers(1)
    leaver.leave()
    await expect.poll(() => started.events.some(({ type }) => type === 'request-refused')).toBe(true)
    clock.advance(20_000)
    const waiting = ask(body)
    await followers(2)
    calls[0]!()

    expect((await leader).response.status).toBe(200)
    expect((await waiting).cache).toBe('hit')
    expect(started.events).toContainEqual(
      expect.objectContaining({ type: 'request-refused', code: 'client_closed_request' }),
    )
  })

  test('time out by themselves when the leader hangs', async () => {
    const { called } = await waitingVendor()
    const clock = fakeClock()
    started = await start({ clock, timeouts: { totalMs: 30_000, firstByteMs: 30_000 } })
    const all = [ask(body)]
    await called(1)
    all.push(ask(body))
    await followers(1)
    clock.advance(30_000)

    expect((await Promise.all(all)).map(({ response }) => response.status)).toEqual([504, 504])
    expect((await started.account()).held).toBe(0n)
  })
})

describe('an answer that is no longer fresh', () => {
  const body = chatBody('chat-relayed', 'hello', SURE)

  test('is replaced by a new one', async () => {
    const clock = fakeClock()
    started = await start({ clock, cache: { ttlMs: 60_000 } })
    await ask(body)
    clock.advance(120_000)

    expect((await ask(body)).cache).toBe('miss')
    expect((await ask(body)).cache).toBe('hit')
  })
})
