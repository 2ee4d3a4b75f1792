import fc from 'fast-check'
import { expect, expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { chatSchema } from '../../../src/endpoints/chat/chat-schema.ts'
import { type EmbeddingsRequest, embeddingsSchema } from '../../../src/endpoints/embeddings/embeddings-request.ts'

/** The named members of a type that also has an index signature. */
type Named<Type> = keyof {
  [Name in keyof Type as string extends Name ? never : number extends Name ? never : Name]: true
}

const CHAT_FIELDS: Record<Named<ChatRequest>, true> = {
  model: true,
  messages: true,
  temperature: true,
  top_p: true,
  max_tokens: true,
  max_completion_tokens: true,
  n: true,
  stream: true,
  stream_options: true,
  stop: true,
  presence_penalty: true,
  frequency_penalty: true,
  logit_bias: true,
  logprobs: true,
  top_logprobs: true,
  seed: true,
  tools: true,
  tool_choice: true,
  parallel_tool_calls: true,
  response_format: true,
  reasoning_effort: true,
  user: true,
}

const EMBEDDINGS_FIELDS: Record<Named<EmbeddingsRequest>, true> = {
  model: true,
  input: true,
  encoding_format: true,
  dimensions: true,
  user: true,
}

test('the chat schema and the chat request have the same fields', () => {
  expect(Object.keys(chatSchema().shape).sort()).toEqual(Object.keys(CHAT_FIELDS).sort())
})

test('the embedding schema and the embedding request have the same fields', () => {
  expect(Object.keys(embeddingsSchema().shape).sort()).toEqual(Object.keys(EMBEDDINGS_FIELDS).sort())
})

test('what the interfaces allow, the schemas take', () => {
  expectTypeOf<EmbeddingsRequest['input']>().toEqualTypeOf<z.infer<ReturnType<typeof embeddingsSchema>>['input']>()
  expectTypeOf<ChatRequest['stop']>().toEqualTypeOf<z.infer<ReturnType<typeof chatSchema>>['stop']>()
  expectTypeOf<ChatRequest['reasoning_effort']>().toEqualTypeOf<
    z.infer<ReturnType<typeof chatSchema>>['reasoning_effort']
  >()
})

const ordinary = fc.record(
  {
    model: fc.string({ minLength: 1 }),
    messages: fc.array(
      fc.record({ role: fc.constantFrom('user', 'system', 'assistant', 'developer'), content: fc.string() }),
      { minLength: 1, maxLength: 3 },
    ),
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

test('the chat schema takes an ordinary request, whatever its settings are', () => {
  fc.assert(
    fc.property(ordinary, (body) => {
      expect(chatSchema().safeParse(body).error).toBeUndefined()
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['no settings', {}, true],
  ['common settings', { temperature: 2, top_p: 0, max_tokens: 1, stream: true, stop: 'x', user: 'u' }, true],
  ['usage in the stream', { stream: true, stream_options: { include_usage: true } }, true],
  ['null for a setting', { temperature: null }, true],
  ['no tools', { tools: [] }, true],
  ['an unknown field', { extra: 1 }, true],
  ['a seed of 64 bits', { seed: -(2 ** 63) }, true],
  ['a seed that is no integer', { seed: 1.5 }, false],
  ['a temperature out of bounds', { temperature: 2.1 }, false],
  ['a fraction of a token', { max_tokens: 1.5 }, false],
  ['a text for a boolean', { stream: 'true' }, false],
  ['usage that is no boolean', { stream_options: { include_usage: 1 } }, false],
])('the chat schema judges a request with %s: %o is taken: %s', (_name, settings, expected) => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...settings }
  expect(chatSchema().safeParse(body).success).toBe(expected)
})
