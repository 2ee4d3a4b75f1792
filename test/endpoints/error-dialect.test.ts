import { describe, expect, test } from 'vitest'
import { ERROR_TABLE, type ErrorCode, GatewayError } from '../../src/core/errors.ts'
import { openaiError, retryAfterOf } from '../../src/endpoints/error-dialect.ts'
import { anthropicErrors } from '../../src/endpoints/messages/messages-errors.ts'
import { anthropicError, type DialectName, errorBody } from '../support/error-body.ts'

const CODES = Object.keys(ERROR_TABLE) as ErrorCode[]
const bodyOf = (error: GatewayError, dialect: DialectName): unknown => JSON.parse(errorBody(error, dialect, 'req_1'))

describe("OpenAI's dialect", () => {
  test('names message, type, param and code, in that order', () => {
    const error = new GatewayError('invalid_request', { message: 'n: too big', param: 'n' })

    expect(errorBody(error, 'openai', 'req_1')).toBe(
      '{"error":{"message":"n: too big","type":"invalid_request_error","param":"n","code":"invalid_request"}}',
    )
  })

  test('writes a param that is not known as null', () => {
    expect(bodyOf(new GatewayError('invalid_json'), 'openai')).toMatchObject({ error: { param: null } })
  })

  test("carries a vendor's own code and type", () => {
    const error = new GatewayError('upstream_rejected', { publicCode: 'InvalidParameter', type: 'bad_request' })

    expect(bodyOf(error, 'openai')).toMatchObject({ error: { code: 'InvalidParameter', type: 'bad_request' } })
  })
})

test('the multimodal dialect says the same twice, so that SDKs show it', () => {
  const error = new GatewayError('invalid_request', { message: 'no image', publicCode: 'InvalidParameter' })

  for (const dialect of ['multimodal', 'either'] as const) {
    expect(bodyOf(error, dialect)).toEqual({
      code: 'InvalidParameter',
      message: 'no image',
      request_id: 'req_1',
      error: { message: 'no image', type: 'invalid_request_error', param: null, code: 'InvalidParameter' },
    })
  }
})

test.each(['openai', 'multimodal', 'either'] as const)('a 429 carries both shapes in the dialect %s', (dialect) => {
  expect(bodyOf(new GatewayError('rate_limited', { message: 'slow down' }), dialect)).toEqual({
    code: 'Throttling.RateQuota',
    message: 'slow down',
    request_id: 'req_1',
    error: { message: 'slow down', type: 'rate_limit_error', param: null, code: 'Throttling.RateQuota' },
  })
})

test.each(['openai', 'multimodal', 'either'] as const)('a 402 is minimal in the dialect %s', (dialect) => {
  expect(bodyOf(new GatewayError('insufficient_balance', { message: 'no money' }), dialect)).toEqual({
    error: { message: 'no money' },
  })
})

describe("Anthropic's dialect", () => {
  test.each([
    ['invalid_request', 'invalid_request_error'],
    ['invalid_api_key', 'authentication_error'],
    ['insufficient_balance', 'billing_error'],
    ['permission_denied', 'permission_error'],
    ['model_not_found', 'not_found_error'],
    ['method_not_allowed', 'invalid_request_error'],
    ['idempotency_in_flight', 'conflict_error'],
    ['body_too_large', 'request_too_large'],
    ['rate_limited', 'rate_limit_error'],
    ['upstream_timeout', 'timeout_error'],
    ['internal_error', 'api_error'],
    ['upstream_unavailable', 'api_error'],
  ] as const)('%s is %s', (code, type) => {
    expect(bodyOf(new GatewayError(code, { message: 'text' }), 'anthropic')).toEqual({
      type: 'error',
      error: { type, message: 'text' },
      request_id: 'req_1',
    })
  })
})

test.each(CODES)('%s shows nothing of its cause in any dialect', (code) => {
  const error = new GatewayError(code, { cause: new Error('secret-canary') })
  const bodies = (['openai', 'multimodal', 'either', 'anthropic'] as const).map((dialect) =>
    errorBody(error, dialect, 'req_1'),
  )

  expect(bodies.join('')).not.toContain('secret-canary')
  expect(JSON.stringify(openaiError(error))).not.toContain('secret-canary')
})

test('an error event inside a stream has the same code as the body', () => {
  expect(openaiError(new GatewayError('rate_limited')).error['code']).toBe('Throttling.RateQuota')
})

test('sends retry-after with every 429 and 503, in whole seconds of at least one', () => {
  const without = CODES.filter((code) => retryAfterOf(new GatewayError(code)) === undefined)

  expect(without.filter((code) => [429, 503].includes(ERROR_TABLE[code].status))).toEqual([])
  expect(retryAfterOf(new GatewayError('rate_limited'))).toBe(1)
  expect(retryAfterOf(new GatewayError('store_unavailable'))).toBe(5)
  expect(retryAfterOf(new GatewayError('rate_limited', { retryAfterSeconds: 0.2 }))).toBe(1)
  expect(retryAfterOf(new GatewayError('rate_limited', { retryAfterSeconds: 6.1 }))).toBe(7)
  expect(retryAfterOf(new GatewayError('invalid_request'))).toBeUndefined()
})

const rejected = (message: string, publicCode?: string, type?: string): { type: string; message: string } =>
  anthropicError(new GatewayError('upstream_rejected', { message, publicCode, type }), 'req_1')['error'] as never

test.each([
  ['context_length_exceeded', "This model's maximum context length is 8192 tokens."],
  ['INVALID_ARGUMENT', 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).'],
])('reports a prompt too long for another vendor (%s) in the form that coding clients know', (code, text) => {
  expect(rejected(text, code).message).toBe(`capability_rejected: prompt_too_long: prompt is too long: ${text}`)
})

test.each([
  ['prompt is too long: 213423 tokens > 200000 maximum', undefined],
  ['input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000', undefined],
  ['the context window of this model', undefined],
  ["Invalid value for 'n'.", 'invalid_value'],
])('%s stays as it is', (text, code) => {
  expect(rejected(text, code).message).toBe(text)
})

test("a vendor's own type is kept where it says more than the status", () => {
  expect(rejected('text', undefined, 'request_too_large').type).toBe('request_too_large')
  expect(rejected('text', undefined, 'unheard_of').type).toBe('invalid_request_error')
})

test('an error inside a stream is a named event, without the id that the headers told', () => {
  expect(anthropicErrors.streamEvent(new GatewayError('upstream_timeout', { message: 'Too\nlate.' }))).toBe(
    'event: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"Too\\nlate."}}\n\n',
  )
})
