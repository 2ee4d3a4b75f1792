import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import type { AnyHook, HookCall } from '../../../src/hooks/hook.ts'
import { chatBody, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { type HookedGateway, hookedGateway } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'
const TEXT = 'We open at "nine".\nSee you – ✓'
const saying: AnyHook = { name: 'faq', request: () => ({ answer: { text: TEXT } }) }

let gateway: HookedGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

async function start(
  hooks: readonly AnyHook[],
  options: Parameters<typeof hookedGateway>[2] = {},
): Promise<HookedGateway> {
  gateway = await hookedGateway(hooks, undefined, options)
  return gateway
}

/** Reads an answer, whole and streamed, with the official clients. */
const READERS: Readonly<Record<string, (url: string) => Promise<{ whole: string; streamed: string; model: string }>>> =
  {
    async chat(url) {
      const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${url}/v1`, maxRetries: 0 })
      const body = { model: 'chat-relayed', messages: [{ role: 'user' as const, content: 'hi' }] }
      const whole = await client.chat.completions.create(body)
      let streamed = ''
      const events = await client.chat.completions.create({
        ...body,
        stream: true,
        stream_options: { include_usage: true },
      })
      let total: number | undefined
      for await (const event of events) {
        streamed += event.choices[0]?.delta.content ?? ''
        total = event.usage?.total_tokens ?? total
      }
      expect([whole.usage?.total_tokens, total, whole.choices[0]?.finish_reason]).toEqual([0, 0, 'stop'])
      return { whole: whole.choices[0]?.message.content ?? '', streamed, model: whole.model }
    },
    async messages(url) {
      const client = new Anthropic({ apiKey: TEST_KEY, baseURL: url, maxRetries: 0 })
      const body = { model: 'chat-relayed', max_tokens: 50, messages: [{ role: 'user' as const, content: 'hi' }] }
      const whole = await client.messages.create(body)
      const streamed = await client.messages.stream(body).finalText()
      expect(whole.stop_reason).toBe('end_turn')
      return { whole: whole.content[0]?.type === 'text' ? whole.content[0].text : '', streamed, model: whole.model }
    },
    async responses(url) {
      const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${url}/v1`, maxRetries: 0 })
      const body = { model: 'chat-relayed', input: 'hi' }
      const whole = await client.responses.create(body)
      const streamed = await client.responses.stream(body).finalResponse()
      expect([whole.status, (whole as { store?: unknown }).store, whole.background]).toEqual([
        'completed',
        false,
        false,
      ])
      return { whole: whole.output_text, streamed: streamed.output_text, model: whole.model }
    },
  }

describe('a hook that answers with a text', () => {
  test.each(Object.entries(READERS))(
    'is understood by the official client of %s, whole and streamed',
    async (_name, read) => {
      const { url, vendor } = await start([saying])

      expect(await read(url)).toEqual({ whole: TEXT, streamed: TEXT, model: 'chat-relayed' })
      expect(vendor.calls).toBe(0)
    },
  )

  test('costs nothing, and header, events and record say so', async () => {
    const hooked = await start([saying], { usage: {} })
    const before = await hooked.account()
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))
    const event = await hooked.ended(response)

    expect(response.headers.get('x-signalbox-cost')).toBe('0')
    expect(response.headers.get('x-signalbox-vendor')).toBeNull()
    expect(await hooked.account()).toEqual(before)
    expect(event).toMatchObject({ ending: 'completed', status: 200, vendor: undefined, costNanoDollars: 0n })
    expect(hooked.eventsOf('hook-answered')).toMatchObject([{ hook: 'faq', endpoint: 'chat', model: 'chat-relayed' }])
    expect(hooked.eventsOf('request-started')).toHaveLength(1)
    await expect.poll(async () => (await hooked.gateway.usage.records()).records).toHaveLength(1)
    const { records } = await hooked.gateway.usage.records()
    expect(records).toMatchObject([{ vendor: undefined, usage: {}, ending: 'completed', isEstimated: false }])
  })

  test('is charged what hooks charge', async () => {
    const hook: AnyHook = {
      name: 'faq',
      request(call: HookCall) {
        call.charge('hook_unit', 3)
        return { answer: { text: 'Nine.' } }
      },
    }
    const prices = {
      currency: 'USD' as const,
      prices: [...testPrices.prices, { model: 'chat-relayed', meter: 'hook_unit' as const, amount: '0.001' }],
    }
    const hooked = await start([hook], { prices })
    const { balance } = await hooked.account()
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.headers.get('x-signalbox-cost')).toBe('0.003')
    expect(await hooked.account()).toEqual({ balance: balance - 3_000_000n, held: 0n })
    expect(await hooked.ended(response)).toMatchObject({ usage: { hookUnits: 3 } })
  })

  test('is final: later hooks and answer hooks do not run, and earlier rewrites apply', async () => {
    const later: string[] = []
    const hooks: AnyHook[] = [
      { name: 'route', request: ({ body }: HookCall) => ({ body: { ...body, model: 'cl-sonnet-4-6' } }) },
      saying,
      { name: 'later', request: () => void later.push('request'), answer: () => void later.push('answer') },
    ]
    const hooked = await start(hooks)
    const answer = await (await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))).json()

    expect(answer).toMatchObject({ model: 'cl-sonnet-4-6' })
    expect(later).toEqual([])
  })

  test('is kept under the Idempotency-Key', async () => {
    let count = 0
    const hooked = await start([{ name: 'faq', request: () => ({ answer: { text: `answer ${++count}` } }) }])
    const headers = { 'idempotency-key': 'once' }
    const first = await (await hooked.post(CHAT, chatBody('chat-relayed', 'hi'), headers)).text()
    const second = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'), headers)

    expect(second.headers.get('idempotent-replayed')).toBe('true')
    expect(await second.text()).toBe(first)
  })

  test('gives the place back that the request has taken', async () => {
    const hooked = await start([saying], { limits: { concurrency: 1 } })
    for (let call = 0; call < 3; call++)
      expect((await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))).status).toBe(200)
  })
})

describe('a hook that answers with a body', () => {
  test('is sent as it is, on any endpoint', async () => {
    const answer = { status: 203, headers: { 'x-from': 'cache of ours' }, body: { data: [] } }
    const hooked = await start([{ name: 'own', request: () => ({ answer }) }])
    const response = await hooked.post('/v1/embeddings', { model: 'embedding-relayed', input: 'hi' })

    expect(response.status).toBe(203)
    expect(response.headers.get('x-from')).toBe('cache of ours')
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual({ data: [] })
    expect((await hooked.ended(response)).status).toBe(203)
  })

  test.each([
    ['text', 'plain', 'text/plain; charset=utf-8'],
    ['bytes', Buffer.from('plain'), 'application/octet-stream'],
  ])('may be %s', async (_name, body, type) => {
    const hooked = await start([{ name: 'own', request: () => ({ answer: { body } }) }])
    const response = await hooked.post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.headers.get('content-type')).toBe(type)
    expect(await response.text()).toBe('plain')
  })
})

test.each<[string, string, unknown, Record<string, unknown>]>([
  ['a text on an endpoint without', '/v1/embeddings', { text: 'hi' }, { model: 'embedding-relayed', input: 'hi' }],
  [
    'a text in the background',
    '/v1/responses',
    { text: 'hi' },
    { model: 'chat-relayed', input: 'hi', background: true },
  ],
  ['a status of an interim answer', CHAT, { status: 101, body: '' }, chatBody('chat-relayed', 'hi')],
  [
    'a header that frames the body',
    CHAT,
    { headers: { 'content-length': '9' }, body: '' },
    chatBody('chat-relayed', 'hi'),
  ],
  ['a header of the gateway', CHAT, { headers: { 'x-signalbox-cost': '0' }, body: '' }, chatBody('chat-relayed', 'hi')],
  [
    'a header that breaks the line',
    CHAT,
    { headers: { 'x-a': 'a\r\nb: c' }, body: '' },
    chatBody('chat-relayed', 'hi'),
  ],
  ['text and body', CHAT, { text: 'hi', body: '' }, chatBody('chat-relayed', 'hi')],
  ['an unknown member', CHAT, { txt: 'hi' }, chatBody('chat-relayed', 'hi')],
  ['no body', CHAT, {}, chatBody('chat-relayed', 'hi')],
])('fails the call if the hook returns %s', async (_name, path, answer, body) => {
  const hooked = await start([{ name: 'bad', request: () => ({ answer: answer as never }) }])
  const response = await hooked.post(path, body)

  expect(response.headers.get('x-signalbox-error-code')).toBe('hook_failed')
  expect(hooked.vendor.calls).toBe(0)
  expect((await hooked.account()).held).toBe(0n)
})
