import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { Fault } from '../../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const USAGE = { inputTokens: 11, outputTokens: 7 }
// At the prices of `chat-qwen`.
const COST = 11n * 500n + 7n * 2_000n
const CREDIT = 100_000_000_000n

let started: StartedGateway
afterEach(() => started.close())

/** A gateway whose model `chat-qwen` is one that the vendor has in streams only. */
async function start(options: Partial<GatewayOptions> = {}, upstream = 'qwq-plus'): Promise<void> {
  const models = [{ id: 'chat-qwen', kind: 'chat', vendor: 'dashscope', upstream, limits: { maxOutputTokens: 2000 } }]
  started = await startGateway({ models, ...options } as Partial<GatewayOptions>)
}

function bodiesSent(): Record<string, unknown>[] {
  return started.sandbox.requests.map(({ body }) => body as Record<string, unknown>)
}

describe('a whole answer of a model that only streams', () => {
  test('comes to callers of each endpoint, for the price of the same stream', async () => {
    await start()
    started.sandbox.reply({ text: 'Half past nine.', usage: USAGE, times: Infinity })
    const openai = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
    const anthropic = new Anthropic({ apiKey: TEST_KEY, baseURL: started.url, maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: 'What time is it?' }]

    const chat = await openai.chat.completions.create({ model: 'chat-qwen', messages })
    const message = await anthropic.messages.create({ model: 'chat-qwen', max_tokens: 50, messages })
    const response = await openai.responses.create({ model: 'chat-qwen', input: 'What time is it?' })
    const streamed = await started.post(CHAT, chatBody('chat-qwen', 'What time is it?', { stream: true }))
    await streamed.text()
    await started.ended(streamed)

    expect(chat).toMatchObject({
      object: 'chat.completion',
      model: 'chat-qwen',
      choices: [{ message: { role: 'assistant', content: 'Half past nine.', refusal: null }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    })
    expect(message).toMatchObject({
      content: [{ type: 'text', text: 'Half past nine.' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 11, output_tokens: 7 },
    })
    expect(response).toMatchObject({
      status: 'completed',
      output_text: 'Half past nine.',
      usage: { input_tokens: 11, output_tokens: 7 },
    })
    expect(bodiesSent().map(({ stream, stream_options: options }) => [stream, options])).toEqual(
      Array(4).fill([true, { include_usage: true }]),
    )
    expect(await started.account()).toEqual({ balance: CREDIT - 4n * COST, held: 0n })
  })

  test('has its tool calls, its choices, its logprobs and the reason of its end', async () => {
    await start()
    const tool = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }
    started.sandbox.reply({ toolCalls: [{ name: 'get_weather', arguments: { city: 'Köln' } }], usage: USAGE })
    const called = await (await started.post(CHAT, chatBody('chat-qwen', 'Weather?', { tools: [tool] }))).json()
    const two = await (await started.post(CHAT, chatBody('chat-qwen', 'one two', { n: 2, logprobs: true }))).json()
    const cut = await (await started.post(CHAT, chatBody('chat-qwen', 'one two three', { max_tokens: 2 }))).json()

    expect(called.choices[0]).toMatchObject({
      message: {
        content: null,
        tool_calls: [{ type: 'function', function: { name: 'get_weather', arguments: '{"city":"Köln"}' } }],
      },
      finish_reason: 'tool_calls',
    })
    expect(two.choices.map((choice: { message: { content: string } }) => choice.message.content)).toEqual(
      Array(2).fill('You said: one two'),
    )
    expect(two.choices[1].logprobs.content.length).toBeGreaterThan(1)
    expect(cut.choices[0].finish_reason).toBe('length')
  })

  test('thinks where the caller asks for it, and where it need not is asked for without thinking', async () => {
    await start({}, 'qwen3-32b')
    const thinking = await (await started.post(CHAT, chatBody('chat-qwen', 'Hi', { reasoning_effort: 'high' }))).json()
    const plain = await started.post(CHAT, chatBody('chat-qwen', 'Hi'))
    const json = { reasoning_effort: 'high', response_format: { type: 'json_object' } }
    const object = await started.post(CHAT, chatBody('chat-qwen', 'Give me json', json))

    expect(thinking.choices[0].message).toMatchObject({
      content: 'You said: Hi',
      reasoning_content: expect.any(String),
    })
    expect((await plain.json()).choices[0].message).not.toHaveProperty('reasoning_content')
    expect(object.status).toBe(200)
    expect(object.headers.get('x-signalbox-dropped')).toBe('reasoning_effort')
    expect(bodiesSent().map(({ stream, enable_thinking: thinks }) => [stream, thinks])).toEqual([
      [true, undefined],
      [undefined, false],
      [undefined, false],
    ])
  })

  test('is refused with sound, which only a stream can carry', async () => {
    await start({ billing: 'off' }, 'qwen3-omni-flash')
    const response = await started.post(CHAT, chatBody('chat-qwen', 'Hi', { modalities: ['text', 'audio'] }))

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { param: 'modalities', message: 'modalities: this model speaks in streams only' },
    })
    expect(bodiesSent()).toEqual([])
  })

  test.each<[what: string, fault: Fault, status: number]>([
    ['an error event before it', { kind: 'error-event', events: 0 }, 503],
    ['an error event within it', { kind: 'error-event', events: 5 }, 503],
    ['an end before its end', { kind: 'end-early', events: 5 }, 502],
    ['a reset within it', { kind: 'reset-mid-stream', events: 5 }, 503],
    ['silence within it', { kind: 'hang-body', events: 5 }, 504],
    ['an event that is no JSON', { kind: 'garbage' }, 502],
    ['a refused prompt', { kind: 'blocked' }, 400],
  ])('is free and an error after %s', async (_what, fault, status) => {
    await start({ timeouts: { idleMs: 100 } })
    started.sandbox.fault({ ...fault, times: Infinity })
    const response = await started.post(CHAT, chatBody('chat-qwen', 'one two three four five six'))

    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { message: expect.any(String) } })
    expect((await started.ended(response)).costNanoDollars).toBe(0n)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('estimates a broken answer by its text, not by the events around it', async () => {
    for (const kind of ['end-early', 'reset-mid-stream', 'error-event'] as const) {
      await start()
      started.sandbox.fault({ kind, events: 6, times: Infinity })
      const response = await started.post(
        CHAT,
        chatBody('chat-qwen', 'one two three four five six', { max_tokens: 900 }),
      )
      await response.text()
      const told = started.events.filter((event) => event.type === 'unbilled-usage')

      expect(told, kind).not.toEqual([])
      for (const { usage } of told) expect(usage.outputTokens ?? 0, kind).toBeLessThan(12)
      await started.close()
    }
  })

  test('is charged if the caller disconnects before it is whole', async () => {
    await start()
    started.sandbox.fault({ kind: 'pace', delayMs: 10 })
    const leaving = new AbortController()
    const ended = started.nextEnded()
    const asked = started.post(CHAT, chatBody('chat-qwen', 'one two three four five six'), {}, leaving.signal)
    await started.sandbox.nextRequest()
    leaving.abort()
    await expect(asked).rejects.toThrow()

    expect((await ended).costNanoDollars).toBeGreaterThan(0n)
    expect((await started.account()).held).toBe(0n)
  })

  test('without a report costs what its text is estimated at', async () => {
    await start()
    started.sandbox.fault({ kind: 'no-usage' })
    const response = await started.post(CHAT, chatBody('chat-qwen', 'Hello.'))
    const { usage } = (await response.json()) as { usage: { completion_tokens: number } }
    const ended = await started.ended(response)

    expect(ended.usage?.outputTokens).toBe(usage.completion_tokens)
    expect(usage.completion_tokens).toBeGreaterThan(0)
    expect(usage.completion_tokens).toBeLessThan(12)
  })

  test('goes on to another model when the stream breaks before it is whole', async () => {
    const models = [
      { id: 'chat-qwen', kind: 'chat', vendor: 'dashscope', upstream: 'qwq-plus', fallbacks: ['cl-sonnet-4-6'] },
    ]
    await start({ models } as Partial<GatewayOptions>)
    started.sandbox.fault({ kind: 'end-early', events: 5, vendor: 'dashscope', times: Infinity })
    const response = await started.post(CHAT, chatBody('chat-qwen', 'one two three four five six'))

    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ model: 'cl-sonnet-4-6', choices: [{ finish_reason: 'stop' }] })
  })

  test('is included in a batch of the vendor, which returns it whole', async () => {
    const price = (meter: 'input_token' | 'output_token', amount: string) =>
      ({ model: 'chat-qwen', meter, amount, per: 1_000_000, when: { batch: 'true' } }) as const
    await start({
      batches: {},
      taskPollIntervalMs: 20,
      prices: { currency: 'USD', prices: [price('input_token', '0.50'), price('output_token', '2.00')] },
    })
    started.sandbox.reply({ text: 'Half past nine.', usage: USAGE, times: Infinity })
    const openai = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
    const line = { custom_id: '1', method: 'POST', url: CHAT, body: chatBody('chat-qwen', 'a "stream":true b') }
    const file = await openai.files.create({
      file: await toFile(Buffer.from(JSON.stringify(line)), 'requests.jsonl'),
      purpose: 'batch',
    })
    const { id } = await openai.batches.create({ input_file_id: file.id, endpoint: CHAT, completion_window: '24h' })
    await started.taskEnded(id)

    const { output_file_id: output } = await openai.batches.retrieve(id)
    expect(JSON.parse(await (await openai.files.content(output!)).text())).toMatchObject({
      response: { status_code: 200, body: { choices: [{ message: { content: 'Half past nine.' } }] } },
    })
    const asked = started.sandbox.requests.filter(({ operation }) => operation === 'chat')
    expect(asked).toMatchObject([{ batchId: expect.any(String), body: { model: 'qwq-plus' } }])
    expect(asked[0]!.body).not.toHaveProperty('stream')
    expect(await started.account()).toEqual({ balance: CREDIT - COST, held: 0n })
  })

  test('comes in the background too', async () => {
    await start({ batches: {} })
    started.sandbox.reply({ text: 'Half past nine.', usage: USAGE, times: Infinity })
    const openai = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
    const accepted = await openai.responses.create({ model: 'chat-qwen', input: 'Time?', background: true })
    await expect
      .poll(async () => (await openai.responses.retrieve(accepted.id)).status, { timeout: 5_000 })
      .toBe('completed')

    expect((await openai.responses.retrieve(accepted.id)).output_text).toBe('Half past nine.')
    await expect.poll(() => started.account()).toEqual({ balance: CREDIT - COST, held: 0n })
  })
})
