import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chatSchema } from '../../../src/endpoints/chat/chat-schema.ts'
import { isOrdinaryChatRequest } from '../../../src/endpoints/chat/ordinary-chat-request.ts'

const anything = fc.oneof(
  fc.integer({ min: -5, max: 10 }),
  fc.double(),
  fc.constantFrom(1e9, -0, 2 ** 53, 0.1, 2, 2.1),
  fc.boolean(),
  fc.string(),
  fc.constant(null),
  fc.array(fc.string(), { maxLength: 6 }),
  fc.dictionary(fc.string(), fc.anything({ maxDepth: 1, maxKeys: 3 }), { maxKeys: 3 }),
)
const roles = ['user', 'system', 'assistant', 'developer'] as const
const message = fc.record({ role: fc.constantFrom(...roles), content: fc.string() })
const ordinary = fc.record(
  {
    model: fc.string({ minLength: 1 }),
    messages: fc.array(message, { minLength: 1, maxLength: 3 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    presence_penalty: fc.double({ min: -2, max: 2, noNaN: true }),
    frequency_penalty: fc.double({ min: -2, max: 2, noNaN: true }),
    max_tokens: fc.integer({ min: 1 }),
    max_completion_tokens: fc.integer({ min: 1 }),
    stream: fc.boolean(),
    stream_options: fc.record({ include_usage: fc.boolean() }),
    stop: fc.string(),
    user: fc.string(),
  },
  { requiredKeys: ['model', 'messages'] },
)
/** Takes the place of one member of an ordinary request: only there can the two judgements differ. */
const change = fc.oneof(
  fc.record({ model: anything }),
  fc.record({ messages: anything }),
  fc
    .record(
      {
        role: fc.oneof(fc.constantFrom(...roles, 'tool'), anything),
        content: anything,
        name: anything,
        more: anything,
      },
      { requiredKeys: ['role'] },
    )
    .map((changed) => ({ messages: [{ content: 'hi', ...changed }] })),
  fc
    .tuple(
      fc.constantFrom('temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'max_tokens', 'stop', 'n'),
      anything,
    )
    .map(([name, value]) => ({ [name]: value })),
  fc
    .tuple(fc.constantFrom('max_completion_tokens', 'stream', 'stream_options', 'user', 'tools'), anything)
    .map(([name, value]) => ({ [name]: value })),
  fc.record({ stream_options: fc.record({ include_usage: anything }) }),
)

describe('an ordinary chat request', () => {
  test('is one that the schema takes, whatever its settings are', () => {
    fc.assert(
      fc.property(ordinary, (body) => {
        expect(isOrdinaryChatRequest(body)).toBe(true)
        expect(chatSchema.safeParse(body).error).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  test('is never one that the schema refuses, whatever one of its members becomes', () => {
    let ordinaries = 0
    let refused = 0

    fc.assert(
      fc.property(ordinary, change, (plain, changed) => {
        const body = { ...plain, ...changed }
        const isTaken = chatSchema.safeParse(body).success
        const isOrdinary = isOrdinaryChatRequest(body)
        if (isOrdinary) ordinaries += 1
        if (!isTaken) refused += 1
        expect(isOrdinary && !isTaken).toBe(false)
      }),
      { numRuns: 4_000 },
    )

    // Both judgements occur, or nothing has been compared.
    expect(ordinaries).toBeGreaterThan(100)
    expect(refused).toBeGreaterThan(1_000)
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
