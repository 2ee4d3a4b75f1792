import { http } from 'msw'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ClientError } from '../../src/client/index.ts'
import {
  advance,
  answering,
  BASE_URL,
  collected,
  events,
  json,
  type StandIn,
  showing,
  startStandIn,
  unreachable,
} from './stand-in.ts'

const EMBEDDING = { model: 'vy-4', input: 'hello' } as const
const ANSWER = json({ object: 'list', model: 'vy-4', data: [], usage: { prompt_tokens: 1, total_tokens: 1 } })
const BUSY = { error: { message: 'busy', type: 'rate_limit_error', param: null, code: 'rate_limited' } }

let standIn: StandIn

beforeEach(() => {
  standIn = startStandIn()
})
afterEach(() => standIn.server.close())
afterAll(() => standIn.server.close())

function keys(): (string | null)[] {
  return standIn.requests.map(({ headers }) => headers.get('idempotency-key'))
}

describe('a call is tried again', () => {
  test.each([
    ['a refusal by rate', json(BUSY, 429, { 'retry-after': '3' }), 3_000],
    ['a vendor that is away', json({ error: { code: 'upstream_unavailable' } }, 503, { 'retry-after': '5' }), 5_000],
    [
      'its own first attempt, still being answered',
      json({ error: { code: 'idempotency_in_flight' } }, 409, { 'retry-after': '1' }),
      1_000,
    ],
    ['a connection that broke before the answer', unreachable, 500],
    ['a fault in the gateway', json({ error: { code: 'internal_error' } }, 500), 500],
    ['a useless answer of a vendor', json({ error: { code: 'upstream_invalid_response' } }, 502), 500],
    ['a vendor that took too long', json({ error: { code: 'upstream_timeout' } }, 504, { 'retry-after': '2' }), 2_000],
    ['a vendor with too much to do, as Anthropic says it', json({ error: { type: 'overloaded_error' } }, 529), 500],
    ['a proxy that lost the gateway', () => new Response('<h1>Bad gateway</h1>', { status: 502 }), 500],
    ['a proxy that gave up on the request', () => new Response(null, { status: 408 }), 500],
    ['whatever the gateway says to try again', json({ error: {} }, 400, { 'x-should-retry': 'true' }), 500],
  ])('after %s, once the time has come, with the same Idempotency-Key', async (_name, failure, delayMs) => {
    standIn.server.use(answering('/embeddings', failure, ANSWER))
    const call = standIn.client.embeddings.create(EMBEDDING)
    let isSettled = false
    void call.then(() => {
      isSettled = true
    })
    while (standIn.requests.length === 0 || standIn.clock.pending > 1)
      await new Promise((resolve) => setImmediate(resolve))
    await untilOneTimer()
    standIn.clock.advance(delayMs * 0.7)
    await new Promise((resolve) => setImmediate(resolve))
    expect(isSettled).toBe(false)
    expect(standIn.requests).toHaveLength(1)
    standIn.clock.advance(delayMs * 0.3)
    await call

    expect(standIn.requests).toHaveLength(2)
    expect(keys()[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys()[1]).toBe(keys()[0])
    expect(await standIn.requests[1]!.json()).toEqual(EMBEDDING)
  })

  test('gives up after the allowed number of retries', async () => {
    standIn.server.use(answering('/embeddings', json(BUSY, 429, { 'retry-after': '1' })))
    const call = standIn.client.embeddings.create(EMBEDDING).catch((error: unknown) => error)
    for (let retry = 0; retry < 2; retry++) {
      await untilRequests(retry + 1)
      await untilOneTimer()
      await advance(standIn.clock, 1_000)
    }

    expect(await call).toMatchObject({ code: 'rate_limited', status: 429 })
    expect(standIn.requests).toHaveLength(3)
  })

  test('when it only reads, without a key', async () => {
    standIn.server.use(showing('/models', unreachable, json({ data: [] })))
    const call = standIn.client.models.list()
    await untilRequests(1)
    await untilOneTimer()
    await advance(standIn.clock, 500)

    expect(await call).toEqual([])
    expect(keys()).toEqual([null, null])
  })
})

describe('a call is not tried again', () => {
  test.each([
    ['a request that is wrong', json({ error: { message: 'no', code: 'invalid_request' } }, 400)],
    ['a low balance', json({ error: { message: 'low' } }, 402)],
    ['a gateway that says not to', json({ error: { code: 'upstream_timeout' } }, 504, { 'x-should-retry': 'false' })],
    ['a conflict that time does not mend', json({ error: { code: 'task_not_cancellable' } }, 409)],
    ['a video that is not finished', json({ error: { code: 'task_not_finished' } }, 409)],
    ['a vendor that is not configured', json({ error: { code: 'model_not_configured' } }, 503, { 'retry-after': '5' })],
    ['a gateway that wants two minutes of rest', json(BUSY, 429, { 'retry-after': '120' })],
  ])('after %s', async (_name, failure) => {
    standIn.server.use(answering('/embeddings', failure))

    await expect(standIn.client.embeddings.create(EMBEDDING)).rejects.toSatisfy(ClientError.isInstance)
    expect(standIn.requests).toHaveLength(1)
    expect(standIn.clock.pending).toBe(0)
  })

  test('when retries are off, and no key is made up then', async () => {
    standIn.server.use(answering('/embeddings', unreachable))

    await expect(standIn.client.embeddings.create(EMBEDDING, { maxRetries: 0 })).rejects.toThrow('could not be reached')
    expect(keys()).toEqual([null])
  })

  test('once a stream has begun', async () => {
    standIn.server.use(answering('/chat/completions', events(['data: {"choices":[]}\n\n'], { breaksOff: true })))
    const stream = await standIn.client.chat.completions.create({
      model: 'cl-opus-4-7',
      messages: [{ role: 'user', content: 'hello' }],
      stream: true,
    })

    await expect(collected(stream)).rejects.toMatchObject({ code: 'upstream_invalid_response' })
    expect(standIn.requests).toHaveLength(1)
  })
})

/** The calls whose vendor is paid even if nobody gets the answer. */
const PAID_JOBS = [
  ['/images/generations', () => standIn.client.images.generate({ model: 'gp-image-2', prompt: 'a boat' })],
  [
    '/images/edits',
    () => standIn.client.images.edit({ model: 'gp-image-2', prompt: 'a sail', image: new Blob(['\x89PNG']) }),
  ],
  ['/audio/speech', () => standIn.client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello' })],
] as const

describe.each(PAID_JOBS)('a paid job at %s', (path, order) => {
  test.each([
    ['a connection that broke', unreachable],
    ['a proxy that lost the gateway', () => new Response('<h1>Bad gateway</h1>', { status: 502 })],
    ['a proxy that gave up', () => new Response('<h1>Application error</h1>', { status: 503 })],
    ['a proxy that took too long to wait', json({ message: 'Endpoint request timed out' }, 504)],
    [
      'a gateway whose vendor may be at work',
      json({ error: { code: 'upstream_timeout' } }, 504, { 'x-should-retry': 'false' }),
    ],
  ])('is not ordered twice after %s, and the error says that it cannot be', async (_name, failure) => {
    standIn.server.use(answering(path, failure))

    expect(await order().catch((error: unknown) => error)).toMatchObject({ name: 'GatewayError', retryable: false })
    expect(standIn.requests).toHaveLength(1)
    expect(standIn.clock.pending).toBe(0)
  })

  test.each([
    ['was refused by rate', json(BUSY, 429)],
    ['was taken by no vendor', json({ error: { code: 'upstream_unavailable' } }, 503)],
    ["was taken by no vendor, in the upstream style's words", json({ code: 'InternalError' }, 500)],
  ])('is ordered again with the same Idempotency-Key when it %s', async (_name, failure) => {
    standIn.server.use(answering(path, failure, json({ error: { code: 'invalid_request' } }, 400)))
    const call = order().catch((error: unknown) => error)
    await untilRequests(1)
    await untilOneTimer()
    await advance(standIn.clock, 500)

    expect(await call).toMatchObject({ code: 'invalid_request' })
    expect(keys()[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys()[1]).toBe(keys()[0])
  })
})

describe('a paid job whose answer has begun', () => {
  const prompt = { model: 'gp-image-2', prompt: 'a boat' } as const
  const picture = () => standIn.client.images.generate(prompt)
  const streamed = async () => collected(await standIn.client.images.generate({ ...prompt, stream: true }))
  const sound = async () => {
    const answer = await standIn.client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello' })
    return answer.bytes()
  }
  const partial = 'data: {"type":"image_generation.partial_image"}\n\n'
  const told = 'data: {"error":{"code":"upstream_unavailable"}}\n\n'

  test.each([
    ['is cut off as a whole', '/images/generations', picture, () => new Response('{"data":[')],
    ['tells of an error', '/images/generations', streamed, events([partial, told])],
    ['ends too early', '/images/generations', streamed, events([partial])],
    ['breaks off', '/images/generations', streamed, events([partial], { breaksOff: true })],
    ['is sound that breaks off', '/audio/speech', sound, sounds],
    ['is a page instead of sound', '/audio/speech', sound, () => new Response('<h1>Sign in</h1>')],
  ])('does not suggest a retry after %s', async (_name, path, order, answer) => {
    standIn.server.use(answering(path, answer))

    expect(await order().catch((error: unknown) => error)).toMatchObject({ name: 'GatewayError', retryable: false })
    expect(standIn.requests).toHaveLength(1)
  })

  function sounds(): Response {
    const broken = events(['sound'], { breaksOff: true })()
    return new Response(broken.body, { headers: { 'content-type': 'audio/wav' } })
  }
})

test('a chat whose answer breaks off may be asked for again', async () => {
  standIn.server.use(answering('/chat/completions', () => new Response('{"choices":[')))
  const call = standIn.client.chat.completions.create({
    model: 'cl-opus-4-7',
    messages: [{ role: 'user', content: 'hello' }],
  })

  await expect(call).rejects.toMatchObject({ code: 'upstream_invalid_response', retryable: true })
})

test('a paid job is ordered again when no connection came about', async () => {
  const refused = () => Promise.reject(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } }))
  const fetched: string[] = []
  const client = standIn.clientWith({
    fetch: ({ url }) => {
      fetched.push(new URL(url).pathname)
      return refused()
    },
  })
  const call = client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello' }).catch((error: unknown) => error)
  for (let retry = 0; retry < 2; retry++) {
    await untilOneTimer()
    await advance(standIn.clock, 1_000)
  }

  expect(await call).toMatchObject({ code: 'upstream_unavailable', retryable: true })
  expect(fetched).toEqual(Array(3).fill('/v1/audio/speech'))
})

test('a video is ordered again after a broken connection: its Idempotency-Key gives its task again', async () => {
  standIn.server.use(answering('/videos/generations', unreachable, json({ id: 'task_1' }, 202)))
  const call = standIn.client.videos.generate({ model: 'wv2.7-t2v', input: { prompt: 'a boat' } })
  await untilRequests(1)
  await untilOneTimer()
  await advance(standIn.clock, 500)

  expect(await call).toMatchObject({ id: 'task_1' })
  expect(keys()[1]).toBe(keys()[0])
})

test("the caller's own Idempotency-Key is kept", async () => {
  standIn.server.use(answering('/embeddings', ANSWER))
  await standIn.client.embeddings.create(EMBEDDING, { idempotencyKey: 'order-1' })

  expect(keys()).toEqual(['order-1'])
})

describe('an attempt that takes too long', () => {
  test('ends with upstream_timeout, is not repeated, and leaves no timer behind', async () => {
    standIn.server.use(http.post(`${BASE_URL}/embeddings`, () => new Promise<Response>(() => {})))
    const call = standIn.client.embeddings.create(EMBEDDING, { timeoutMs: 2_000 }).catch((error: unknown) => error)
    await untilRequests(1)
    standIn.clock.advance(2_000)

    expect(await call).toMatchObject({ code: 'upstream_timeout', status: 504 })
    expect(standIn.requests).toHaveLength(1)
    expect(standIn.clock.pending).toBe(0)
  })

  test('does not count once a stream has begun', async () => {
    standIn.server.use(answering('/chat/completions', events(['data: {"choices":[]}\n\n', 'data: [DONE]\n\n'])))
    const stream = await standIn.client.chat.completions.create(
      { model: 'cl-opus-4-7', messages: [{ role: 'user', content: 'hello' }], stream: true },
      { timeoutMs: 1_000 },
    )
    standIn.clock.advance(60_000)

    expect(await collected(stream)).toHaveLength(1)
  })
})

describe("the caller's signal", () => {
  test('ends a call under way with its own reason', async () => {
    standIn.server.use(http.post(`${BASE_URL}/embeddings`, () => new Promise<Response>(() => {})))
    const leaving = new AbortController()
    const call = standIn.client.embeddings
      .create(EMBEDDING, { signal: leaving.signal })
      .catch((error: unknown) => error)
    await untilRequests(1)
    const reason = new Error('changed my mind')
    leaving.abort(reason)

    expect(await call).toBe(reason)
    expect(standIn.clock.pending).toBe(0)
  })

  test('ends the wait before a retry', async () => {
    standIn.server.use(answering('/embeddings', json(BUSY, 429, { 'retry-after': '30' })))
    const leaving = new AbortController()
    const call = standIn.client.embeddings
      .create(EMBEDDING, { signal: leaving.signal })
      .catch((error: unknown) => error)
    await untilRequests(1)
    await untilOneTimer()
    leaving.abort()

    expect(await call).toMatchObject({ name: 'AbortError' })
    expect(standIn.requests).toHaveLength(1)
    expect(standIn.clock.pending).toBe(0)
  })

  test('keeps a call from being sent at all', async () => {
    const call = standIn.client.embeddings.create(EMBEDDING, { signal: AbortSignal.abort() })

    await expect(call).rejects.toMatchObject({ name: 'AbortError' })
    expect(standIn.requests).toHaveLength(0)
  })
})

async function untilRequests(count: number): Promise<void> {
  while (standIn.requests.length < count) await new Promise((resolve) => setImmediate(resolve))
}

/** The attempt's own timer is gone and that of the wait is there: both count one, so the answer must have been read. */
async function untilOneTimer(): Promise<void> {
  for (let turn = 0; turn < 50 || standIn.clock.pending !== 1; turn++)
    await new Promise((resolve) => setImmediate(resolve))
}
