import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chatEndpoint } from '../../src/endpoints/chat/chat-endpoint.ts'
import type { ChatRequest } from '../../src/endpoints/chat/chat-request.ts'
import { embeddingsEndpoint } from '../../src/endpoints/embeddings/embeddings-endpoint.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS, estimateTokens } from '../../src/endpoints/token-estimate.ts'

test.each([
  [0, 1],
  [1, 1],
  [3, 1],
  [4, 2],
  [3_000_000, 1_000_000],
])('%i bytes are at most %i tokens', (bytes, tokens) => {
  expect(estimateTokens(bytes)).toBe(tokens)
})

test('more bytes are never fewer tokens', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (one, more) => {
      expect(estimateTokens(one + more)).toBeGreaterThanOrEqual(estimateTokens(one))
    }),
  )
})

describe('the estimate of a chat', () => {
  const request = (fields: Partial<ChatRequest>): ChatRequest => ({
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    ...fields,
  })
  const limits = { maxOutputTokens: 1000 }

  test.each([
    ['the bound of the request', { max_tokens: 50 }, limits, 50],
    ['the newer bound before the older', { max_tokens: 50, max_completion_tokens: 70 }, limits, 70],
    ['the bound for every choice', { max_tokens: 50, n: 3 }, limits, 150],
    ["the model's own bound without one", {}, limits, 1000],
    ['a usual bound when nothing is known', {}, {}, DEFAULT_MAX_OUTPUT_TOKENS],
    ['no bound of null', { max_tokens: null, max_completion_tokens: null, n: null }, limits, 1000],
  ])('takes %s', (_name, fields, modelLimits, outputTokens) => {
    expect(chatEndpoint.estimate(request(fields), 10, { id: 'm', limits: modelLimits })).toEqual({
      inputTokens: 10,
      outputTokens,
    })
  })
})

test('the estimate of embeddings has no output', () => {
  expect(embeddingsEndpoint.estimate({ model: 'm', input: 'hi' }, 10, { id: 'm', limits: {} })).toEqual({
    inputTokens: 10,
    outputTokens: 0,
  })
})
