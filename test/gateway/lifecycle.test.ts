import { afterEach, describe, expect, test } from 'vitest'
import { createGateway } from '../../src/gateway/gateway.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { readEvents } from '../support/read-events.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

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

  test('ends what is left after the drain time with an error event, and charges for what came', async () => {
    started = await startGateway()
    const response = await started.post(
      CHAT,
      chatBody('chat-relayed', '[[fault:hang-body=3]] one two three', { stream: true }),
    )
    await started.gateway.close({ drainMs: 50 })
    const text = await response.text()
    const ended = await started.ended(response)

    expect(text).toContain('"error"')
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

    expect((await asked).status).toBe(503)
    expect(await ending).toMatchObject({ ending: 'failed', usage: undefined, costNanoDollars: 0n })
    expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([
      expect.objectContaining({ isEstimated: true, usage: expect.objectContaining({ outputTokens: 500 }) }),
    ])
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
  ])('%s', (_name, options, message) => {
    expect(() => createGateway(options as never)).toThrow(message)
  })
})
