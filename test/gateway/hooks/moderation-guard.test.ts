import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { type ModerationGuardOptions, moderationGuard } from '../../../src/hooks/moderation-guard.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const MODEL = 'omni-moderation-latest'
const BLOCK = { violence: 0.5, 'sexual/minors': 0.2 }

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

async function start(guard: Partial<ModerationGuardOptions> = {}, options: Partial<GatewayOptions> = {}) {
  const hook = moderationGuard({ model: MODEL, block: BLOCK, ...guard })
  started = await startGateway({ hooks: [hook], ...options })
  return started
}

const chat = (text: string, rest: Record<string, unknown> = {}) =>
  started!.post(CHAT, chatBody('chat-relayed', text, rest))
const operations = () => started!.sandbox.requests.map(({ operation }) => operation)
const judged = () =>
  started!.sandbox.requests
    .filter(({ operation }) => operation === 'moderations')
    .map(({ body }) => (body as { input: unknown }).input)
const eventsOf = (type: string) => started!.events.filter((event) => event.type === type)
const errorOf = async (response: Response) => ((await response.json()) as { error: Record<string, unknown> }).error

describe('a request', () => {
  test('passes below the threshold, after each of its texts was judged', async () => {
    await start({ on: ['request'] })
    expect((await chat('Hello')).status).toBe(200)
    expect(judged()).toEqual([['Hello']])
    expect(operations()).toEqual(['moderations', 'chat'])
  })

  test('is denied at the threshold before a model reads it, and costs nothing', async () => {
    await start()
    const before = await started!.account()
    started!.sandbox.reply({ scores: { 'sexual/minors': 0.2 } })
    const response = await chat('Hello')

    expect(response.status).toBe(400)
    expect(await errorOf(response)).toMatchObject({ code: 'request_denied' })
    expect(operations()).toEqual(['moderations'])
    expect(await started!.account()).toEqual(before)
    expect(eventsOf('hook-denied')).toMatchObject([{ hook: 'moderation-guard', point: 'request' }])
  })

  test('is denied in the words of the host', async () => {
    await start({ message: 'Not here.' })
    expect(await errorOf(await chat('violence'))).toMatchObject({ message: 'Not here.' })
  })

  test('is judged in parts if it has many texts', async () => {
    await start({ on: ['request'] })
    const input = Array.from({ length: 70 }, (_, index) => `text ${index}`)
    expect((await started!.post('/v1/embeddings', { model: 'embedding-relayed', input })).status).toBe(200)
    expect((judged() as string[][]).map(({ length }) => length)).toEqual([32, 32, 6])
    expect(judged().flat()).toEqual(input)
  })

  test('is judged on Messages and Responses too', async () => {
    await start({ on: ['request'] })
    const messages = [{ role: 'user', content: 'violence' }]
    const message = await started!.post('/v1/messages', { model: 'cl-sonnet-4-6', max_tokens: 9, messages })
    const response = await started!.post('/v1/responses', { model: 'chat-relayed', input: 'violence' })
    expect([message.status, response.status]).toEqual([400, 400])
    expect(operations()).toEqual(['moderations', 'moderations'])
  })

  test('does not guard moderation itself', async () => {
    await start()
    expect((await started!.post('/v1/moderations', { input: 'violence' })).status).toBe(200)
    expect(operations()).toEqual(['moderations'])
  })

  test('is judged as the hooks before have written it', async () => {
    const mask = redact([{ name: 'FIGHT', pattern: /violence/, maxLength: 8 }], { on: ['request'] })
    started = await startGateway({ hooks: [mask, moderationGuard({ model: MODEL, block: BLOCK, on: ['request'] })] })
    expect((await chat('no violence')).status).toBe(200)
    expect(judged()).toEqual([['no [FIGHT]']])
  })
})

describe('an answer', () => {
  test('is refused in its dialect if it scores too high', async () => {
    await start({ on: ['answer'], message: 'Withheld.' })
    const response = await chat('violence')
    const answer = (await response.json()) as { choices: { finish_reason: string; message: { refusal: string } }[] }

    expect(response.status).toBe(200)
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'content_filter', message: { refusal: 'Withheld.' } })
    expect(JSON.stringify(answer)).not.toContain('violence')
  })

  test('holds back a stream to its end, and shows none of it if it is denied', async () => {
    await start({ on: ['answer'] })
    const body = await (await chat('violence', { stream: true })).text()
    expect(body).not.toContain('violence')
    expect(body).toContain('content_filter')
    expect(operations()).toEqual(['chat', 'moderations'])
  })

  test('passes a stream that scores below as a whole', async () => {
    await start({ on: ['answer'] })
    const body = await (await chat('Hello', { stream: true })).text()
    expect(body).toContain('Hello')
    expect(body).toContain('[DONE]')
    expect(judged()).toEqual([['You said: Hello']])
  })
})

describe('without a judgement', () => {
  const broken: readonly (readonly [string, (gateway: StartedGateway) => void])[] = [
    [
      'the vendor is down',
      ({ sandbox }) => sandbox.reply({ when: { operation: 'moderations' }, error: { status: 503 }, times: 9 }),
    ],
    ['the answer is no JSON', ({ sandbox }) => sandbox.fault({ kind: 'garbage', operation: 'moderations' })],
  ]

  test.each(broken)('nothing passes by default: %s', async (_title, breakIt) => {
    await start()
    breakIt(started!)
    const before = await started!.account()
    const response = await chat('Hello')
    expect(response.status).toBe(503)
    expect(await errorOf(response)).toMatchObject({ code: 'hook_failed' })
    expect(operations()).not.toContain('chat')
    expect(await started!.account()).toEqual(before)
  })

  test.each(broken)('lets everything pass with onFailure allow, and emits an event: %s', async (_title, breakIt) => {
    await start({ onFailure: 'allow', on: ['request'] })
    breakIt(started!)
    expect((await chat('Hello')).status).toBe(200)
    expect(eventsOf('hook-bypassed')).toMatchObject([{ hook: 'moderation-guard', point: 'request' }])
  })

  test('lets nothing pass for a category that the model does not know', async () => {
    await start({ block: { violense: 0.5 } })
    expect((await chat('Hello')).status).toBe(503)
  })

  test('within timeoutMs the call to the vendor is ended, and nothing passes', async () => {
    const clock = fakeClock({ startMs: Date.now() })
    await start({ timeoutMs: 700 }, { clock })
    started!.sandbox.fault({ kind: 'hang', operation: 'moderations' })
    const answered = chat('Hello')
    await started!.sandbox.nextRequest()
    clock.advance(699)
    expect(started!.sandbox.openCalls).toBe(1)
    clock.advance(1)
    const response = await answered
    await started!.sandbox.nextAbort()

    expect(await errorOf(response)).toMatchObject({ code: 'hook_failed' })
    expect(started!.sandbox.openCalls).toBe(0)
  })
})

describe('the guard’s own calls', () => {
  test('are charged to nobody, though the model has a price, and are in the usage records', async () => {
    const clock = fakeClock({ startMs: Date.now() })
    const row = { meter: 'request', amount: '1' } as const
    await start(
      {},
      { clock, prices: { currency: 'USD', prices: ['chat-relayed', MODEL].map((model) => ({ ...row, model })) } },
    )
    const response = await chat('Hello')
    clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
    const { records } = await started!.gateway.usage.records({ accountId: TEST_ACCOUNT })

    expect(response.headers.get('x-signalbox-cost')).toBe('1')
    expect((await started!.account()).balance).toBe(99n * 10n ** 9n)
    expect(records.map(({ endpoint, chargedNanoDollars }) => [endpoint, chargedNanoDollars]).sort()).toEqual([
      ['chat', 10n ** 9n],
      ['moderations', 0n],
      ['moderations', 0n],
    ])
  })

  test('need no scope of the key and count against no limit', async () => {
    await start({}, { limits: { requestsPerMinute: 1, concurrency: 1 } })
    const { key } = await started!.gateway.keys.create({
      accountId: TEST_ACCOUNT,
      scopes: { endpoints: ['chat'], models: ['chat-relayed'] },
    })
    const response = await started!.post(CHAT, chatBody('chat-relayed', 'Hello'), { authorization: `Bearer ${key}` })
    expect(response.status).toBe(200)
    expect(operations()).toEqual(['moderations', 'chat', 'moderations'])
  })

  test('go to the routes of the model, with its fallbacks', async () => {
    const dated = 'omni-moderation-2024-09-26'
    await start(
      { on: ['request'] },
      {
        models: [
          { id: MODEL, kind: 'moderation', vendor: 'openai', fallbacks: [dated] },
          { id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' },
        ],
      },
    )
    started!.sandbox.reply({ when: { model: MODEL }, error: { status: 503 }, times: 9 })
    expect((await chat('violence')).status).toBe(400)
    expect(started!.sandbox.requests.at(-1)?.model).toBe(dated)
  })

  test('guard callers in process as well', async () => {
    await start()
    const client = started!.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'key_1', tier: 'paid' })
    const body = chatBody('chat-relayed', 'violence') as never
    await expect(client.chat.completions.create(body)).rejects.toMatchObject({ code: 'request_denied' })
  })
})

test.each([
  ['an unknown option', { threshold: 1 }, 'threshold'],
  ['no category', { block: {} }, 'block must name'],
  ['a score above 1', { block: { violence: 2 } }, 'block["violence"]'],
  ['a point that there is not', { on: ['text'] }, 'on must be'],
])('%s is refused', (_title, options, message) => {
  expect(() => moderationGuard({ model: MODEL, block: BLOCK, ...options } as ModerationGuardOptions)).toThrow(message)
})

test.each([
  ['that there is not', 'moderation-of-nobody', 'there is no model'],
  ['that does not moderate', 'cl-sonnet-4-6', 'no moderation is offered'],
])('a gateway does not start with a guard by a model %s', async (_title, model, message) => {
  const hooks = [moderationGuard({ model, block: BLOCK })]
  await expect(startGateway({ hooks, vendors: [openai({ apiKey: TEST_KEY })] })).rejects.toThrow(message)
})
