import { describe, expect, test } from 'vitest'
import { embeddingsCall, jsonAnswer, vendor } from './gemini-call.ts'

const operation = vendor.embeddings

function body(call: Parameters<NonNullable<typeof operation>['toWire']>[0]): unknown {
  return JSON.parse(String(operation?.toWire(call).body))
}

describe('requests for embeddings', () => {
  test('hold one request a text, each with the model, in the order given', () => {
    const call = embeddingsCall({ input: ['red', 'blue'], dimensions: 768, encoding_format: 'base64' })

    expect(body(call)).toEqual({
      requests: [
        { model: 'models/gemini-embedding-001', content: { parts: [{ text: 'red' }] }, outputDimensionality: 768 },
        { model: 'models/gemini-embedding-001', content: { parts: [{ text: 'blue' }] }, outputDimensionality: 768 },
      ],
    })
    expect(operation?.toWire(call)).toMatchObject({
      path: '/v1beta/models/gemini-embedding-001:batchEmbedContents',
      headers: expect.arrayContaining(['x-goog-api-key', 'test-key-0001']),
      dropped: [],
    })
  })

  test('a single text is a batch of one, of the model\u2019s own size', () => {
    expect(body(embeddingsCall({ input: 'red' }, 'models/gemini-embedding-2'))).toEqual({
      requests: [{ model: 'models/gemini-embedding-2', content: { parts: [{ text: 'red' }] } }],
    })
  })

  test('what the vendor lacks is reported', () => {
    const call = embeddingsCall({ user: 'user-1', input_type: 'query', dimensions: null })

    expect(operation?.toWire(call).dropped).toEqual(['user', 'input_type'])
  })

  test('token ids are refused', () => {
    expect(() => operation?.toWire(embeddingsCall({ input: [[1, 2]] }))).toThrow(
      expect.objectContaining({ status: 400, param: 'input' }),
    )
    expect(operation?.takesTokens).toBe(false)
  })

  test('a batch has at most 100 texts', () => {
    expect(operation?.maxInputs).toBe(100)
  })
})

describe('answers with embeddings', () => {
  const two = (first: number[], second: number[], rest: object = {}) =>
    jsonAnswer({ embeddings: [{ values: first }, { values: second }], ...rest })
  const input = ['red', 'blue']

  test('keep the order, and usage where the vendor tells it', () => {
    const answer = two([0.6, 0.8], [1, 0], { usageMetadata: { promptTokenCount: 4 } })

    expect(operation?.fromWire(answer, embeddingsCall({ input }, 'gemini-embedding-2'))).toEqual({
      vectors: [
        [0.6, 0.8],
        [1, 0],
      ],
      usage: { inputTokens: 4 },
    })
  })

  test('does not invent unreported usage, and keeps a zero', () => {
    const call = embeddingsCall({ input }, 'gemini-embedding-2')

    expect(operation?.fromWire(two([1], [1]), call)?.usage).toBeUndefined()
    expect(operation?.fromWire(two([1], [1], { usageMetadata: { promptTokenCount: 0 } }), call)?.usage).toEqual({
      inputTokens: 0,
    })
  })

  test('small vectors of gemini-embedding-001 come out with length 1', () => {
    const result = operation?.fromWire(two([3, 4], [0, 0]), embeddingsCall({ input }))

    expect(result?.vectors).toEqual([
      [0.6, 0.8],
      [0, 0],
    ])
  })

  test('full vectors of it, and vectors of other models, pass untouched', () => {
    const full = Array.from({ length: 3072 }, () => 0.5)

    expect(operation?.fromWire(two(full, full), embeddingsCall({ input }))?.vectors[0]).toEqual(full)
    expect(
      operation?.fromWire(two([3, 4], [3, 4]), embeddingsCall({ input }, 'gemini-embedding-2'))?.vectors[0],
    ).toEqual([3, 4])
  })

  test.each([
    ['too few vectors', { embeddings: [{ values: [1] }] }],
    ['an empty vector', { embeddings: [{ values: [1] }, { values: [] }] }],
    ['a vector of texts', { embeddings: [{ values: [1] }, { values: ['1'] }] }],
    ['no vectors', {}],
    ['an error', { error: { code: 500 } }],
  ])('%s cannot be used', (_case, answer) => {
    expect(operation?.fromWire(jsonAnswer(answer), embeddingsCall({ input }))).toBeUndefined()
  })
})
