import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chatSchema } from '../../../src/endpoints/chat/chat-schema.ts'
import { isOrdinaryChatRequest } from '../../../src/endpoints/chat/ordinary-chat-request.ts'

const anyNumber = fc.oneof(
  fc.integer({ min: -5, max: 10 }),
  fc.double(),
  fc.constantFrom(1e9, -0, 2 ** 53, 0.1, 2, 2.1),
)
const value = fc.oneof(
  anyNumber,
  fc.boolean(),
  fc.string(),
  fc.constant(null),
  fc.array(fc.string(), { maxLength: 6 }),
  fc.dictionary(fc.string(), fc.anything()),
)
const setting = fc.oneof(value, fc.record({ include_usage: value }))
const message = fc.record(
  {
    role: fc.oneof(fc.constantFrom('user', 'system', 'assistant', 'developer', 'tool'), fc.string()),
    content: fc.oneof(fc.string(), value),
    name: fc.string(),
    tool_call_id: fc.string(),
  },
  { requiredKeys: ['role'] },
)
const request = fc.record(
  {
    model: fc.oneof(fc.string(), value),
    messages: fc.oneof(fc.array(message, { maxLength: 3 }), value),
    temperature: setting,
    top_p: setting,
    presence_penalty: setting,
    frequency_penalty: setting,
    max_tokens: setting,
    max_completion_tokens: setting,
    stream: setting,
    stream_options: setting,
    stop: setting,
    user: setting,
    n: setting,
  },
  { requiredKeys: ['model', 'messages'] },
)

describe('an ordinary chat request', () => {
  test('is never one that the schema refuses', () => {
    fc.assert(
      fc.property(request, (body) => {
        if (isOrdinaryChatRequest(body)) expect(chatSchema.safeParse(body).success).toBe(true)
      }),
      { numRuns: 20_000 },
    )
  })

  test.each([
    ['the plainest', {}, true],
    ['with common settings', { temperature: 2, top_p: 0, max_tokens: 1, stream: true, stop: 'x', user: 'u' }, true],
    ['with usage in the stream', { stream: true, stream_options: { include_usage: true } }, true],
    ['out of bounds', { temperature: 2.1 }, false],
    ['with a fraction of a token', { max_tokens: 1.5 }, false],
    ['with null', { temperature: null }, false],
    ['with tools', { tools: [] }, false],
    ['with a field nobody knows', { extra: 1 }, false],
  ])('%s: %o is judged at once: %s', (_name, settings, expected) => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...settings }
    expect(isOrdinaryChatRequest(body)).toBe(expected)
  })
})
