import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ClientError, GatewayError } from '../../src/client/index.ts'
import { GatewayError as CoreError } from '../../src/core/errors.ts'
import { anthropicError, errorBody } from '../support/error-body.ts'
import { answering, collected, json, type StandIn, showing, startStandIn, unreachable } from './stand-in.ts'

const CHAT = { model: 'cl-opus-4-7', messages: [{ role: 'user' as const, content: 'hello' }] }

let standIn: StandIn

beforeAll(() => {
  standIn = startStandIn()
})
afterEach(() => standIn.server.resetHandlers())
afterAll(() => standIn.server.close())

async function failureOf(answer: () => Response, path = '/chat/completions'): Promise<ClientError> {
  standIn.server.use(answering(path, answer))
  const client = standIn.clientWith({ maxRetries: 0 })
  const call =
    path === '/messages' ? client.messages.create({ ...CHAT, max_tokens: 5 }) : client.chat.completions.create(CHAT)
  const error: unknown = await call.catch((cause: unknown) => cause)
  if (!ClientError.isInstance(error)) throw new Error('the call did not fail as it should', { cause: error })
  return error
}

describe('an error answer becomes the error that the gateway threw', () => {
  const thrown = new CoreError('invalid_request', { message: 'model: expected text', param: 'model' })
  const limited = new CoreError('rate_limited', { retryAfterSeconds: 7 })

  test.each([
    ['the OpenAI style', errorBody(thrown, 'openai', 'req_1')],
    ['the upstream style', errorBody(thrown, 'multimodal', 'req_1')],
    ['both styles at once', errorBody(thrown, 'either', 'req_1')],
  ])('in %s', async (_name, body) => {
    const error = await failureOf(json(JSON.parse(body), 400, { 'x-request-id': 'req_1' }))

    expect(error).toMatchObject({ code: 'invalid_request', status: 400, param: 'model', requestId: 'req_1' })
    expect(error.message).toBe('model: expected text')
  })

  test.each([
    'invalid_request',
    'invalid_api_key',
    'permission_denied',
    'rate_limited',
    'upstream_timeout',
    'upstream_unavailable',
    'internal_error',
  ] as const)('restores %s from the upstream style', async (code) => {
    const cause = new CoreError(code)
    const body = JSON.parse(errorBody(cause, 'multimodal', 'req_1')) as Record<string, unknown>
    // Only the texts of the style, as from a gateway that adds no others.
    const { error: _ours, ...words } = body

    expect(await failureOf(json(words, cause.status))).toMatchObject({ code, status: cause.status })
  })

  test('in the minimal style of a low balance', async () => {
    const body = errorBody(new CoreError('insufficient_balance'), 'openai', 'req_1')
    const error = await failureOf(json(JSON.parse(body), 402))

    expect(error).toMatchObject({ code: 'insufficient_balance', status: 402, retryable: false, requestId: undefined })
  })

  test.each([
    [400, new CoreError('invalid_request'), 'invalid_request'],
    [401, new CoreError('invalid_api_key'), 'invalid_api_key'],
    [402, new CoreError('insufficient_balance'), 'insufficient_balance'],
    [403, new CoreError('permission_denied'), 'permission_denied'],
    [404, new CoreError('model_not_found'), 'model_not_found'],
    [413, new CoreError('body_too_large'), 'body_too_large'],
    [429, limited, 'rate_limited'],
    [503, new CoreError('upstream_unavailable'), 'upstream_unavailable'],
    [504, new CoreError('upstream_timeout'), 'upstream_timeout'],
  ])("in Anthropic's envelope with status %i", async (status, cause, code) => {
    const error = await failureOf(json(anthropicError(cause, 'req_2'), status), '/messages')

    expect(error).toMatchObject({ code, status, requestId: 'req_2', message: cause.message })
  })

  test.each(['openai', 'multimodal', 'either'] as const)(
    'keeps the seconds to wait, in the dialect %s',
    async (dialect) => {
      const body = JSON.parse(errorBody(limited, dialect, 'req_3')) as unknown
      const error = await failureOf(json(body, 429, { 'retry-after': '7' }))

      expect(error).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 7, retryable: true })
      expect(error.publicCode).toBe('Throttling.RateQuota')
    },
  )

  test('converts a date to wait for to seconds from now', async () => {
    const date = new Date(standIn.clock.now() + 30_000).toUTCString()
    const error = await failureOf(json({}, 503, { 'retry-after': date }))

    expect(error).toMatchObject({ code: 'upstream_unavailable', status: 503, retryAfterSeconds: 30 })
  })

  test("contains a vendor's own code in addition to the gateway's", async () => {
    const body = { error: { message: 'no', type: 'invalid_request_error', param: null, code: 'DataInspectionFailed' } }
    const error = await failureOf(json(body, 400))

    expect(error).toMatchObject({ code: 'upstream_rejected', publicCode: 'DataInspectionFailed' })
  })

  test.each(['constructor', '__proto__', 'toString'])('does not look up a code called %s on objects', async (code) => {
    const error = await failureOf(() => new Response(`{"error":{"message":"no","code":"${code}"}}`, { status: 400 }))

    expect(error.code).toBe('upstream_rejected')
  })

  test('even when a proxy in between answers with a page of its own', async () => {
    const error = await failureOf(() => new Response('<h1>Bad gateway</h1>', { status: 502 }))

    expect(error).toMatchObject({ code: 'upstream_invalid_response', status: 502, requestId: undefined })
    expect(error.message).toBe('HTTP 502, not from a gateway: Bad gateway')
  })

  test('shows the text of a page without its markup, up to a limit', async () => {
    const page = `<head><style>b { color: red }</style></head><h1>Busy\n</h1>${'<b>word</b>'.repeat(10_000)}`
    const error = await failureOf(() => new Response(page, { status: 503 }))

    expect(error.message).toMatch(/^HTTP 503, not from a gateway: Busy word word/)
    expect(error.message.length).toBeLessThan(300)
  })

  test('accepts an empty body', async () => {
    const error = await failureOf(() => new Response(null, { status: 504 }))

    expect(error).toMatchObject({ code: 'upstream_timeout', message: 'HTTP 504, not from a gateway' })
  })
})

test('reports an unreachable gateway with the same class, with the cause', async () => {
  const error = await failureOf(unreachable)

  expect(error).toMatchObject({ code: 'upstream_unavailable', retryable: true, requestId: undefined })
  expect(error.message).toBe('The gateway at http://gateway.example.net/v1 could not be reached.')
  expect(error.cause).toBeInstanceOf(TypeError)
})

test('reports the reason that Node hides below its error', async () => {
  const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } }))
  const call = standIn.clientWith({ fetch, maxRetries: 0 }).models.list()

  await expect(call).rejects.toThrow('could not be reached: ECONNREFUSED.')
})

test('reports a malformed list of models', async () => {
  standIn.server.use(showing('/models', json({ ok: true })))

  await expect(standIn.client.models.list()).rejects.toThrow('The answer holds no list.')
})

test('distinguishes an answer that breaks off from one that is not JSON', async () => {
  const body = () => {
    let isBegun = false
    return new ReadableStream({
      pull(controller) {
        if (isBegun) controller.error(new TypeError('terminated'))
        else controller.enqueue(new TextEncoder().encode('{"a":'))
        isBegun = true
      },
    })
  }

  expect((await failureOf(() => new Response(body()))).message).toBe('The answer broke off.')
  const cut = () => new Response('{"a":', { headers: { 'content-type': 'application/json' } })
  expect((await failureOf(cut)).message).toBe('The answer cannot be read as JSON.')
})

test('throws an error with the id of the request for a successful answer that is not JSON', async () => {
  const error = await failureOf(() => new Response('<h1>Welcome</h1>', { headers: { 'x-request-id': 'req_4' } }))

  expect(error).toMatchObject({ code: 'upstream_invalid_response', requestId: 'req_4' })
})

describe('a page in place of an answer says so, and asks about the base URL', () => {
  const page = (): Response => new Response('<h1>Welcome</h1>', { headers: { 'content-type': 'text/html' } })
  const hint = 'It is text/html: is the base URL that of a gateway?'

  test('where JSON was expected', async () => {
    expect((await failureOf(page)).message).toBe(`The answer cannot be read as JSON. ${hint}`)
  })

  test('where a stream was expected', async () => {
    standIn.server.use(answering('/chat/completions', page))
    const stream = await standIn.client.chat.completions.create({ ...CHAT, stream: true })

    await expect(collected(stream)).rejects.toThrow(hint)
  })

  test('where sound was expected, which is not taken for any', async () => {
    standIn.server.use(answering('/audio/speech', page))
    const call = standIn.client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello' })

    await expect(call).rejects.toSatisfy(ClientError.isInstance)
    await expect(call).rejects.toThrow(`The answer holds no bytes. ${hint}`)
    expect(standIn.clock.pending).toBe(0)
  })
})

describe('every error of a method contains the id of the request, if there is one', () => {
  const withId = { 'x-request-id': 'req_5' }

  test('when the answer stops in the middle', async () => {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{')) })
    standIn.server.use(answering('/chat/completions', () => new Response(body, { headers: withId })))
    const call = standIn.client.chat.completions.create(CHAT, {
      timeoutMs: 1_000,
      maxRetries: 0,
      onResponse: () => setImmediate(() => standIn.clock.advance(1_000)),
    })

    await expect(call).rejects.toMatchObject({ code: 'upstream_timeout', requestId: 'req_5' })
  })

  test('when a vector cannot be decoded', async () => {
    standIn.server.use(answering('/embeddings', json({ data: [{ embedding: 'AAAA' }] }, 200, withId)))
    const call = standIn.client.embeddings.create({ model: 'vy-4', input: 'a', encoding_format: 'base64' })

    await expect(call).rejects.toMatchObject({ requestId: 'req_5' })
  })

  test('is undefined, but of the same class, if an image was never sent', async () => {
    const builtins = process.getBuiltinModule
    Object.defineProperty(process, 'getBuiltinModule', { value: undefined, configurable: true })
    try {
      const call = standIn.client.images.edit({ model: 'gp-image-2', prompt: 'a', image: { path: 'boat.png' } })
      const error: unknown = await call.catch((cause: unknown) => cause)

      expect(ClientError.isInstance(error)).toBe(true)
      expect(error).toMatchObject({ code: 'invalid_request', param: 'image', requestId: undefined })
    } finally {
      Object.defineProperty(process, 'getBuiltinModule', { value: builtins, configurable: true })
    }
  })
})

test('errors are recognised across copies of the package', async () => {
  const copy = (await import('../../src/core/errors.ts?copy' as string)) as { GatewayError: typeof CoreError }
  const foreign = new copy.GatewayError('rate_limited')

  expect(foreign).not.toBeInstanceOf(GatewayError)
  expect(GatewayError.isInstance(foreign)).toBe(true)
  expect(GatewayError.isInstance(new ClientError('rate_limited'))).toBe(true)
  expect(ClientError.isInstance(new ClientError('rate_limited'))).toBe(true)
  expect(ClientError.isInstance(foreign)).toBe(false)
  expect(ClientError.isInstance({ requestId: 'req_1' })).toBe(false)
})
