import { describe, expect, it } from 'vitest'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'

const KEY = 'operator-canary-key-42'
const vendor = anthropic({ apiKey: KEY })

const failure = (status: number, body: string, headers: Record<string, string> = {}) =>
  vendor.errorFrom({ status, headers, body: new TextEncoder().encode(body) }, 1_795_132_800_000)

const envelope = (type: string, message = 'Text of the vendor', details?: unknown) =>
  JSON.stringify({ type: 'error', error: { type, message, ...(details ? { details } : {}) }, request_id: 'req_011' })

describe('errors of Anthropic', () => {
  it.each([
    [400, 'invalid_request_error', 'caller'],
    [401, 'authentication_error', 'operator'],
    [402, 'billing_error', 'operator'],
    [403, 'permission_error', 'operator'],
    [404, 'not_found_error', 'operator'],
    [408, 'timeout_error', 'timeout'],
    [409, 'conflict_error', 'unavailable'],
    [413, 'request_too_large', 'caller'],
    [422, 'invalid_request_error', 'caller'],
    [429, 'rate_limit_error', 'rate_limited'],
    [500, 'api_error', 'unavailable'],
    [504, 'timeout_error', 'timeout'],
    [529, 'overloaded_error', 'unavailable'],
    [302, '', 'invalid_response'],
    [200, 'overloaded_error', 'unavailable'],
    [200, 'of_the_future', 'invalid_response'],
  ])('classifies status %d and type %s as %s', (status, type, kind) => {
    expect(failure(status, envelope(type))).toMatchObject({ kind, status, message: 'Text of the vendor' })
  })

  it('passes on by which details its clients recover, without keys and if they are short', () => {
    const details = { error_code: 'thread_not_found', seen: `Bearer ${KEY}` }
    expect(failure(404, envelope('not_found_error', 'Nothing is there.', details))).toMatchObject({
      kind: 'caller',
      code: 'thread_not_found',
      details: { error_code: 'thread_not_found', seen: '[redacted]' },
    })
    const long = { error_code: 'thread_not_found', text: 'x'.repeat(3_000) }
    expect(failure(404, envelope('not_found_error', 'Nothing is there.', long)).details).toBe(undefined)
  })

  it('keeps the text about the caller’s input as it is', () => {
    const text = 'messages.2.content.0.text: prompt is too long: 210000 tokens > 200000 maximum'

    expect(failure(400, envelope('invalid_request_error', text))).toMatchObject({
      kind: 'caller',
      message: text,
      type: 'invalid_request_error',
    })
  })

  it.each([
    [404, 'not_found_error', 'File not found: file_011', 'caller'],
    [403, 'permission_error', 'You may not use the container container_1.', 'caller'],
    [404, 'not_found_error', 'model: claude-no-more', 'operator'],
    [403, 'permission_error', 'Your key may not use the specified resource.', 'operator'],
  ])('classifies status %d, type %s and text "%s" as %s', (status, type, message, kind) => {
    expect(failure(status, envelope(type, message)).kind).toBe(kind)
  })

  it('reads how long to wait', () => {
    expect(failure(429, envelope('rate_limit_error'), { 'retry-after': '17' }).retryAfterSeconds).toBe(17)
  })

  it('takes a spend limit that was reached for the operator’s matter', () => {
    const body = envelope('rate_limit_error', 'Limit reached', { error_code: 'enforced_spend_limit_reached' })

    expect(failure(429, body)).toMatchObject({ kind: 'operator', code: 'enforced_spend_limit_reached' })
  })

  it.each([
    'Your credit balance is too low to access the API.',
    'You have reached your specified API usage limits.',
    'You have reached your specified workspace API usage limits.',
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
    'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
    'This organization has been disabled.',
  ])('classifies “%s” as an operator problem despite the status 400', (text) => {
    expect(failure(400, envelope('invalid_request_error', text)).kind).toBe('operator')
  })

  it.each([
    "messages.0.content.0: Input tag 'credit balance is too low' found using 'type' does not match any of the expected tags",
    'Your credit balance is too low: Extra inputs are not permitted',
    'metadata.You have reached your specified API usage limits: Extra inputs are not permitted',
    'This organization has been disabled: Extra inputs are not permitted',
  ])('takes no words of a caller for the operator’s matter: %s', (text) => {
    expect(failure(400, envelope('invalid_request_error', text)).kind).toBe('caller')
  })

  it.each([
    [
      'OpenAI’s shape',
      '{"error":{"message":"No","type":"bad","code":"c1"}}',
      { message: 'No', type: 'bad', code: 'c1' },
    ],
    ['a flat shape', '{"code":"c2","message":"No"}', { message: 'No', code: 'c2' }],
    ['a bare text', '{"error":"No"}', { message: 'No' }],
    ['HTML', '<html>Bad gateway</html>', { message: '<html>Bad gateway</html>' }],
    ['nothing', '', { message: '' }],
    ['another JSON value', '[1]', { message: '[1]' }],
  ])('tolerates %s', (_what, body, expected) => {
    expect(failure(502, body)).toMatchObject({ kind: 'unavailable', ...expected })
  })

  it('removes credentials from the text', () => {
    const text = `key ${KEY} or sk-ant-api03-abcDEF_123-xyz or Bearer abc.def is bad`

    const { message } = failure(400, envelope('invalid_request_error', text))

    expect(message).not.toContain(KEY)
    expect(message).not.toContain('api03')
    expect(message).not.toContain('abc.def')
  })

  it('truncates a long page that is not JSON', () => {
    expect(failure(503, 'x'.repeat(10_000)).message.length).toBe(500)
  })
})
