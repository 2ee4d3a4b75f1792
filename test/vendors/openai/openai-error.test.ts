import { describe, expect, it } from 'vitest'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { errorReader } from '../../../src/vendors/shared/openai-error.ts'
import { NOW_MS, wireAnswer } from '../shared/vendor-call.ts'

const KEY = 'sk-proj-0123456789abcdefghij'
const vendor = openai({ apiKey: [KEY, 'another-secret-key'] })

function failure(status: number, body: unknown, headers: Record<string, string> = {}) {
  return vendor.errorFrom(wireAnswer(body, status, headers), NOW_MS)
}

function envelope(code: string | null, message = 'A text.', extra: object = {}) {
  return { error: { message, type: 'invalid_request_error', param: null, code, ...extra } }
}

describe('openai failures', () => {
  for (const [status, body, kind] of [
    [400, envelope('invalid_value'), 'caller'],
    [400, envelope('context_length_exceeded', "This model's maximum context length is 8192 tokens."), 'caller'],
    [404, envelope(null, 'No such file.'), 'caller'],
    [413, envelope(null), 'caller'],
    [422, envelope(null), 'caller'],
    [400, envelope('model_not_found'), 'operator'],
    [404, envelope('model_not_found', 'The model `gpt-x` does not exist or you do not have access to it.'), 'operator'],
    [404, envelope(null, 'The model gpt-4 has been deprecated.'), 'operator'],
    [400, envelope(null, 'Unknown.', { param: 'model' }), 'operator'],
    [404, envelope(null, 'This model does not support chat.', { param: 'model' }), 'operator'],
    [400, envelope('invalid_value', 'This model requires that the input contain audio.', { param: 'model' }), 'caller'],
    [400, envelope(null, 'The model `x` does not support image inputs.', { param: 'model' }), 'caller'],
    [404, envelope(null, 'No such File object: file-1', { param: 'file_id' }), 'caller'],
    [404, '<html><title>404 Not Found</title></html>', 'operator'],
    [401, envelope('invalid_api_key'), 'operator'],
    [402, envelope(null), 'operator'],
    [403, envelope('unsupported_country_region_territory'), 'operator'],
    [429, envelope('insufficient_quota'), 'operator'],
    [429, envelope(null, 'No money.', { type: 'insufficient_quota' }), 'operator'],
    [429, envelope('billing_hard_limit_reached'), 'operator'],
    [429, envelope('rate_limit_exceeded'), 'rate_limited'],
    [429, 'slow down', 'rate_limited'],
    [408, '', 'timeout'],
    [504, '<html><title>504 Gateway Time-out</title></html>', 'timeout'],
    [500, envelope(null, 'Oops.', { type: 'server_error' }), 'unavailable'],
    [502, '<html><head><title>Bad Gateway</title></head></html>', 'unavailable'],
    [503, '', 'unavailable'],
    // SDKs retry this: another request was using the object.
    [409, envelope(null, 'Another request is changing it.'), 'unavailable'],
    [529, '', 'unavailable'],
    [301, '', 'invalid_response'],
    [307, '', 'invalid_response'],
    [405, envelope(null), 'invalid_response'],
    [200, '<html></html>', 'invalid_response'],
    [200, '{"id":"c","choices":[]}', 'invalid_response'],
    [200, { error: { message: 'overloaded', type: 'server_error' } }, 'unavailable'],
    [200, { error: { message: 'busy', code: 429 } }, 'rate_limited'],
    [200, envelope('invalid_value'), 'caller'],
    [200, envelope('moderation_blocked', 'Rejected.', { type: 'image_generation_user_error' }), 'caller'],
    [200, envelope(null, 'Rejected.', { type: 'image_generation_user_error' }), 'caller'],
    [200, envelope('content_policy_violation', 'Rejected.', { type: 'server_error' }), 'caller'],
  ] as const) {
    it(`a ${status} with ${JSON.stringify(body).slice(0, 70)} is a matter of: ${kind}`, () => {
      expect(failure(status, body).kind).toBe(kind)
    })
  }

  it.each([
    // OpenAI's own sentences about a value, and about an unknown member.
    [
      "Invalid value: 'the model does not exist'. Supported values are: 'low', 'medium', and 'high'.",
      'reasoning_effort',
    ],
    ["Unknown parameter: 'this model is deprecated'.", 'this model is deprecated'],
    ['Unrecognized request argument supplied: model not found', null],
    ["The model `x` does not support the tool 'no longer available'.", null],
    ['The model produced invalid content for: is deprecated', null],
    ['Model not found', 'messages[0].name'],
    ["litellm.BadRequestError: OpenAIException - Unknown parameter: 'this model is deprecated'.", null],
  ])('takes no words of a caller for a fault of the model: %s', (message, param) => {
    expect(failure(400, envelope('invalid_value', message, { param })).kind).toBe('caller')
    expect(failure(404, envelope(null, message, { param })).kind).toBe('caller')
  })

  it('takes no member that a caller invents for a fault of the model or the key', () => {
    const detail = (name: string) => ({
      detail: [{ type: 'extra_forbidden', loc: ['body', name], msg: 'Extra inputs are not permitted' }],
    })

    expect(failure(422, detail('model not found'))).toMatchObject({ kind: 'caller' })
    expect(failure(400, detail('<401> '))).toMatchObject({ kind: 'caller' })
  })

  it.each([
    'The model `gpt-x` does not exist or you do not have access to it.',
    "The requested model 'gpt-x' does not exist.",
    'The model `gpt-x` has been deprecated, learn more here: https://platform.example',
    'The model `x` has been decommissioned and is no longer supported. Please refer to https://console.example',
    'Model Not Exist',
    'Model not exist.',
    'Model not found (x)!',
    'Model not found, inaccessible, and/or not deployed',
    'model "x" not found, try pulling it first',
    "model 'x' not found, make sure the correct model ID was used and that you have access to the model.",
    'The model x does not exist or your team 0-1 does not have access to it.',
    'Model x is not found or no longer supported.',
    'This model is no longer available.',
    'litellm.NotFoundError: OpenAIException - The model `x` does not exist or you do not have access to it.. Received Model Group=x',
    'litellm.NotFoundError: NotFoundError: Hosted_vllmException - The model `x` does not exist.',
  ])('knows a fault of the model by the sentence of a vendor: %s', (message) => {
    expect(failure(400, envelope(null, message)).kind).toBe('operator')
  })

  it("keeps the vendor's words about the caller's input", () => {
    expect(failure(400, envelope('invalid_value', "Invalid value for 'n'.", { param: 'n' }))).toEqual({
      kind: 'caller',
      status: 400,
      message: "Invalid value for 'n'.",
      code: 'invalid_value',
      type: 'invalid_request_error',
      param: 'n',
    })
  })

  it('shows an error in disguise about the input as a 400', () => {
    expect(failure(200, envelope('invalid_value')).status).toBe(400)
  })

  it('reads how long to wait, where waiting helps', () => {
    expect(failure(429, envelope('rate_limit_exceeded'), { 'retry-after': '7' }).retryAfterSeconds).toBe(7)
    expect(failure(503, '', { 'retry-after-ms': '1500' }).retryAfterSeconds).toBe(1.5)
    for (const status of [408, 504, 524])
      expect(failure(status, '', { 'retry-after': '7' })).toMatchObject({ kind: 'timeout', retryAfterSeconds: 7 })
    expect(failure(429, envelope('rate_limit_exceeded')).retryAfterSeconds).toBeUndefined()
    expect(failure(429, envelope('insufficient_quota'), { 'retry-after': '7' }).retryAfterSeconds).toBeUndefined()
  })

  it('takes the title of a page and the beginning of a text as the message', () => {
    expect(failure(502, '<html><title> Bad Gateway </title>…</html>').message).toBe('Bad Gateway')
    expect(failure(502, 'x'.repeat(900)).message).toHaveLength(500)
    expect(failure(503, '').message).toBe('The vendor answered with status 503.')
  })

  it('looks for a title among many beginnings of one in a moment', () => {
    expect(failure(502, '<title'.repeat(60_000)).message).toBe('The vendor answered with status 502.')
  })

  for (const text of [
    `Incorrect API key provided: ${KEY}.`,
    'Incorrect API key provided: sk-proj-****************ghij.',
    'Header was: Bearer abc.def-ghi.',
    'Key another-secret-key is blocked.',
  ]) {
    it(`redacts the credential in: ${text}`, () => {
      for (const body of [envelope('invalid_value', text), { error: text }, text, { detail: text }]) {
        const { message } = failure(400, body)

        expect(message).toContain('[redacted]')
        expect(message).not.toMatch(/sk-proj|abc\.def|another-secret|ghij/)
      }
    })
  }

  it.each([
    ['Please try again in 11.054s. Visit …', 11.054],
    ['Please try again in 20ms.', 0.02],
    ['Please try again in 1m2.5s.', 62.5],
    ['Please try again in 2h0m5s.', 7_205],
    ['Please try again in 1 second.', 1],
    ['Please try again in 3m.', 180],
    ['Please try again in 2 minutes.', 120],
    ['Please try again in 500 milliseconds.', undefined],
    ['Please try again in 24h.', 86_400],
    ['Please try again in 25h.', undefined],
    [`Please try again in ${'9'.repeat(20)}s.`, undefined],
    ['Please try again in 3 days.', undefined],
    ['Please try again in a while.', undefined],
  ])('reads the wait in the text of an error inside a stream: %s', (message, seconds) => {
    const { fromStream } = errorReader({}, [])
    expect(fromStream(envelope('rate_limit_exceeded', message)).retryAfterSeconds).toBe(seconds)
    expect(fromStream(envelope('insufficient_quota', message)).retryAfterSeconds).toBe(undefined)
  })

  it('shows nothing of an object that may be an answer', () => {
    const answer = { message: { role: 'assistant', content: 'A secret.' }, done: true }
    for (const status of [200, 500]) expect(failure(status, answer).message).not.toContain('secret')
  })

  it('never throws, whatever the body', () => {
    for (const body of [
      '',
      'null',
      '[]',
      '[{"error":{}}]',
      '7',
      '{"error":[]}',
      '{"error":null}',
      '{"detail":[7,{}]}',
      '{"detail":[]}',
      '{"error":{"message":{}}}',
      `{"error":{"message":${'{"detail":'.repeat(50_000)}1${'}'.repeat(50_000)}}}`,
      `{"error":{"message":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`,
    ]) {
      for (const status of [200, 302, 400, 418, 429, 500]) expect(failure(status, body).message).not.toBe('')
    }
  })
})
