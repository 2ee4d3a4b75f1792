import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Credential } from '../../../src/core/credential.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import type { Transport, TransportHandler } from '../../../src/transport/transport.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, TEST_MODELS } from '../../support/start-gateway.ts'
import { gatewayBeforeVendor } from '../models/gateway-before-vendor.ts'
import { type AnswerCall, eventStream, json } from '../streams/answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const CREDIT = 100_000_000_000n

const bench = gatewayBeforeVendor()

describe('a call that its vendor refuses and bills', () => {
  const made = 'x'.repeat(4_000)
  const REFUSALS = [
    ['azure-openai', { code: 'content_filter', message: 'The response was filtered' }, 0],
    ['groq', { code: 'tool_use_failed', message: 'Failed to call a function.', failed_generation: made }, 1_000],
  ] as const

  const startAt = (id: (typeof REFUSALS)[number][0], error: object) =>
    bench.start(
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
      }),
    )

  test.each(REFUSALS)('is free and reported (%s)', async (id, error, outputTokens) => {
    await startAt(id, error)
    for (const stream of [false, true]) {
      const response = await bench.started.post(CHAT, chatBody('chat-relayed', 'Hello.', { stream }))

      expect(response.status).toBe(400)
      expect(await response.text()).toContain(error.code)
      expect((await bench.started.ended(response)).costNanoDollars).toBe(0n)
    }

    const told = { type: 'unbilled-usage', vendor: id, model: 'chat-relayed', isEstimated: true }
    expect(bench.vendor?.calls).toBe(2)
    expect((await bench.started.account()).held).toBe(0n)
    expect(bench.eventsOf('unbilled-usage')).toMatchObject(
      [1, 2].map(() => ({ ...told, usage: { inputTokens: expect.any(Number), outputTokens } })),
    )
  })

  test('costs no images, because none were generated', async () => {
    await bench.start(
      (response) => json(response, { error: { code: 'content_filter', message: 'The response was filtered' } }, 400),
      (origin) => ({
        vendors: [azureOpenai({ apiKey: 'key', endpoint: origin })],
        models: [{ id: 'gp-image-2', kind: 'image', vendor: 'azure-openai', protocol: 'generations' }],
      }),
    )
    const response = await bench.started.post('/v1/images/generations', {
      model: 'gp-image-2',
      prompt: 'A harbour',
      n: 3,
    })
    await response.text()

    expect((await bench.started.ended(response)).costNanoDollars).toBe(0n)
    expect(bench.vendor?.calls).toBe(1)
    expect(bench.eventsOf('unbilled-usage')).toEqual([])
  })
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
  const toldUsage = (): unknown[] =>
    bench.eventsOf('unbilled-usage').map(({ usage, isEstimated }) => [usage, isEstimated])
  /** Estimated prompt: one token per three bytes. */
  const shareOf = (asked: object, share: number): number =>
    Math.ceil(Math.ceil(Buffer.byteLength(JSON.stringify(asked)) / 3) * share)

  test("is not charged, and the vendor's bill is reported (nothing before, now 99 calls of 20 tokens)", async () => {
    await bench.start(answer, optionsWith())
    const response = await bench.started.post('/v1/embeddings', body(999))

    expect(response.status).toBe(400)
    expect(bench.vendor?.calls).toBe(100)
    expect(bench.eventsOf('unbilled-usage')).toEqual([
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
    expect(await bench.started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('counts against the token limit with what was billed (0 before, now 1,980 of 5,000)', async () => {
    await bench.start(answer, optionsWith({ limits: { tokensPerMinute: 5_000 } }))
    await bench.started.post('/v1/embeddings', body(999))
    const next = await bench.started.post('/v1/embeddings', { model: 'text-embedding-v4', input: ['good'] })

    const remaining = Number(next.headers.get('x-ratelimit-remaining-tokens'))
    expect(next.status).toBe(200)
    expect(remaining).toBeGreaterThan(2_800)
    expect(remaining).toBeLessThan(3_200)
  })

  test('sends no more parts after the failure, and reports the stopped ones', async () => {
    let fail = (): void => undefined
    await bench.start((response, { input }) => {
      if ((input as string[]).includes('bad')) fail = () => json(response, { error: { message: 'bad input' } }, 400)
      if (bench.vendor?.calls === 8) fail()
    }, optionsWith())
    const asked = body(0)
    const response = await bench.started.post('/v1/embeddings', asked)

    expect(response.status).toBe(400)
    expect(bench.vendor?.calls).toBe(8)
    expect(toldUsage()).toEqual([[{ inputTokens: shareOf(asked, 7 / 100), outputTokens: 0 }, true]])
    expect(await bench.started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  // The first part is answered, so that a ninth one is sent; the others are never answered.
  const answerFirst =
    (onNinth: (response: ServerResponse) => void): AnswerCall =>
    (response, { input }) => {
      const data = (input as string[]).map((_, index) => ({ object: 'embedding', index, embedding: [1] }))
      const usage = { prompt_tokens: 20, total_tokens: 20 }
      if (bench.vendor?.calls === 1) json(response, { object: 'list', model: 'm', data, usage })
      if (bench.vendor?.calls === 9) onNinth(response)
    }

  test('has parts that were answered and parts that were stopped told, each by an event', async () => {
    const onNinth = (response: ServerResponse): void => json(response, { error: { message: 'bad input' } }, 400)
    await bench.start(answerFirst(onNinth), optionsWith())
    const asked = body(999)
    await bench.started.post('/v1/embeddings', asked)

    expect(toldUsage()).toEqual([
      [{ inputTokens: shareOf(asked, 7 / 100), outputTokens: 0 }, true],
      [{ inputTokens: 20 }, false],
    ])
  })

  test('reports the same when the total time has expired', async () => {
    const clock = fakeClock()
    await bench.start(
      answerFirst(() => clock.advance(600_000)),
      optionsWith({ clock }),
    )
    const asked = body(999)
    const response = await bench.started.post('/v1/embeddings', asked)

    expect(response.status).toBe(504)
    expect(toldUsage()).toEqual([
      [{ inputTokens: shareOf(asked, 8 / 100), outputTokens: 0 }, true],
      [{ inputTokens: 20 }, false],
    ])
  })

  test('costs the estimate of its prompt when its caller disconnects, whatever was answered (20 tokens before)', async () => {
    let leave = (): void => undefined
    await bench.start(
      answerFirst(() => leave()),
      optionsWith(),
    )
    const asked = body(999)
    const ending = bench.started.nextEnded()
    const caller = rawPost(bench.started.url, '/v1/embeddings', asked)
    leave = () => void caller.leave()

    expect(await ending).toMatchObject({ ending: 'abandoned', usage: { inputTokens: shareOf(asked, 1) } })
    expect(bench.eventsOf('unbilled-usage')).toEqual([])
  })

  test('costs the answered parts when its caller disconnects while the others wait for a credential', async () => {
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
    await bench.startAlone({ vendors: [dashscope({ apiKey })], clock, transport })
    const ending = bench.started.nextEnded()
    const caller = rawPost(bench.started.url, '/v1/embeddings', body(999))
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
    expect(bench.eventsOf('unbilled-usage')).toEqual([])
  })
})

test('reports a failed attempt that the vendor billed, and charges only the fallback', async () => {
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
  await bench.start(answer, (baseURL) => ({
    vendors: ['one', 'two'].map((id) => openaiCompatible({ id, baseURL, apiKey: id, models: [] })),
    models: TEST_MODELS.map((row) =>
      row.id === 'chat-relayed' ? { ...row, vendor: 'one', routes: [{ vendor: 'one' }, { vendor: 'two' }] } : row,
    ),
  }))
  const response = await bench.started.post(CHAT, chatBody('chat-relayed', 'hello', { stream: true }))
  await response.text()

  expect((await bench.started.ended(response)).usage).toMatchObject({ inputTokens: 5 })
  expect(bench.eventsOf('unbilled-usage')).toEqual([
    expect.objectContaining({ usage: { inputTokens: 700, outputTokens: 0 } }),
  ])
})
