import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ClientError, GatewayError } from '../../src/client/index.ts'
import { GatewayError as CoreError } from '../../src/core/errors.ts'
import { anthropicError, errorBody } from '../../src/endpoints/error-body.ts'
import { answering, json, type StandIn, startStandIn, unreachable } from './stand-in.ts'

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
    'with the seconds to wait, in the dialect %s',
    async (dialect) => {
      const body = JSON.parse(errorBody(limited, dialect, 'req_3')) as unknown
      const error = await failureOf(json(body, 429, { 'retry-after': '7' }))

      expect(error).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 7, retryable: true })
      expect(error.publicCode).toBe('Throttling.RateQuota')
    },
  )

  test('with a date to wait for, counted from now', async () => {
    const date = new Date(standIn.clock.now() + 30_000).toUTCString()
    const error = await failureOf(json({}, 503, { 'retry-after': date }))

    expect(error).toMatchObject({ code: 'upstream_unavailable', status: 503, retryAfterSeconds: 30 })
  })

  test("with a vendor's own code beside the gateway's", async () => {
    const body = { error: { message: 'no', type: 'invalid_request_error', param: null, code: 'DataInspectionFailed' } }
    const error = await failureOf(json(body, 400))

    expect(error).toMatchObject({ code: 'upstream_rejected', publicCode: 'DataInspectionFailed' })
  })

  test.each(['constructor', '__proto__', 'toString'])(
    'S38 and a code called %s is not looked up on objects',
    async (code) => {
      const error = await failureOf(() => new Response(`{"error":{"message":"no","code":"${code}"}}`, { status: 400 }))

      expect(error.code).toBe('upstream_rejected')
    },
  )

  test('even when a proxy in between answers with a page of its own', async () => {
    const error = await failureOf(() => new Response('<h1>Bad gateway</h1>', { status: 502 }))

    expect(error).toMatchObject({ code: 'upstream_invalid_response', status: 502, message: '<h1>Bad gateway</h1>' })
  })
})

test('an unreachable gateway is told by the same class, with the cause', async () => {
  const error = await failureOf(unreachable)

  expect(error).toMatchObject({ code: 'upstream_unavailable', retryable: true, requestId: undefined })
  expect(error.cause).toBeInstanceOf(TypeError)
})

test('a successful answer that is no JSON is an error, with the id of the request', async () => {
  const error = await failureOf(() => new Response('<h1>Welcome</h1>', { headers: { 'x-request-id': 'req_4' } }))

  expect(error).toMatchObject({ code: 'upstream_invalid_response', requestId: 'req_4' })
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
