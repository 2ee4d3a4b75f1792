import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chatEndpoint } from '../../src/endpoints/chat/chat-endpoint.ts'
import type { ChatRequest } from '../../src/endpoints/chat/chat-request.ts'
import { embeddingsEndpoint } from '../../src/endpoints/embeddings/embeddings-endpoint.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS, denseTokensIn, estimateTokens } from '../../src/endpoints/token-estimate.ts'

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

describe('the density of a text', () => {
  const tokens = (text: string): number => {
    const bytes = Buffer.from(text)
    return estimateTokens(bytes.byteLength, { denseTokens: denseTokensIn(bytes) })
  }
  const perByte = (text: string): number => tokens(text) / Buffer.byteLength(text)

  test.each([
    ['prose', 'The quick brown fox jumps over the lazy dog, and then it sleeps for an hour in the warm sun. '],
    ['German', 'Die künstliche Intelligenz ist ein Teilgebiet der Informatik und befasst sich mit Verhalten. '],
    [
      'program code',
      'export function sum(values: readonly number[]): number {\n  return values.reduce(add, start)\n}\n',
    ],
    ['JSON', JSON.stringify({ messages: [{ role: 'user', content: 'What is the weather in Paris today?' }] })],
  ])('leaves %s at a token for three bytes', (_what, text) => {
    expect(perByte(text.repeat(20))).toBeLessThan(0.334)
  })

  // Tokens per byte that the tokenizers of OpenAI (o200k), Anthropic and Llama make at most.
  test.each([
    [
      'random base64',
      Buffer.from(Array.from({ length: 3_000 }, (_, index) => (index * index * 7 + index * 31) % 256)).toString(
        'base64',
      ),
      0.83,
    ],
    ['hexadecimal digits', '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'.repeat(500), 0.85],
    ['digits', '3141592653589793'.repeat(500), 1],
    ['random letters', 'xKqZvBnWjRtYpLmGhDcFsAqEuIoXzVbN'.repeat(500), 0.75],
    ['signs', '!#$%&()*+-./;<=>?@^_|~'.repeat(500), 0.76],
    ['emoji', '🜁🝳🌀🏵'.repeat(500), 1],
    ['a rare script', '𒀀𒉯𒅎'.repeat(500), 1],
  ])('finds as many tokens in %s as tokenizers make', (_what, text, expected) => {
    // The JSON around a prompt is held for the 16 tokens that are left out.
    expect(perByte(text) + 16 / Buffer.byteLength(text)).toBeGreaterThanOrEqual(expected)
    expect(perByte(text)).toBeLessThanOrEqual(1.01)
  })

  test('is at most one token per byte of any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), (text) => {
        expect(tokens(text)).toBeLessThanOrEqual(Buffer.byteLength(text))
      }),
    )
  })
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
