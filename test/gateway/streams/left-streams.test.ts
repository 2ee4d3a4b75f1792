import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../../src/catalog/model.ts'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type RawCaller, rawPost } from '../../support/raw-caller.ts'
import { type RequestEnded, type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream } from './answering-vendor.ts'

let started: StartedGateway
let vendor: AnsweringVendor

afterEach(async () => {
  await started.close()
  await vendor.close()
})

/** English prose, and how many tokens a vendor of today counts in it: 4.5 bytes each. */
const SENTENCE =
  'The quiet harbour wakes before the city does, and its cranes begin to move while the streets are dark. '
const PROSE = SENTENCE.repeat(60)
const TOKENS = Math.round(PROSE.length / 4.5)
const TOKEN_BYTES = 4.5

const CHAT_CALLER = {
  path: '/v1/chat/completions',
  body: { max_tokens: 2_000, messages: [{ role: 'user', content: 'Tell me.' }] },
} as const
const RESPONSES_CALLER = { path: '/v1/responses', body: { max_output_tokens: 2_000, input: 'Tell me.' } } as const

type Dialect = 'chat' | 'messages'
const MODEL: Readonly<Record<Dialect, string>> = { chat: 'chat-relayed', messages: 'cl-sonnet-4-6' }
const PATH: Readonly<Record<Dialect, string>> = { chat: '/v1/chat/completions', messages: '/v1/messages' }

function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish, logprobs: null }]
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`
}

function event(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

/** The parts of an answer in each dialect. */
const WRITE = {
  chat: {
    begin: chunk({ role: 'assistant', content: '' }),
    text: (text: string) => chunk({ content: text }),
    end: chunk({}, 'stop'),
    usage: `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [], usage: { prompt_tokens: 20, completion_tokens: TOKENS, total_tokens: 20 + TOKENS } })}\n\ndata: [DONE]\n\n`,
  },
  messages: {
    begin:
      event('message_start', {
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          usage: { input_tokens: 20, output_tokens: 1 },
        },
      }) + event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    text: (text: string) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    end: event('content_block_stop', { index: 0 }),
    usage:
      event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: TOKENS } }) +
      event('message_stop', {}),
  },
} as const

function pieces(text: string, tokensPerChunk: number): string[] {
  const size = Math.max(1, Math.round(tokensPerChunk * TOKEN_BYTES))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size),
  )
}

async function start(
  answer: (response: ServerResponse) => void,
  options: Partial<GatewayOptions> = {},
  model: Partial<ModelDefinition> = {},
): Promise<void> {
  vendor = await answeringVendor((response) => {
    eventStream(response)
    answer(response)
  })
  const connection = { apiKey: 'key', baseURL: vendor.origin }
  started = await startGateway({
    // It answers in the chat dialect, whatever the model.
    vendors: [openai({ ...connection, responses: false }), anthropic(connection)],
    models: TEST_MODELS.map((row) => (row.id === 'chat-relayed' ? { ...row, ...model } : row)),
    ...options,
  })
}

function call(dialect: Dialect): RawCaller {
  return rawPost(started.url, PATH[dialect], {
    model: MODEL[dialect],
    max_tokens: 2000,
    stream: true,
    messages: [{ role: 'user', content: 'Tell me of the harbour.' }],
  })
}

async function leave(caller: RawCaller): Promise<RequestEnded> {
  const ending = started.nextEnded()
  caller.leave()
  return ending
}

describe.each<Dialect>(['chat', 'messages'])('a stream of %s that is left', (dialect) => {
  const write = WRITE[dialect]

  // Chunks were counted: 200 tokens in each were charged as one, 0.5 % of what the vendor bills.
  test.each([1, 8, 200])(
    'in the middle is charged within 25 % of what the vendor has counted, with %i tokens in a chunk (at 200: 3 before, now 770)',
    async (tokensPerChunk) => {
      const half = PROSE.slice(0, PROSE.length / 2)
      await start((response) => {
        response.write(write.begin)
        for (const text of pieces(half, tokensPerChunk)) response.write(write.text(text))
        response.write(write.text(' -END-'))
      })
      const caller = call(dialect)
      await caller.received('-END-')
      const ended = await leave(caller)

      const counted = half.length / TOKEN_BYTES
      expect(ended.ending).toBe('abandoned')
      expect(ended.usage?.outputTokens).toBeGreaterThan(0.75 * counted)
      expect(ended.usage?.outputTokens).toBeLessThan(1.25 * counted)
      await expect.poll(() => vendor.aborted).toBe(1)
    },
  )

  test('reads on after a disconnect between text and usage until the usage arrives (one chunk: 1 token before, now all)', async () => {
    let report = (): void => undefined
    await start((response) => {
      response.write(write.begin + write.text(PROSE) + write.end)
      report = () => void response.end(write.usage)
    })
    const caller = call(dialect)
    await caller.received(dialect === 'chat' ? '"finish_reason":"stop"' : 'content_block_stop')
    const ending = started.nextEnded()
    caller.leave()
    setTimeout(() => report(), 50)
    const ended = await ending

    expect(ended).toMatchObject({ ending: 'completed', usage: { outputTokens: TOKENS } })
    expect(vendor.aborted).toBe(0)
  })
})

describe('a stream that is left and whose chunks name the tier that the vendor used', () => {
  const tiered = (model: string): PriceFile['prices'] =>
    (['input_token', 'output_token'] as const).flatMap((meter) => [
      { model, meter, amount: '4', per: 1_000_000 },
      { model, meter, amount: '8', per: 1_000_000, when: { service_tier: 'priority' } },
    ])
  const prices: PriceFile = { currency: 'USD', prices: tiered('chat-relayed') }

  test.each([
    ['priority', 'default', 4_000n, CHAT_CALLER],
    ['priority', 'priority', 8_000n, CHAT_CALLER],
    [undefined, 'priority', 8_000n, CHAT_CALLER],
    ['priority', 'default', 4_000n, RESPONSES_CALLER],
  ] as const)('is charged at it (requested: %s, used: %s)', async (requested, used, price, { path, body }) => {
    const named = (text: string): string => text.replace('"model":"m"', `"model":"m","service_tier":"${used}"`)
    await start(
      (response) => {
        response.write(named(WRITE.chat.begin))
        response.write(named(WRITE.chat.text(SENTENCE)))
        response.write(named(WRITE.chat.text(' -END-')))
      },
      { prices },
    )
    const tier = requested === undefined ? {} : { service_tier: requested }
    const caller = rawPost(started.url, path, { model: 'chat-relayed', stream: true, ...body, ...tier })
    await caller.received('-END-')
    const { usage, costNanoDollars } = await leave(caller)

    const { inputTokens = 0, outputTokens = 0 } = usage ?? {}
    expect(outputTokens).toBeGreaterThan(0)
    expect(costNanoDollars).toBe(BigInt(inputTokens + outputTokens) * price)
  })
})

describe('a usage report that is awaited after the caller disconnected', () => {
  const ended = chunk({ role: 'assistant', content: PROSE }) + WRITE.chat.end

  test('is given up after two seconds', async () => {
    const clock = fakeClock()
    await start((response) => void response.write(ended), { clock })
    const caller = call('chat')
    await caller.received('"finish_reason":"stop"')
    const ending = started.nextEnded()
    caller.leave()
    await expect.poll(() => started.gateway.routes().vendors[0]?.inFlight).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    clock.advance(1_999)
    const abortedBefore = vendor.aborted
    clock.advance(1)

    expect(await ending).toMatchObject({ ending: 'abandoned', usage: { outputTokens: Math.ceil(PROSE.length / 4) } })
    expect(abortedBefore).toBe(0)
  })

  test('is given up after 64 kB', async () => {
    let flood = (): void => undefined
    await start((response) => {
      response.write(ended)
      flood = () => void response.write(`: ${'x'.repeat(70_000)}\n\n`)
    })
    const caller = call('chat')
    await caller.received('"finish_reason":"stop"')
    const ending = started.nextEnded()
    caller.leave()
    setTimeout(() => flood(), 50)

    expect((await ending).ending).toBe('abandoned')
    await expect.poll(() => vendor.aborted).toBe(1)
  })
})

describe('a model that reasons unseen', () => {
  const answer = WRITE.chat.begin + WRITE.chat.text('The harbour')

  test('is read on by default, and its reasoning is charged as reported (3 tokens before, now 1,373)', async () => {
    let report = (): void => undefined
    await start(
      (response) => {
        response.write(answer)
        report = () => void response.end(WRITE.chat.end + WRITE.chat.usage)
      },
      {},
      { hasHiddenReasoning: true },
    )
    const caller = call('chat')
    await caller.received('harbour')
    const ending = started.nextEnded()
    caller.leave()
    setTimeout(() => report(), 50)

    expect(await ending).toMatchObject({ ending: 'completed', usage: { outputTokens: TOKENS } })
    expect(TOKENS).toBe(1_373)
  })

  test.each<[string, Partial<GatewayOptions>]>([
    ['that is not done within drainMs', { drainMs: 100 }],
    ['whose calls the host has cancelled', { disconnect: 'cancel' }],
  ])('%s is charged for what it can have written in that time', async (_which, options) => {
    await start((response) => void response.write(answer), options, { hasHiddenReasoning: true })
    const caller = call('chat')
    await caller.received('harbour')
    const ended = await leave(caller)

    expect(ended.ending).toBe('abandoned')
    // At 100 tokens a second it is at least the visible text, and less than the hold.
    expect(ended.usage?.outputTokens).toBeGreaterThanOrEqual(3)
    expect(ended.usage?.outputTokens).toBeLessThan(2_000)
    expect(await started.account()).toMatchObject({ held: 0n })
  })

  test.each([
    ['gpt-5.4', {}, false],
    ['gpt-5.4', { reasoning_effort: 'high' }, true],
    ['o3', {}, true],
    ['gpt-5-mini', {}, true],
    ['gpt-5-mini', { reasoning_effort: 'none' }, false],
    ['gpt-4.1', {}, false],
    // Before: the first as if it reasoned, the next two as if they did not.
    ['gpt-5-chat-latest', {}, false],
    ['gpt-35-turbo', {}, false],
    ['gpt-5.2-chat-latest', {}, true],
    ['ft:o4-mini:acme::1', {}, true],
    ['gpt-5.2', {}, false],
    ['gpt-5.2-pro', {}, true],
    ['gpt-5.5', {}, true],
  ])('is known by its id and the request: %s with %o: %s', async (upstream, fields, isUnseen) => {
    await start((response) => void response.write(answer), { drainMs: 60 }, { upstream })
    const body = { model: 'chat-relayed', max_completion_tokens: 500, stream: true, ...fields }
    const caller = rawPost(started.url, PATH.chat, { ...body, messages: [{ role: 'user', content: 'hi' }] })
    await caller.received('harbour')

    const { usage } = await leave(caller)
    if (isUnseen) expect(usage?.outputTokens).toBeGreaterThan(5)
    else expect(usage?.outputTokens).toBe(3)
  })
})

test('a stream whose vendor tells zeros until its end is charged for its prompt when it is left', async () => {
  const candidates = [{ content: { parts: [{ text: 'The harbour wakes -END-' }] }, index: 0 }]
  const usageMetadata = { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 }
  vendor = await answeringVendor((response) => {
    eventStream(response)
    response.write(`data: ${JSON.stringify({ candidates, usageMetadata })}\n\n`)
  })
  const row = { id: 'flash', kind: 'chat' as const, vendor: 'gemini', upstream: 'gemini-2.5-flash' }
  started = await startGateway({
    vendors: [gemini({ apiKey: 'key', baseURL: vendor.origin })],
    models: [{ ...row, limits: { maxOutputTokens: 2000 } }],
    prices: {
      currency: 'USD',
      prices: [
        { model: 'flash', meter: 'input_token', amount: '3.00', per: 1_000_000 },
        { model: 'flash', meter: 'output_token', amount: '15.00', per: 1_000_000 },
      ],
    },
  })
  const caller = rawPost(started.url, PATH.chat, {
    ...{ model: 'flash', stream: true, reasoning_effort: 'none' },
    messages: [{ role: 'user', content: SENTENCE }],
  })
  await caller.received('-END-')
  const ended = await leave(caller)

  expect(ended.ending).toBe('abandoned')
  expect(ended.usage?.inputTokens).toBeGreaterThan(SENTENCE.length / 8)
})

test.each<Dialect>(['chat', 'messages'])(
  'a stream of %s in which the vendor has told zeros so far is charged for its prompt when it is left',
  async (dialect) => {
    const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    await start((response) => {
      const { begin, text } = WRITE[dialect]
      const told =
        dialect === 'chat'
          ? [begin, text('The harbour wakes -END-')].map((one) =>
              one.replace('"choices"', `"usage":${JSON.stringify(zeros)},"choices"`),
            )
          : [begin.replace('"input_tokens":20', '"input_tokens":0'), text('The harbour wakes -END-')]
      for (const event of told) response.write(event)
    })
    const caller = call(dialect)
    await caller.received('-END-')
    const ended = await leave(caller)

    expect(ended.ending).toBe('abandoned')
    expect(ended.usage?.inputTokens).toBeGreaterThan(3)
  },
)
