import { describe, expect, test } from 'vitest'
import { jsonAnswer, NOW_MS, vendor } from './gemini-call.ts'

const envelope = (code: string, message = 'text') => ({ error: { message, code } })

describe('errors of the Interactions API', () => {
  test.each<[number, string, string]>([
    [400, 'invalid_request', 'caller'],
    [400, 'content_blocked', 'caller'],
    [403, 'permission_denied', 'operator'],
    [404, 'not_found', 'operator'],
    [429, 'resource_exhausted', 'rate_limited'],
    [429, 'a_code_of_tomorrow', 'rate_limited'],
    [500, 'internal', 'unavailable'],
    [503, 'unavailable', 'unavailable'],
    [504, 'deadline_exceeded', 'timeout'],
  ])('HTTP %i with the code %s is %s', (status, code, kind) => {
    expect(vendor.errorFrom(jsonAnswer(envelope(code), status), NOW_MS)).toMatchObject({
      kind,
      status,
      code,
      message: 'text',
    })
  })

  test('what the front end refuses comes in Google\u2019s envelope, in a list', () => {
    const body = [{ error: { code: 403, message: 'text', status: 'PERMISSION_DENIED' } }]

    expect(vendor.errorFrom(jsonAnswer(body, 403), NOW_MS)).toMatchObject({ kind: 'operator', status: 403 })
  })

  test('classifies a 400 about the key as an operator problem', () => {
    const body = envelope('invalid_request', 'API key not valid. Please pass a valid API key.')

    expect(vendor.errorFrom(jsonAnswer(body, 400), NOW_MS).kind).toBe('operator')
  })
})

describe('a previous interaction that the vendor does not have', () => {
  test.each<[number, string, string]>([
    [404, 'not_found', 'previous_interaction_id not found'],
    [400, 'invalid_request', 'previous_interaction_id not found'],
    [400, 'invalid_request', 'Invalid previous_interaction_id: v1_upstream'],
    [404, 'not_found', 'Interaction v1_upstream was not found.'],
    [404, 'not_found', 'Could not find interaction v1_upstream'],
    [400, 'invalid_request', 'The previous interaction has expired.'],
  ])('HTTP %i %s "%s" is the caller\u2019s 404, in the words of the gateway', (status, code, message) => {
    expect(vendor.errorFrom(jsonAnswer(envelope(code, message), status), NOW_MS)).toEqual({
      kind: 'caller',
      status: 404,
      code: 'interaction_not_found',
      param: 'previous_interaction_id',
      message: 'There is no such interaction, or it has expired.',
    })
  })

  test.each<[number, string, string]>([
    [404, 'Model gemini-x is not found or does not support interactions.', 'operator'],
    [404, 'models/gemini-x is not found for API version v1beta', 'operator'],
    [400, 'previous_interaction_id cannot be used when store is false.', 'caller'],
    [503, 'The interaction was not found in time.', 'unavailable'],
  ])('HTTP %i "%s" is something else', (status, message, kind) => {
    const failure = vendor.errorFrom(jsonAnswer(envelope('x', message), status), NOW_MS)

    expect(failure).toMatchObject({ kind, status, message })
  })
})
