import { describe, expect, test } from 'vitest'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { jsonAnswer, NOW_MS, vendor } from './gemini-call.ts'

const google = (code: number, status: string, message = 'text', details: unknown[] = []) => ({
  error: { code, message, status, details },
})

describe('the kind of an error', () => {
  test.each([
    [400, 'INVALID_ARGUMENT', 'caller'],
    [400, 'OUT_OF_RANGE', 'caller'],
    [400, 'FAILED_PRECONDITION', 'operator'],
    [401, 'UNAUTHENTICATED', 'operator'],
    [403, 'PERMISSION_DENIED', 'operator'],
    [404, 'NOT_FOUND', 'operator'],
    [409, 'ABORTED', 'unavailable'],
    [409, 'ALREADY_EXISTS', 'unavailable'],
    [429, 'RESOURCE_EXHAUSTED', 'rate_limited'],
    [499, 'CANCELLED', 'unavailable'],
    [500, 'INTERNAL', 'unavailable'],
    [500, 'UNKNOWN', 'unavailable'],
    [500, 'DATA_LOSS', 'unavailable'],
    [501, 'UNIMPLEMENTED', 'operator'],
    [503, 'UNAVAILABLE', 'unavailable'],
    [504, 'DEADLINE_EXCEEDED', 'timeout'],
    [418, 'A_STATUS_OF_TOMORROW', 'caller'],
    [530, 'A_STATUS_OF_TOMORROW', 'unavailable'],
  ])('HTTP %i %s is %s', (status, token, kind) => {
    const failure = vendor.errorFrom(jsonAnswer(google(status, token), status), NOW_MS)

    expect(failure).toMatchObject({ kind, status, message: 'text', code: token })
  })

  test.each([
    [
      'a reason in the details',
      [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
      'Bad.',
    ],
    ['the text alone', [], 'API key not valid. Please pass a valid API key.'],
    ['an expired key', [], 'API key expired. Please renew the API key.'],
  ])('classifies a 400 for a bad key with %s as an operator problem', (_case, details, message) => {
    const answer = jsonAnswer(google(400, 'INVALID_ARGUMENT', message, details), 400)

    expect(vendor.errorFrom(answer, NOW_MS).kind).toBe('operator')
  })

  test('does not mistake the name of a property for a bad key', () => {
    const place = 'GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[API key not]'
    const answer = jsonAnswer(google(400, 'INVALID_ARGUMENT', `* ${place}.items: missing field.`), 400)

    expect(vendor.errorFrom(answer, NOW_MS).kind).toBe('caller')
  })

  test('the 404 of a retired embedding model is the operator\u2019s', () => {
    const answer = jsonAnswer(
      google(404, 'NOT_FOUND', 'models/text-embedding-004 is not found for API version v1beta'),
      404,
    )

    expect(vendor.errorFrom(answer, NOW_MS).kind).toBe('operator')
  })
})

describe('quotas', () => {
  const quota = (quotaId: string, retryDelay?: string) =>
    google(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.', [
      { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId, quotaValue: '10' }] },
      { '@type': 'type.googleapis.com/google.rpc.Help', links: [] },
      ...(retryDelay === undefined ? [] : [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }]),
    ])

  test('a limit per minute is a rate limit with the vendor\u2019s delay', () => {
    const failure = vendor.errorFrom(jsonAnswer(quota('RequestsPerMinutePerProject', '21.5s'), 429), NOW_MS)

    expect(failure).toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 21.5 })
  })

  test('a limit per day is the operator\u2019s matter', () => {
    const failure = vendor.errorFrom(jsonAnswer(quota('GenerateRequestsPerDayPerProjectPerModel', '30s'), 429), NOW_MS)

    expect(failure.kind).toBe('operator')
  })

  test('without RetryInfo the header counts', () => {
    const failure = vendor.errorFrom(jsonAnswer(quota('RequestsPerMinute'), 429, { 'retry-after': '4' }), NOW_MS)

    expect(failure).toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 4 })
  })
})

test.each([
  [403, 'PERMISSION_DENIED', 'You do not have permission to access the File abc or it may not exist.', 'caller'],
  [404, 'NOT_FOUND', 'File files/abc not found.', 'caller'],
  [404, 'NOT_FOUND', 'models/x is not found for API version v1beta, or takes no files', 'operator'],
  [401, 'UNAUTHENTICATED', 'No credentials for files.', 'operator'],
])('HTTP %i %s "%s" is %s: files are named by callers', (status, token, message, kind) => {
  expect(vendor.errorFrom(jsonAnswer(google(status, token, message), status), NOW_MS).kind).toBe(kind)
})

describe('envelopes', () => {
  test.each([
    ['an array of one', 403, [google(403, 'PERMISSION_DENIED', 'blocked')], 'operator', 'blocked'],
    ['a text code', 400, { error: { code: 'invalid_request', message: 'no' } }, 'caller', 'no'],
    ['a text code for blocked input', 400, { error: { code: 'content_blocked', message: 'no' } }, 'caller', 'no'],
    ['an unknown text code', 500, { error: { code: 'oops', message: 'no' } }, 'unavailable', 'no'],
    ['a bare text', 502, { error: 'no' }, 'unavailable', 'no'],
  ])('%s is read', (_case, status, body, kind, message) => {
    expect(vendor.errorFrom(jsonAnswer(body, status), NOW_MS)).toMatchObject({ kind, status, message })
  })

  test.each([
    [400, 'caller'],
    [413, 'caller'],
    [404, 'operator'],
    [429, 'rate_limited'],
    [503, 'unavailable'],
    [504, 'timeout'],
    [302, 'invalid_response'],
  ])('HTTP %i with a page instead of JSON is %s, and the page is not quoted', (status, kind) => {
    const answer = { status, headers: {}, body: new TextEncoder().encode('<html>secret</html>') }

    const failure = vendor.errorFrom(answer, NOW_MS)

    expect(failure).toMatchObject({ kind, status })
    expect(failure.message).not.toContain('secret')
  })

  test('an error inside a 200 is read as the error it is', () => {
    expect(vendor.errorFrom(jsonAnswer(google(503, 'UNAVAILABLE')), NOW_MS)).toMatchObject({
      kind: 'unavailable',
      status: 503,
    })
  })

  test('a 200 that holds nothing usable is an invalid response', () => {
    expect(vendor.errorFrom(jsonAnswer({}), NOW_MS)).toMatchObject({ kind: 'invalid_response' })
  })
})

describe('redaction', () => {
  test.each([
    ['the configured key', 'my-own-secret-key'],
    ['a Google key', 'AIzaSyA-1234567890abcdefghijklmnopqrstu'],
    ['a key of the newer form', 'AQ.Ab8RN6K1234567890abcdef'],
    ['a token', 'ya29.a0AfH6SMBx-1234'],
  ])('removes %s from messages', (_case, secret) => {
    const configured = gemini({ apiKey: ['another-secret-key', 'my-own-secret-key'] })

    const failure = configured.errorFrom(
      jsonAnswer(google(400, 'INVALID_ARGUMENT', `key ${secret} is bad`), 400),
      NOW_MS,
    )

    expect(failure.message).toBe('key [redacted] is bad')
  })
})
