import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import { anthropicError } from '../../../src/endpoints/error-body.ts'
import { messagesStreamError } from '../../../src/endpoints/messages/messages-stream-error.ts'

const rejected = (message: string, publicCode?: string, type?: string): { type: string; message: string } =>
  anthropicError(new GatewayError('upstream_rejected', { message, publicCode, type }), 'req_1')['error'] as never

test.each([
  ['context_length_exceeded', "This model's maximum context length is 8192 tokens."],
  ['INVALID_ARGUMENT', 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).'],
])('a prompt that another vendor finds too long (%s) is told in words that coding clients know', (code, text) => {
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
  expect(messagesStreamError(new GatewayError('upstream_timeout', { message: 'Too\nlate.' }))).toBe(
    'event: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"Too\\nlate."}}\n\n',
  )
})
