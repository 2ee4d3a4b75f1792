import { expect, expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { chatSchema } from '../../../src/endpoints/chat/chat-schema.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { embeddingsSchema } from '../../../src/endpoints/embeddings/embeddings-schema.ts'

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
  expect(Object.keys(chatSchema.shape).sort()).toEqual(Object.keys(CHAT_FIELDS).sort())
})

test('the embedding schema and the embedding request have the same fields', () => {
  expect(Object.keys(embeddingsSchema.shape).sort()).toEqual(Object.keys(EMBEDDINGS_FIELDS).sort())
})

test('what the interfaces allow, the schemas take', () => {
  expectTypeOf<EmbeddingsRequest['input']>().toEqualTypeOf<z.infer<typeof embeddingsSchema>['input']>()
  expectTypeOf<ChatRequest['stop']>().toEqualTypeOf<z.infer<typeof chatSchema>['stop']>()
  expectTypeOf<ChatRequest['reasoning_effort']>().toEqualTypeOf<z.infer<typeof chatSchema>['reasoning_effort']>()
})
