import { afterEach, describe, expect, test } from 'vitest'
import type { Ledger } from '../../../src/stores/ledger.ts'
import { memoryRateLimiter } from '../../../src/stores/memory/memory-limiters.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const CHAT = '/v1/chat/completions'
const BALANCE = 100_000_000_000n

/** A memory store whose ledger records how each hold ended. */
function countingStore(broken: Partial<Record<keyof Ledger, () => never>> = {}): {
  store: ReturnType<typeof memoryStore>
  resolutions: Map<string, string[]>
} {
  const store = memoryStore()
  const resolutions = new Map<string, string[]>()
  const note = (holdId: string, how: string): void =>
    void resolutions.set(holdId, [...(resolutions.get(holdId) ?? []), how])
  const { ledger } = store
  const counting: Ledger = {
    ...ledger,
    reserve(reservation, nowMs) {
      broken.reserve?.()
      resolutions.set(reservation.holdId, [])
      return ledger.reserve(reservation, nowMs)
    },
    settle(settlement, nowMs) {
      broken.settle?.()
      note(settlement.holdId, 'settled')
      return ledger.settle(settlement, nowMs)
    },
    void(holdId, nowMs) {
      note(holdId, 'voided')
      return ledger.void(holdId, nowMs)
    },
  }
  return { store: { ...store, ledger: counting, start: () => store.start(), close: () => store.close() }, resolutions }
}

describe('the hold of a request ends exactly once, and its place is given back', () => {
  const ways: readonly (readonly [string, string, boolean])[] = [
    ['a whole answer', 'hello', false],
    ['a stream', 'hello', true],
    ['a refusal by the vendor', '[[fault:status=400]] hello', false],
    ['a vendor that is down', '[[fault:status=503]] hello', false],
    ['a vendor that resets', '[[fault:reset]] hello', true],
    ['a stream that breaks', '[[fault:reset-mid-stream=3]] one two three four', true],
    ['a stream with an error event', '[[fault:error-event=3]] one two three four', true],
    ['a vendor that never answers', '[[fault:hang]] hello', false],
    ['a vendor that stops in the middle', '[[fault:hang-body=3]] one two three four', true],
    ['garbage', '[[fault:garbage]] hello', true],
  ]
  test.each(ways)('on %s', async (_name, text, stream) => {
    const { store, resolutions } = countingStore()
    started = await startGateway({
      store,
      limits: { concurrency: 1, requestsPerMinute: 1000, tokensPerMinute: 1_000_000 },
      timeouts: { idleMs: 200, totalMs: 400 },
    })
    await started.post(CHAT, chatBody('chat-relayed', text, { stream })).then((response) => response.text())
    const after = await started.post(CHAT, chatBody('chat-relayed', 'is there a place for me?'))
    await after.text()

    expect(after.status).toBe(200)
    const ways = [...resolutions.values()]
    expect(ways).toHaveLength(2)
    for (const ended of ways) expect(ended).toHaveLength(1)
    expect((await started.account()).held).toBe(0n)
  })

  test.each([true, false])('settles when the caller disconnects (stream: %s)', async (stream) => {
    const { store, resolutions } = countingStore()
    started = await startGateway({ store, limits: { concurrency: 1 }, drainMs: 100 })
    const caller = rawPost(started.url, CHAT, chatBody('chat-relayed', '[[fault:hang]] hello', { stream }))
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()
    caller.leave()
    await ending

    expect([...resolutions.values()]).toEqual([['settled']])
    expect((await started.account()).held).toBe(0n)
  })

  test('when the rate limiter throws, before anything is held', async () => {
    const rateLimiter = {
      ...memoryRateLimiter(),
      take: () => {
        throw new Error('limiter down')
      },
    }
    const { store, resolutions } = countingStore()
    started = await startGateway({ store, rateLimiter, limits: { requestsPerMinute: 10, concurrency: 1 } })
    const first = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    const second = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect([first.status, second.status]).toEqual([500, 500])
    expect(resolutions.size).toBe(0)
    expect(started.sandbox.requests).toHaveLength(0)
  })

  test('when the transport throws', async () => {
    const { store, resolutions } = countingStore()
    const transport = {
      send: () => {
        throw new Error('no transport')
      },
      close: () => Promise.resolve(),
    }
    started = await startGateway({ store, transport, limits: { concurrency: 1 } })
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(500)
    expect([...resolutions.values()]).toEqual([['voided']])
  })

  test('when an event listener throws', async () => {
    const { store, resolutions } = countingStore()
    started = await startGateway({
      store,
      onEvent: () => {
        throw new Error('listener')
      },
    })
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    await response.text()

    expect(response.status).toBe(200)
    expect([...resolutions.values()]).toEqual([['settled']])
  })
})

test('money fails closed: a store that cannot reserve gives 503 and nothing is dispatched', async () => {
  const { store } = countingStore({
    reserve: () => {
      throw new Error('database is down')
    },
  })
  started = await startGateway({ store, limits: { concurrency: 1 } })
  const first = await started.post(CHAT, chatBody('chat-relayed', 'a'))
  const second = await started.post(CHAT, chatBody('chat-relayed', 'b'))

  expect([first.status, second.status]).toEqual([503, 503])
  expect(first.headers.get('retry-after')).toBe('5')
  expect((await first.json()).error.code).toBe('store_unavailable')
  expect(started.events).toContainEqual(
    expect.objectContaining({ type: 'internal-error', where: 'store', requestId: first.headers.get('x-request-id') }),
  )
  expect(started.sandbox.requests).toHaveLength(0)
})

test('does not withhold an answer if the store cannot settle it, and notifies the host', async () => {
  const { store } = countingStore({
    settle: () => {
      throw new Error('database is down')
    },
  })
  started = await startGateway({ store, limits: { concurrency: 1 } })
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

  expect(response.status).toBe(200)
  expect(started.events).toContainEqual(expect.objectContaining({ type: 'internal-error', where: 'settle' }))
})

test('a caller whose balance is too low gets 402 in the minimal shape, and nothing is dispatched', async () => {
  started = await startGateway({
    keys: [
      { key: 'sk-poor-012345', account: 'acct_poor' },
      { key: 'sk-test-0123456789', account: TEST_ACCOUNT },
    ],
  })
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'), {
    authorization: 'Bearer sk-poor-012345',
  })

  expect(response.status).toBe(402)
  expect(await response.json()).toEqual({
    error: { message: 'This request needs $0.001048, available $0; lower max_tokens or add credit.' },
  })
  expect(response.headers.get('x-should-retry')).toBe('false')
  expect(started.sandbox.requests).toHaveLength(0)
})

test('the smallest call of a cheap model costs more than nothing', async () => {
  started = await startGateway({
    prices: {
      currency: 'USD',
      prices: [{ model: 'embedding-relayed', meter: 'input_token', amount: '0.0001', per: 1_000_000 }],
    },
  })
  const response = await started.post('/v1/embeddings', { model: 'embedding-relayed', input: 'a' })
  const ended = await started.ended(response)

  expect(response.status).toBe(200)
  expect(ended.costNanoDollars).toBe(1n)
})

test('a model without a price is refused before dispatch while billing is on', async () => {
  started = await startGateway({ prices: { currency: 'USD', prices: [] } })
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

  expect(response.status).toBe(400)
  expect((await response.json()).error.code).toBe('model_not_priced')
  expect(started.sandbox.requests).toHaveLength(0)
})

test('holds and charges nothing with billing off', async () => {
  started = await startGateway({ billing: 'off' })
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
  await response.text()
  const ended = await started.ended(response)

  expect(ended.costNanoDollars).toBe(0n)
  expect(await started.account()).toEqual({ balance: BALANCE, held: 0n })
})

describe('a fallback', () => {
  const models = [
    {
      id: 'first',
      kind: 'chat',
      vendor: 'openai',
      upstream: 'gpt-5.4',
      fallbacks: ['second'],
      limits: { maxOutputTokens: 100 },
    },
    {
      id: 'second',
      kind: 'chat',
      vendor: 'anthropic',
      upstream: 'claude-sonnet-4-6',
      limits: { maxOutputTokens: 100 },
    },
  ] as const
  const prices = {
    currency: 'USD' as const,
    prices: ['first', 'second'].flatMap((model, index) => [
      { model, meter: 'input_token' as const, amount: String(index + 1), per: 1_000_000 },
      { model, meter: 'output_token' as const, amount: String(index + 1), per: 1_000_000 },
    ]),
  }

  test('bills a fallback that answers at its own price, and names it in the answer', async () => {
    started = await startGateway({ models, prices })
    started.sandbox.fault({ kind: 'status', status: 503, vendor: 'openai', times: 5 })
    const response = await started.post(CHAT, chatBody('first', 'hello'))
    const body = await response.json()
    const ended = await started.ended(response)

    expect(body.model).toBe('second')
    expect(response.headers.get('x-signalbox-vendor')).toBe('anthropic')
    expect(ended).toMatchObject({ model: 'second', vendor: 'anthropic' })
    const tokens = (ended.usage?.inputTokens ?? 0) + (ended.usage?.outputTokens ?? 0)
    expect(ended.costNanoDollars).toBe(BigInt(tokens) * 2000n)
  })

  test('is not asked once a byte has reached the caller', async () => {
    started = await startGateway({ models, prices })
    const response = await started.post(
      CHAT,
      chatBody('first', '[[fault:reset-mid-stream=3]] one two three four', { stream: true }),
    )
    const text = await response.text()

    expect(text).toContain('"error"')
    expect(started.sandbox.requests.map((request) => request.vendor)).toEqual(['openai'])
  })

  test("is not asked when the request itself is at fault, and the vendor's text comes back", async () => {
    started = await startGateway({ models, prices })
    const response = await started.post(CHAT, chatBody('first', '[[fault:status=400]] hello'))

    expect(response.status).toBe(400)
    expect(started.sandbox.requests).toHaveLength(1)
  })
})

describe('usage that makes no sense', () => {
  test.each(['-1', '1.5', "'12'", '2147483648', "'abc'"])(
    '(%s) is replaced or cut, flagged, and never a credit',
    async (value) => {
      started = await startGateway()
      const response = await started.post(
        CHAT,
        chatBody('chat-relayed', `[[fault:usage=${value}]] hello`, { max_tokens: 20 }),
      )
      await response.text()
      const ended = await started.ended(response)

      expect(response.status).toBe(200)
      expect(ended.costNanoDollars).toBeGreaterThan(0n)
      // A count that is a number is charged up to what the model can do; any other one as held.
      if (value !== '2147483648') expect(ended.costNanoDollars).toBeLessThanOrEqual(200n * 1000n + 20n * 4000n)
      expect((await started.account()).balance).toBe(BALANCE - ended.costNanoDollars)
      if (value !== "'12'" && value !== "'abc'")
        expect(started.events).toContainEqual(expect.objectContaining({ type: 'usage-implausible' }))
    },
  )
})

test('a usage of zero is charged as zero, not as unknown', async () => {
  started = await startGateway()
  const response = await started.post(CHAT, chatBody('chat-relayed', '[[fault:usage=0]] hello'))
  await response.text()
  const ended = await started.ended(response)

  expect(ended.usage).toMatchObject({ inputTokens: 0, outputTokens: 0 })
  expect(ended.costNanoDollars).toBe(0n)
})

test('an answer without usage is charged by the estimate, within the hold', async () => {
  started = await startGateway()
  const response = await started.post(CHAT, chatBody('chat-relayed', '[[fault:no-usage]] hello'))
  await response.text()
  const ended = await started.ended(response)

  expect(response.status).toBe(200)
  expect(ended.costNanoDollars).toBeGreaterThan(0n)
})

test('the token limit is taken before dispatch and corrected at the end', async () => {
  started = await startGateway({ limits: { tokensPerMinute: 3000 } })
  const slow = started.post(CHAT, chatBody('chat-relayed', '[[fault:delay=300]] hello', { max_tokens: 2000 }))
  await started.sandbox.nextRequest()
  const refused = await started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2000 }))
  await slow
  const allowed = await started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 2000 }))

  expect(refused.status).toBe(429)
  expect(refused.headers.get('x-ratelimit-limit-tokens')).toBe('3000')
  expect(allowed.status).toBe(200)
})

test('requests above the limits are refused with 429 in both shapes and a retry-after', async () => {
  started = await startGateway({ limits: { requestsPerMinute: 2 } })
  const statuses: number[] = []
  let last: Response | undefined
  for (let call = 0; call < 3; call++) {
    last = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    statuses.push(last.status)
  }

  expect(statuses).toEqual([200, 200, 429])
  expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await last?.json()).toMatchObject({
    code: 'Throttling.RateQuota',
    error: { type: 'rate_limit_error', code: 'Throttling.RateQuota', param: null },
  })
})
