import { afterEach, describe, expect, test } from 'vitest'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const CHAT = '/v1/chat/completions'
const MODELS = ['chat-relayed', 'cl-sonnet-4-6', 'gmn-2.5-flash'] as const
const WORDS = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')

describe.each(MODELS)('a caller of %s who leaves', (model) => {
  test('is charged once after some chunks, for the output received so far, and the vendor is stopped', async () => {
    started = await startGateway()
    const caller = rawPost(started.url, CHAT, chatBody(model, `[[fault:pace=5]] ${WORDS}`, { stream: true }))
    await caller.received('word3')
    const ending = started.nextEnded()
    const leftAtMs = caller.leave()
    const vendorSawAtMs = await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended.ending).toBe('abandoned')
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect(ended.usage?.outputTokens).toBeGreaterThan(0)
    expect(ended.usage?.outputTokens).toBeLessThan(200)
    expect(vendorSawAtMs - leftAtMs).toBeLessThan(500)
    const { balance, held } = await started.account()
    expect(held).toBe(0n)
    expect(balance).toBe(100_000_000_000n - ended.costNanoDollars)
    expect(started.events.filter((event) => event.type === 'request-ended')).toHaveLength(1)
  })

  test('while the vendor still makes a whole answer pays for the time of the call, once', async () => {
    started = await startGateway({ disconnect: 'cancel', drainMs: 100 })
    const caller = rawPost(started.url, CHAT, chatBody(model, '[[fault:hang]] a prompt', { max_tokens: 50 }))
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()
    const ended = await ending

    expect(ended.ending).toBe('abandoned')
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    // At least the 100 ms of `drainMs`, at 100 tokens a second; at most the hold.
    expect(ended.usage?.outputTokens).toBeGreaterThanOrEqual(10)
    expect(ended.usage?.outputTokens).toBeLessThanOrEqual(50)
    expect((await started.account()).held).toBe(0n)
  })
})

test('reads a disconnected stream to its end with the policy drain, and charges the reported usage', async () => {
  started = await startGateway({ disconnect: 'drain' })
  const caller = rawPost(
    started.url,
    CHAT,
    chatBody('chat-relayed', '[[fault:pace=5]] one two three four five six', { stream: true }),
  )
  await caller.received('two')
  const ending = started.nextEnded()
  caller.leave()
  const ended = await ending

  expect(ended.ending).toBe('completed')
  expect(ended.usage?.outputTokens).toBe(8)
  expect(started.sandbox.aborted).toBe(0)
})

test('draining is bounded in time', async () => {
  started = await startGateway({ disconnect: 'drain', drainMs: 100 })
  const caller = rawPost(
    started.url,
    CHAT,
    chatBody('chat-relayed', '[[fault:hang-body=3]] one two three four', { stream: true }),
  )
  await caller.received('You')
  const ending = started.nextEnded()
  caller.leave()
  await started.sandbox.nextAbort()
  const ended = await ending

  expect(ended.ending).toBe('abandoned')
  expect(ended.costNanoDollars).toBeGreaterThan(0n)
})

test('waits for a whole answer with the policy drain, and charges the reported usage', async () => {
  started = await startGateway({ disconnect: 'drain' })
  const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', '[[fault:delay=100]] one two'))
  await started.sandbox.nextRequest()
  const ending = started.nextEnded()
  caller.leave()
  const ended = await ending

  expect(ended.usage?.outputTokens).toBe(4)
  expect(ended.costNanoDollars).toBeGreaterThan(0n)
})

test('a vendor that goes silent in the middle of a stream is given up after the idle time-out', async () => {
  started = await startGateway({ timeouts: { idleMs: 300 } })
  const response = await started.post(
    CHAT,
    chatBody('chat-relayed', '[[fault:hang-body=3]] one two three four', { stream: true }),
  )
  const text = await response.text()
  const ended = await started.ended(response)

  expect(text).toContain('"code":"upstream_timeout"')
  expect(text).not.toContain('[DONE]')
  expect(ended.ending).toBe('failed')
  expect((await started.account()).held).toBe(0n)
})

test.each([
  ['after the whole time', { timeouts: { totalMs: 300 } }],
  [
    'after the first-byte time-out where the host has it so',
    { timeouts: { firstByteMs: 300 }, routing: { retryAfterTimeout: true } },
  ],
])('a vendor that never answers is given up %s, with 504 and without a charge', async (_when, options) => {
  started = await startGateway(options)
  const response = await started.post(CHAT, chatBody('chat-relayed', '[[fault:hang]] hello'))
  const body = await response.json()

  expect(response.status).toBe(504)
  expect(body.error.code).toBe('upstream_timeout')
  expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
})

test('the whole time of a request is bounded, however busy the vendor keeps the line', async () => {
  started = await startGateway({ timeouts: { totalMs: 400 } })
  const response = await started.post(CHAT, chatBody('chat-relayed', '[[fault:endless]] hello', { stream: true }))
  const text = await response.text()
  const ended = await started.ended(response)

  expect(text).toContain('"error"')
  expect(text).not.toContain('[DONE]')
  expect(ended.costNanoDollars).toBeGreaterThan(0n)
})
