import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { Credential } from '../../src/core/credential.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import type { GatewayOptions } from '../../src/gateway/gateway-options.ts'
import { fakeClock } from '../../src/testing/index.ts'
import type { Transport, TransportHandler } from '../../src/transport/transport.ts'
import { azureOpenai } from '../../src/vendors/azure-openai/azure-openai.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../src/vendors/presets/presets.ts'
import { rawPost } from '../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway, TEST_MODELS } from '../support/start-gateway.ts'
import { type AnswerCall, type AnsweringVendor, answeringVendor, eventStream, json } from './answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const CREDIT = 100_000_000_000n

let started: StartedGateway
let vendor: AnsweringVendor | undefined

afterEach(async () => {
  await started.close()
  await vendor?.close()
  vendor = undefined
})

async function startBefore(answer: AnswerCall, options: (origin: string) => Partial<GatewayOptions>): Promise<void> {
  vendor = await answeringVendor(answer)
  started = await startGateway(options(vendor.origin))
}

function eventsOf<Type extends GatewayEvent['type']>(type: Type): Extract<GatewayEvent, { type: Type }>[] {
  return started.events.filter((event): event is Extract<GatewayEvent, { type: Type }> => event.type === type)
}

describe('an answer without a report of usage', () => {
  const text = 'The quiet harbour wakes before the city does, and its cranes begin to move. '.repeat(100)

  const answerWithout: AnswerCall = (response, { stream }) => {
    const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
    if (stream !== true) {
      const message = { role: 'assistant', content: text, refusal: null }
      return json(response, { ...answer, choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }] })
    }
    eventStream(response)
    for (const [delta, finish] of [
      [{ role: 'assistant', content: text }, null],
      [{}, 'stop'],
    ] as const)
      response.write(
        `data: ${JSON.stringify({ ...answer, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      )
    response.end('data: [DONE]\n\n')
  }

  // Before: 2,000 tokens as a whole (the bound of the hold, by the bytes of its JSON), 2 in a stream (its chunks).
  test.each(['chat-relayed', 'messages'])(
    'costs the same as a whole and in a stream, and is told (%s: 2,000 and 2 tokens before, now 1,900 each)',
    async (shape) => {
      await startBefore(answerWithout, (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })] }))
      const used: (number | undefined)[] = []
      for (const stream of [false, true]) {
        const body = chatBody('chat-relayed', 'Tell me of the harbour.', { max_tokens: 2000, stream })
        const response = await started.post(shape === 'messages' ? '/v1/messages' : CHAT, body)
        await response.text()
        used.push((await started.ended(response)).usage?.outputTokens)
      }

      expect(used).toEqual([text.length / 4, text.length / 4])
      expect(eventsOf('usage-missing')).toEqual(
        [1, 2].map(() => ({
          type: 'usage-missing',
          requestId: expect.stringMatching(/./),
          vendor: 'openai',
          model: 'chat-relayed',
          usage: { inputTokens: expect.any(Number), outputTokens: 1_900 },
        })),
      )
    },
  )
})

describe('a call that its vendor refuses and bills', () => {
  const made = 'x'.repeat(4_000)
  const REFUSALS = [
    ['azure-openai', { code: 'content_filter', message: 'The response was filtered' }, 0],
    ['groq', { code: 'tool_use_failed', message: 'Failed to call a function.', failed_generation: made }, 1_000],
  ] as const

  const startAt = (id: (typeof REFUSALS)[number][0], error: object, options: Partial<GatewayOptions> = {}) =>
    startBefore(
      (response) => json(response, { error: { ...error, type: 'invalid_request_error' } }, 400),
      (origin) => ({
        vendors: [
          id === 'groq'
            ? openaiCompatible(presets.groq, { apiKey: 'key', baseURL: origin })
            : azureOpenai({ apiKey: 'key', endpoint: origin }),
        ],
        models: [
          { id: 'chat-relayed', kind: 'chat', vendor: id, upstream: 'o4-mini', limits: { maxOutputTokens: 2000 } },
        ],
        ...options,
      }),
    )

  test.each(REFUSALS)('is free by default, and told (%s)', async (id, error, outputTokens) => {
    await startAt(id, error)
    for (const stream of [false, true]) {
      const response = await started.post(CHAT, chatBody('chat-relayed', 'Hello.', { stream }))

      expect(response.status).toBe(400)
      expect(await response.text()).toContain(error.code)
      expect((await started.ended(response)).costNanoDollars).toBe(0n)
    }

    const told = { type: 'unbilled-usage', vendor: id, model: 'chat-relayed', isEstimated: true }
    expect(vendor?.calls).toBe(2)
    expect((await started.account()).held).toBe(0n)
    expect(eventsOf('unbilled-usage')).toMatchObject(
      [1, 2].map(() => ({ ...told, usage: { inputTokens: expect.any(Number), outputTokens } })),
    )
  })

  test('costs no pictures, which were not made', async () => {
    await startBefore(
      (response) => json(response, { error: { code: 'content_filter', message: 'The response was filtered' } }, 400),
      (origin) => ({
        vendors: [azureOpenai({ apiKey: 'key', endpoint: origin })],
        models: [{ id: 'gp-image-2', kind: 'image', vendor: 'azure-openai', protocol: 'generations' }],
        chargeBrokenAnswers: true,
      }),
    )
    const response = await started.post('/v1/images/generations', { model: 'gp-image-2', prompt: 'A harbour', n: 3 })
    await response.text()

    expect((await started.ended(response)).costNanoDollars).toBe(0n)
    expect(vendor?.calls).toBe(1)
    expect(eventsOf('unbilled-usage')).toEqual([])
  })

  test.each(REFUSALS)(
    'is charged where the host charges for what vendors may bill (%s)',
    async (id, error, outputTokens) => {
      await startAt(id, error, { chargeBrokenAnswers: true })
      const response = await started.post(CHAT, chatBody('chat-relayed', 'Hello.'))
      await response.text()
      const { costNanoDollars: cost, usage } = await started.ended(response)

      expect(usage).toMatchObject({ outputTokens })
      expect(cost).toBeGreaterThan(0n)
      expect((await started.account()).balance).toBe(CREDIT - cost)
      expect(eventsOf('unbilled-usage')).toEqual([])
    },
  )
})

test.each(['cut', 'whole'])('sound of a chat without a report of usage is charged by its length (%s)', async (end) => {
  const second = Buffer.alloc(48_000).toString('base64')
  const answer = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const deltas = [
    { role: 'assistant', content: null },
    ...Array.from({ length: 3 }, () => ({ audio: { id: 'audio_1', data: second } })),
    { audio: { transcript: 'Good day to you all.' } },
  ]
  const speak: AnswerCall = (response) => {
    eventStream(response)
    for (const delta of deltas)
      response.write(`data: ${JSON.stringify({ ...answer, choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`)
    response.end(end === 'cut' ? undefined : 'data: [DONE]\n\n')
  }
  await startBefore(speak, (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })], billing: 'off' }))
  const sound = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'pcm16' }, stream: true }
  const response = await started.post(CHAT, chatBody('chat-relayed', 'Greet us.', { ...sound, max_tokens: 2000 }))
  await response.text().catch(() => undefined)

  // 20 tokens for each of three seconds, and the transcript's 20 bytes.
  expect((await started.ended(response)).usage?.outputTokens).toBe(3 * 20 + 5)
})

describe('the usage that a caller reads is the usage that is charged', () => {
  const faults = ['no-usage', 'usage=-1', "usage='12'", 'usage=5']

  test.each(
    faults.flatMap((fault) =>
      ['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-relayed'].map((model) => [model, fault] as const),
    ),
  )('in a whole chat of %s (%s)', async (model, fault) => {
    started = await startGateway()
    const response = await started.post(CHAT, chatBody(model, `[[fault:${fault}]] hello`, { max_tokens: 50 }))
    const { usage } = (await response.json()) as { usage: Record<string, number> }
    const charged = (await started.ended(response)).usage

    expect(usage).toMatchObject({ prompt_tokens: charged?.inputTokens, completion_tokens: charged?.outputTokens })
    expect(usage['prompt_tokens']).toBeGreaterThan(0)
  })

  test.each(faults.flatMap((fault) => ['cl-sonnet-4-6', 'gmn-2.5-flash'].map((model) => [model, fault] as const)))(
    'in a streamed chat of %s (%s)',
    async (model, fault) => {
      started = await startGateway()
      const fields = { max_tokens: 50, stream: true, stream_options: { include_usage: true } }
      const response = await started.post(CHAT, chatBody(model, `[[fault:${fault}]] hello`, fields))
      const usage = JSON.parse(/"usage":(\{.*?\})\}\n\ndata: \[DONE\]/s.exec(await response.text())?.[1] ?? '{}')
      const charged = (await started.ended(response)).usage

      expect(usage).toMatchObject({ prompt_tokens: charged?.inputTokens, completion_tokens: charged?.outputTokens })
    },
  )

  test.each(faults)('in a message that was translated (%s)', async (fault) => {
    started = await startGateway()
    const response = await started.post(
      '/v1/messages',
      chatBody('chat-relayed', `[[fault:${fault}]] hello`, { max_tokens: 50 }),
    )
    const { usage } = (await response.json()) as { usage: Record<string, number> }
    const charged = (await started.ended(response)).usage

    expect((usage['input_tokens'] ?? 0) + (usage['cache_read_input_tokens'] ?? 0)).toBe(charged?.inputTokens)
    expect(usage['output_tokens']).toBe(charged?.outputTokens)
  })

  test.each(['gmn-embedding-001', 'embedding-relayed', 'text-embedding-v4'])(
    'in embeddings of %s without a report (5 tokens read and 17 paid before)',
    async (model) => {
      started = await startGateway()
      const response = await started.post('/v1/embeddings', { model, input: '[[fault:no-usage]] hello' })
      const { usage } = (await response.json()) as { usage: Record<string, number> }
      const charged = (await started.ended(response)).usage

      expect(usage).toEqual({ prompt_tokens: charged?.inputTokens, total_tokens: charged?.inputTokens })
      expect(eventsOf('usage-missing')).toHaveLength(1)
    },
  )
})

describe('a batch of embeddings of which one part fails', () => {
  const inputs = (bad: number): string[] =>
    Array.from({ length: 1_000 }, (_, index) => (index === bad ? 'bad' : 'good'))
  const answer: AnswerCall = (response, { input }) => {
    const texts = input as string[]
    if (texts.includes('bad')) {
      // The last to be answered, so that all parts before it are finished.
      return void setTimeout(
        () => json(response, { error: { message: 'bad input', type: 'invalid_request_error' } }, 400),
        100,
      )
    }
    const data = texts.map((_, index) => ({ object: 'embedding', index, embedding: [1] }))
    json(response, { object: 'list', model: 'm', data, usage: { prompt_tokens: 20, total_tokens: 20 } })
  }
  const optionsWith =
    (options: Partial<GatewayOptions> = {}) =>
    (baseURL: string): Partial<GatewayOptions> => ({
      vendors: [dashscope({ apiKey: 'key', baseURL })],
      ...options,
    })
  const body = (bad: number): object => ({ model: 'text-embedding-v4', input: inputs(bad) })
  const toldUsage = (): unknown[] => eventsOf('unbilled-usage').map(({ usage, isEstimated }) => [usage, isEstimated])
  /** Of the estimated prompt: a token for every three bytes. */
  const shareOf = (asked: object, share: number): number =>
    Math.ceil(Math.ceil(Buffer.byteLength(JSON.stringify(asked)) / 3) * share)

  test('is charged nothing, and what the vendor billed is told (nothing before, now 99 calls of 20 tokens)', async () => {
    await startBefore(answer, optionsWith())
    const response = await started.post('/v1/embeddings', body(999))

    expect(response.status).toBe(400)
    expect(vendor?.calls).toBe(100)
    expect(eventsOf('unbilled-usage')).toEqual([
      {
        type: 'unbilled-usage',
        requestId: response.headers.get('x-request-id'),
        accountId: 'acct_test',
        keyId: expect.any(String),
        vendor: 'dashscope',
        model: 'text-embedding-v4',
        usage: { inputTokens: 1_980 },
        isEstimated: false,
      },
    ])
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('counts against the token limit with what was billed (0 before, now 1,980 of 5,000)', async () => {
    await startBefore(answer, optionsWith({ limits: { tokensPerMinute: 5_000 } }))
    await started.post('/v1/embeddings', body(999))
    const next = await started.post('/v1/embeddings', { model: 'text-embedding-v4', input: ['good'] })

    const remaining = Number(next.headers.get('x-ratelimit-remaining-tokens'))
    expect(next.status).toBe(200)
    expect(remaining).toBeGreaterThan(2_800)
    expect(remaining).toBeLessThan(3_200)
  })

  test('has no further part sent after the failure, and those that were stopped are told', async () => {
    let fail = (): void => undefined
    await startBefore((response, { input }) => {
      if ((input as string[]).includes('bad')) fail = () => json(response, { error: { message: 'bad input' } }, 400)
      if (vendor?.calls === 8) fail()
    }, optionsWith())
    const asked = body(0)
    const response = await started.post('/v1/embeddings', asked)

    expect(response.status).toBe(400)
    expect(vendor?.calls).toBe(8)
    expect(toldUsage()).toEqual([[{ inputTokens: shareOf(asked, 7 / 100), outputTokens: 0 }, true]])
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  // The first part is answered, so that a ninth one is sent; the others are never answered.
  const answerFirst =
    (onNinth: (response: ServerResponse) => void): AnswerCall =>
    (response, { input }) => {
      const data = (input as string[]).map((_, index) => ({ object: 'embedding', index, embedding: [1] }))
      const usage = { prompt_tokens: 20, total_tokens: 20 }
      if (vendor?.calls === 1) json(response, { object: 'list', model: 'm', data, usage })
      if (vendor?.calls === 9) onNinth(response)
    }

  test('has parts that were answered and parts that were stopped told, each by an event', async () => {
    const onNinth = (response: ServerResponse): void => json(response, { error: { message: 'bad input' } }, 400)
    await startBefore(answerFirst(onNinth), optionsWith())
    const asked = body(999)
    await started.post('/v1/embeddings', asked)

    expect(toldUsage()).toEqual([
      [{ inputTokens: shareOf(asked, 7 / 100), outputTokens: 0 }, true],
      [{ inputTokens: 20 }, false],
    ])
  })

  test('has the same told when the whole time is over', async () => {
    const clock = fakeClock()
    await startBefore(
      answerFirst(() => clock.advance(600_000)),
      optionsWith({ clock, chargePartialBatches: true }),
    )
    const asked = body(999)
    const response = await started.post('/v1/embeddings', asked)

    expect(response.status).toBe(504)
    expect(toldUsage()).toEqual([[{ inputTokens: shareOf(asked, 8 / 100), outputTokens: 0 }, true]])
    expect((await started.ended(response)).usage).toEqual({ inputTokens: 20 })
  })

  test('costs the estimate of its prompt when its caller leaves, whatever was answered (20 tokens before)', async () => {
    let leave = (): void => undefined
    await startBefore(
      answerFirst(() => leave()),
      optionsWith(),
    )
    const asked = body(999)
    const ending = started.nextEnded()
    const caller = rawPost(started.url, '/v1/embeddings', asked)
    leave = () => void caller.leave()

    expect(await ending).toMatchObject({ ending: 'abandoned', usage: { inputTokens: shareOf(asked, 1) } })
    expect(eventsOf('unbilled-usage')).toEqual([])
  })

  test('costs the parts that were answered when its caller leaves while the others wait for a credential', async () => {
    const clock = fakeClock()
    const waiting: TransportHandler[] = []
    const transport: Transport = {
      send(_request, handler) {
        waiting.push(handler)
        return { abort: () => undefined, pause: () => undefined, resume: () => undefined }
      },
      close: async () => undefined,
    }
    const tokens = [{ token: 'first', expiresAtMs: clock.now() + 60_000 }]
    const apiKey = (): Credential | Promise<never> => tokens.pop() ?? new Promise(() => undefined)
    started = await startGateway({ vendors: [dashscope({ apiKey })], clock, transport })
    const ending = started.nextEnded()
    const caller = rawPost(started.url, '/v1/embeddings', body(999))
    await expect.poll(() => waiting.length).toBe(8)
    clock.advance(60_000)
    const data = Array.from({ length: 10 }, (_, index) => ({ object: 'embedding', index, embedding: [1] }))
    const answered = { object: 'list', model: 'm', data, usage: { prompt_tokens: 20, total_tokens: 20 } }
    for (const handler of waiting) {
      handler.onHead(200, { 'content-type': 'application/json' })
      handler.onData(Buffer.from(JSON.stringify(answered)))
      handler.onEnd()
    }
    caller.leave()

    expect(await ending).toMatchObject({ ending: 'abandoned', usage: { inputTokens: 160 } })
    expect(eventsOf('unbilled-usage')).toEqual([])
  })

  test('is charged for the finished parts where the host has it so ($0 before, now $0.0000396)', async () => {
    await startBefore(answer, optionsWith({ chargePartialBatches: true }))
    const response = await started.post('/v1/embeddings', body(999))
    await response.text()
    const ended = await started.ended(response)

    expect(ended).toMatchObject({ ending: 'failed', usage: { inputTokens: 1_980 }, costNanoDollars: 39_600n })
    expect(eventsOf('unbilled-usage')).toHaveLength(0)
    expect(await started.account()).toEqual({ balance: CREDIT - 39_600n, held: 0n })
  })
})

test('a failed attempt that the vendor billed is told, and the fallback alone is charged', async () => {
  let calls = 0
  const answer: AnswerCall = (response) => {
    calls += 1
    const answered = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const usage = { prompt_tokens: 700, completion_tokens: 0, total_tokens: 700 }
    eventStream(response)
    if (calls === 1) {
      response.write(`data: ${JSON.stringify({ ...answered, choices: [], usage })}\n\n`)
      return void response.end(
        `data: ${JSON.stringify({ error: { message: 'overloaded', type: 'server_error' } })}\n\n`,
      )
    }
    const choices = [{ index: 0, delta: { role: 'assistant', content: 'hi' }, finish_reason: 'stop', logprobs: null }]
    response.end(
      `data: ${JSON.stringify({ ...answered, choices })}\n\ndata: ${JSON.stringify({ ...answered, choices: [], usage: { ...usage, prompt_tokens: 5 } })}\n\ndata: [DONE]\n\n`,
    )
  }
  await startBefore(answer, (baseURL) => ({
    vendors: ['one', 'two'].map((id) => openaiCompatible({ id, baseURL, apiKey: id, models: [] })),
    models: TEST_MODELS.map((row) =>
      row.id === 'chat-relayed' ? { ...row, vendor: 'one', routes: [{ vendor: 'one' }, { vendor: 'two' }] } : row,
    ),
  }))
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello', { stream: true }))
  await response.text()

  expect((await started.ended(response)).usage).toMatchObject({ inputTokens: 5 })
  expect(eventsOf('unbilled-usage')).toEqual([
    expect.objectContaining({ usage: { inputTokens: 700, outputTokens: 0 } }),
  ])
})

describe('a slow whole answer', () => {
  const models = [
    { ...TEST_MODELS[0], vendor: 'one', routes: [{ vendor: 'one' }, { vendor: 'two' }], fallbacks: ['spare'] },
    { ...TEST_MODELS[0], id: 'spare', vendor: 'two' },
  ]
  const options =
    (more: Partial<GatewayOptions>) =>
    (baseURL: string): Partial<GatewayOptions> => ({
      vendors: ['one', 'two'].map((id) => openaiCompatible({ id, baseURL, apiKey: id, models: [] })),
      models,
      billing: 'off',
      ...more,
    })

  test('is asked for once, and given up when the whole time is over (3 vendor calls before, now 1)', async () => {
    await startBefore(() => undefined, options({ timeouts: { firstByteMs: 60, totalMs: 400 } }))
    const sentAtMs = Date.now()
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(504)
    expect(Date.now() - sentAtMs).toBeGreaterThanOrEqual(390)
    expect(vendor?.calls).toBe(1)
    expect(eventsOf('attempt-failed')).toEqual([expect.objectContaining({ reason: 'sent timeout' })])
  })

  test('that comes after the first-byte time-out is answered, once', async () => {
    const completion = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }]
    await startBefore(
      (response) => void setTimeout(() => json(response, { ...completion, choices }), 1_200),
      options({ timeouts: { firstByteMs: 60 } }),
    )
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(200)
    expect(vendor?.calls).toBe(1)
  })

  test('is asked for elsewhere where the host has it so', async () => {
    const timeouts = { firstByteMs: 60, totalMs: 5_000 }
    await startBefore(() => undefined, options({ timeouts, routing: { retryAfterTimeout: true } }))
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(504)
    expect(vendor?.calls).toBeGreaterThan(1)
  })

  test('is told from a stream, which another vendor may still answer', async () => {
    await startBefore(() => undefined, options({ timeouts: { firstByteMs: 60, totalMs: 5_000 } }))
    await started.post(CHAT, chatBody('chat-relayed', 'hello', { stream: true }))

    expect(vendor?.calls).toBeGreaterThan(1)
  })
})

describe('pictures', () => {
  const completed = `event: image_generation.completed\ndata: ${JSON.stringify({
    type: 'image_generation.completed',
    b64_json: 'aGk=',
    usage: { input_tokens: 10, output_tokens: 4_160, input_tokens_details: { image_tokens: 0 } },
  })}\n\n`
  const request = { model: 'gp-image-2', prompt: 'A harbour', n: 3, quality: 'high', size: '1024x1024', stream: true }

  test('of a stream with n = 3 that is left in the middle are charged as made (4,160 tokens before, now 12,480)', async () => {
    await startBefore(
      (response) => {
        eventStream(response)
        response.write(completed)
      },
      (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })] }),
    )
    const caller = rawPost(started.url, '/v1/images/generations', request)
    await caller.received('b64_json')
    const ending = started.nextEnded()
    caller.leave()

    expect(await ending).toMatchObject({ ending: 'abandoned', usage: { images: 3, outputImageTokens: 3 * 4_160 } })
  })

  test('that the vendor itself does not finish are charged as far as they came', async () => {
    await startBefore(
      (response) => {
        eventStream(response)
        response.write(completed, () => response.socket?.resetAndDestroy())
      },
      (baseURL) => ({ vendors: [openai({ apiKey: 'key', baseURL })] }),
    )
    const response = await started.post('/v1/images/generations', request)
    await response.text()

    expect((await started.ended(response)).usage).toMatchObject({ images: 1, outputImageTokens: 4_160 })
  })

  test('that are blocked after text was streamed leave the text charged (8,200 tokens free before)', async () => {
    const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
    const usageMetadata = { promptTokenCount: 12, candidatesTokenCount: 8_200, totalTokenCount: 8_212 }
    await startBefore(
      (response) => {
        eventStream(response)
        response.write(event({ candidates: [{ content: { role: 'model', parts: [{ text: 'A long story. ' }] } }] }))
        response.end(event({ candidates: [{ content: { parts: [] }, finishReason: 'IMAGE_SAFETY' }], usageMetadata }))
      },
      (baseURL) => ({ vendors: [gemini({ apiKey: 'key', baseURL, images: 'generateContent' })] }),
    )
    const body = { model: 'gmn-2.5-flash-image', input: 'A harbour, and tell me of it.', stream: true }
    const response = await started.post('/v1/images/generations', body)
    await response.text()
    const ended = await started.ended(response)

    expect(ended.usage).toMatchObject({ inputTokens: 12, outputTokens: 8_200, images: 0 })
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
  })
})
