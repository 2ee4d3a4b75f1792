import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { type FakeClock, fakeClock } from '../../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const MODELS = ['chat-relayed', 'cl-sonnet-4-6'] as const
const KEY = { 'idempotency-key': 'order-1' }

let started: StartedGateway

afterEach(() => started.close())

const BILLING = [
  ['billing on', {}],
  ['billing off', { billing: 'off' as const }],
] as const

describe.each(BILLING)('Idempotency-Key with %s', (_name, options) => {
  test.each(MODELS)('gives the same JSON answer of %s again, without asking the vendor', async (model) => {
    started = await startGateway(options)
    const first = await started.post(CHAT, chatBody(model, 'hello'), KEY)
    const body = await first.text()
    const balance = await started.account()
    const second = await started.post(CHAT, chatBody(model, 'hello'), KEY)

    expect(second.status).toBe(200)
    expect(await second.text()).toBe(body)
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(second.headers.get('idempotent-replayed')).toBe('true')
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(started.sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual(balance)
  })

  test.each(MODELS)('gives the same stream of %s again, as a stream', async (model) => {
    started = await startGateway(options)
    const request = chatBody(model, 'one two three', { stream: true, stream_options: { include_usage: true } })
    const first = await started.post(CHAT, request, KEY)
    const events = await first.text()
    const balance = await started.account()
    const second = await started.post(CHAT, request, KEY)

    expect(second.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(second.headers.get('cache-control')).toBe('no-cache, no-transform')
    expect(await second.text()).toBe(events)
    expect(events.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(started.sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual(balance)
  })

  test('is answered with 409 and retry-after while the first request is under way', async () => {
    started = await startGateway({ ...options, drainMs: 100 })
    const leaving = new AbortController()
    const request = chatBody('chat-relayed', '[[fault:hang]] hello')
    const first = started.post(CHAT, request, KEY, leaving.signal).catch(() => undefined)
    await started.sandbox.nextRequest()
    const second = await started.post(CHAT, request, KEY)
    const ending = started.nextEnded()
    leaving.abort()
    await Promise.all([first, ending])

    expect(second.status).toBe(409)
    expect(second.headers.get('retry-after')).toBe('1')
    expect(await second.json()).toMatchObject({ error: { code: 'idempotency_in_flight' } })
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('lets exactly one of many equal requests through', async () => {
    started = await startGateway(options)
    const request = chatBody('chat-relayed', '[[fault:delay=50]] hello')
    const responses = await Promise.all(Array.from({ length: 20 }, () => started.post(CHAT, request, KEY)))
    await Promise.all(responses.map((response) => response.text()))
    const statuses = responses.map(({ status }) => status)

    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(1)
    expect(statuses.every((status) => status === 200 || status === 409)).toBe(true)
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('is refused with 422 for another body or another route', async () => {
    started = await startGateway(options)
    await started.post(CHAT, chatBody('chat-relayed', 'hello'), KEY).then((response) => response.text())
    const otherBody = await started.post(CHAT, chatBody('chat-relayed', 'good bye'), KEY)
    const otherRoute = await started.post('/v1/embeddings', { model: 'vy-4', input: 'hello' }, KEY)

    expect([otherBody.status, otherRoute.status]).toEqual([422, 422])
    expect(await otherBody.json()).toMatchObject({ error: { code: 'idempotency_mismatch' } })
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test.each([
    ['status=400', false, 400],
    ['status=503', false, 503],
    ['reset', true, 503],
    ['reset-mid-stream=3', true, 200],
  ] as const)('is free again after a failure (%s, stream: %s)', async (fault, stream, status) => {
    started = await startGateway(options)
    const request = chatBody('chat-relayed', 'one two three four', { stream })
    const [kind, value] = fault.split('=')
    const times = 5
    if (kind === 'status') started.sandbox.fault({ kind: 'status', status: Number(value), times })
    else if (kind === 'reset') started.sandbox.fault({ kind: 'reset', times })
    else started.sandbox.fault({ kind: 'reset-mid-stream', events: Number(value), times })
    const failed = await started.post(CHAT, request, KEY)
    await failed.text()
    const ended = await started.ended(failed)
    started.sandbox.reset()
    const again = await started.post(CHAT, request, KEY)
    const text = await again.text()

    expect(failed.status).toBe(status)
    expect(ended.ending).toBe('failed')
    expect(again.status).toBe(200)
    expect(again.headers.get('idempotent-replayed')).toBeNull()
    expect(text).toContain(stream ? '[DONE]' : 'You said:')
  })

  test('is forgotten after 24 hours', async () => {
    const clock = fakeClock()
    started = await startGateway({ ...options, clock })
    const request = chatBody('chat-relayed', 'hello')
    await started.post(CHAT, request, KEY).then((response) => response.text())
    clock.advance(24 * 60 * 60 * 1000 - 1)
    const kept = await started.post(CHAT, request, KEY)
    clock.advance(1)
    const forgotten = await started.post(CHAT, request, KEY)

    expect(kept.headers.get('idempotent-replayed')).toBe('true')
    expect(forgotten.headers.get('idempotent-replayed')).toBeNull()
    expect(started.sandbox.requests).toHaveLength(2)
  })

  test('belongs to its account: the same key of another account is another key', async () => {
    started = await startGateway(options)
    await started.gateway.accounts.create({ id: 'acct_other' })
    await started.gateway.accounts.credit('acct_other', '10')
    const { key } = await started.gateway.keys.create({ accountId: 'acct_other' })
    const request = chatBody('chat-relayed', 'hello')
    await started.post(CHAT, request, KEY).then((response) => response.text())
    const other = await started.post(CHAT, request, { ...KEY, authorization: `Bearer ${key}` })

    expect(other.status).toBe(200)
    expect(other.headers.get('idempotent-replayed')).toBeNull()
    expect(started.sandbox.requests).toHaveLength(2)
  })
})

test('a refusal for a low balance leaves the key free', async () => {
  started = await startGateway()
  await started.gateway.accounts.create({ id: 'acct_poor' })
  const { key } = await started.gateway.keys.create({ accountId: 'acct_poor' })
  const headers = { ...KEY, authorization: `Bearer ${key}` }
  const request = chatBody('chat-relayed', 'hello')
  const refused = await started.post(CHAT, request, headers)
  await started.gateway.accounts.credit('acct_poor', '10')
  const served = await started.post(CHAT, request, headers)

  expect(refused.status).toBe(402)
  expect(Object.keys(await refused.json())).toEqual(['error'])
  expect(served.status).toBe(200)
})

test('answers with 503 and calls no vendor if the idempotency store fails', async () => {
  const store = memoryStore()
  const claim = (): never => {
    throw new Error('store down')
  }
  started = await startGateway({ billing: 'off', store: { ...store, idempotency: { ...store.idempotency, claim } } })
  const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'), KEY)

  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({ error: { code: 'store_unavailable' } })
  expect(started.sandbox.requests).toHaveLength(0)
})

describe('a claim without a hold whose acknowledgement was lost', () => {
  const request = chatBody('chat-relayed', 'hello')
  let claims = 0

  /** Loses the acknowledgement of the first claim, which is made before or not at all. */
  async function startLosing(clock: FakeClock, isMade: boolean): Promise<void> {
    const store = memoryStore()
    const { idempotency } = store
    claims = 0
    const claim: typeof idempotency.claim = (...given) => {
      claims += 1
      if (claims > 1) return idempotency.claim(...given)
      if (isMade) void idempotency.claim(...given)
      throw new Error('the acknowledgement was lost')
    }
    started = await startGateway({ billing: 'off', clock, store: { ...store, idempotency: { ...idempotency, claim } } })
  }

  test('is undone, so that the request can be made again', async () => {
    const clock = fakeClock()
    await startLosing(clock, true)
    const lost = await started.post(CHAT, request, KEY)
    const early = await started.post(CHAT, request, KEY)
    clock.advance(1_000)
    await expect.poll(async () => (await started.post(CHAT, request, KEY)).status).toBe(200)

    expect([lost.status, early.status]).toEqual([503, 409])
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('leaves the key with another request that has claimed it since', async () => {
    const clock = fakeClock()
    await startLosing(clock, false)
    const lost = await started.post(CHAT, request, KEY)
    started.sandbox.fault({ kind: 'hang' })
    const leaving = new AbortController()
    const running = started.post(CHAT, request, KEY, leaving.signal).catch(() => undefined)
    await started.sandbox.nextRequest()
    clock.advance(1_000)
    await expect.poll(() => claims).toBe(3)
    const meanwhile = await started.post(CHAT, request, KEY)
    leaving.abort()
    await running

    expect([lost.status, meanwhile.status]).toEqual([503, 409])
    expect(started.sandbox.requests).toHaveLength(1)
  })
})

describe('a claim without a hold', () => {
  const LASTS_MS = 15 * 60_000
  const request = chatBody('chat-relayed', 'hello')
  const OFF = { billing: 'off' } as const
  const FREE_CALLS: [string, Partial<GatewayOptions>, string, object][] = [
    ['billing off', OFF, CHAT, request],
    ['billing off and holds that would be short', { ...OFF, holdTtlMs: 1_000 }, CHAT, request],
    ['a call that is free', {}, '/v1/messages/count_tokens', chatBody('cl-sonnet-4-6', 'hello')],
    ['an object that is kept', {}, '/v1/conversations', {}],
  ]

  /** Wraps a store so that it gets no more calls of a process that died. */
  function unheard(store: GatewayStore): GatewayStore {
    const idempotency = { ...store.idempotency, complete: () => true, release: () => undefined }
    return { ...store, idempotency, close: async () => undefined }
  }

  test.each(FREE_CALLS)(
    '(%s) is over when its process has died and no call can be under way any more',
    async (...given) => {
      const [, options, path, body] = given
      const shared = { ...options, clock: fakeClock(), store: memoryStore() }
      const dying = await startGateway({ ...shared, store: unheard(shared.store) })
      await dying.post(path, body, KEY).then((response) => response.text())
      await dying.close()
      started = await startGateway(shared)
      shared.clock.advance(LASTS_MS - 1)
      const meanwhile = await started.post(path, body, KEY)
      shared.clock.advance(1)
      const afterwards = await started.post(path, body, KEY)
      await afterwards.text()
      shared.clock.advance(LASTS_MS)
      const replayed = await started.post(path, body, KEY)

      expect([meanwhile.status, afterwards.status, replayed.status]).toEqual([409, 200, 200])
      expect(meanwhile.headers.get('retry-after')).toBe('1')
      expect(afterwards.headers.get('idempotent-replayed')).toBeNull()
      expect(replayed.headers.get('idempotent-replayed')).toBe('true')
    },
  )

  test('ends even if the store creates it only after it was undone', async () => {
    const clock = fakeClock()
    const store = memoryStore()
    const { idempotency } = store
    let late: (() => unknown) | undefined
    let released = 0
    const tardy: typeof idempotency = {
      ...idempotency,
      claim(...given) {
        if (late !== undefined) return idempotency.claim(...given)
        late = () => idempotency.claim(...given)
        throw new Error('no answer within 5000 ms')
      },
      release(claim) {
        released += 1
        return idempotency.release(claim)
      },
    }
    started = await startGateway({ ...OFF, clock, store: { ...store, idempotency: tardy } })
    const lost = await started.post(CHAT, request, KEY)
    clock.advance(1_000)
    await expect.poll(() => released).toBe(1)
    await late?.()
    const meanwhile = await started.post(CHAT, request, KEY)
    clock.advance(LASTS_MS)
    const afterwards = await started.post(CHAT, request, KEY)

    expect([lost.status, meanwhile.status, afterwards.status]).toEqual([503, 409, 200])
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('is not freed by a request that it was taken over from, while its own is under way', async () => {
    const clock = fakeClock()
    const store = memoryStore()
    const { idempotency } = store
    let carryOut: (() => void) | undefined
    const slow: typeof idempotency = {
      ...idempotency,
      async release(claim) {
        if (carryOut === undefined) await new Promise<void>((resolve) => (carryOut = resolve))
        return await idempotency.release(claim)
      },
    }
    started = await startGateway({ ...OFF, clock, store: { ...store, idempotency: slow } })
    started.sandbox.fault({ kind: 'status', status: 400, times: 1 })
    const first = started.post(CHAT, request, KEY)
    await expect.poll(() => carryOut).toBeDefined()
    clock.advance(LASTS_MS)
    started.sandbox.reset()
    started.sandbox.fault({ kind: 'hang' })
    const leaving = new AbortController()
    const running = started.post(CHAT, request, KEY, leaving.signal).catch(() => undefined)
    await started.sandbox.nextRequest()
    carryOut?.()
    await first
    const meanwhile = await started.post(CHAT, request, KEY)
    leaving.abort()
    await running

    expect(meanwhile.status).toBe(409)
  })
})

test('a replay takes one of the requests per minute, but neither tokens nor a place', async () => {
  started = await startGateway({ limits: { requestsPerMinute: 10, tokensPerMinute: 100_000, concurrency: 1 } })
  const request = chatBody('chat-relayed', 'hello')
  await started.post(CHAT, request, KEY).then((response) => response.text())
  await started.post(CHAT, request, KEY).then((response) => response.text())
  const replayed = await started.post(CHAT, request, KEY)
  const fresh = await started.post(CHAT, chatBody('chat-relayed', 'hello again'))

  expect(replayed.headers.get('idempotent-replayed')).toBe('true')
  expect(fresh.status).toBe(200)
  expect(fresh.headers.get('x-ratelimit-remaining-requests')).toBe('6')
})
