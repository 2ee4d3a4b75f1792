import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { createEmbeddingsOperation } from '../../../src/endpoints/embeddings/embeddings-endpoint.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import { bodyOf, callFromText, wireAnswer } from '../shared/vendor-call.ts'

function operation(preset: Preset, request: EmbeddingsRequest) {
  const { embeddings } = openaiCompatible(preset, { apiKey: 'k-0123456789' })
  return createEmbeddingsOperation(embeddings!, callFromText<EmbeddingsRequest>(JSON.stringify(request)))
}

function sent(preset: Preset, request: EmbeddingsRequest) {
  return operation(preset, request).requests.map(({ path, body, dropped }) => ({ path, body: bodyOf(body), dropped }))
}

describe('Mistral', () => {
  it('reads the size of vectors under its own name, and refuses what it does not know', () => {
    expect(sent(presets.mistral, { model: 'codestral-embed', input: ['a'], dimensions: 512, user: 'u' })).toEqual([
      {
        path: '/v1/embeddings',
        body: { model: 'codestral-embed', input: ['a'], output_dimension: 512 },
        dropped: ['user'],
      },
    ])
  })

  it('takes 256 texts of one call, and no lists of tokens', () => {
    const input = Array.from({ length: 257 }, (_, index) => `text ${index}`)
    const calls = sent(presets.mistral, { model: 'mistral-embed', input })

    expect(calls.map(({ body }) => (body['input'] as string[]).length)).toEqual([256, 1])
    expect(() => sent(presets.mistral, { model: 'mistral-embed', input: [1, 2] })).toThrow(/not token ids/)
  })
})

it('drops the end user for Together, which rejects it', () => {
  expect(sent(presets.together, { model: 'm', input: 'a', user: 'u', encoding_format: 'base64' })).toEqual([
    { path: '/v1/embeddings', body: { model: 'm', input: 'a', encoding_format: 'base64' }, dropped: ['user'] },
  ])
})

describe('Perplexity', () => {
  const bytes = (...values: number[]) => Buffer.from(Int8Array.from(values).buffer).toString('base64')
  const body = {
    object: 'list',
    data: [
      { object: 'embedding', index: 0, embedding: bytes(127, -128, 0, 5, -1) },
      { object: 'embedding', index: 1, embedding: bytes(1, 2, 3, 4, 5) },
    ],
    model: 'pplx-embed-v1-4b',
    usage: { prompt_tokens: 6, total_tokens: 6 },
  }
  const read = (request: EmbeddingsRequest) => {
    const { body: bytesOfAnswer, ...head } = wireAnswer(body)
    const answer = operation(presets.perplexity, request).whole([{ ...head, chunks: [bytesOfAnswer] }])
    return {
      usage: answer?.usage,
      vectors: (JSON.parse(Buffer.concat(answer?.chunks ?? []).toString()) as typeof body).data.map(
        ({ embedding }) => embedding as unknown,
      ),
    }
  }

  it.each(['float', 'base64'] as const)('is asked at its own path, without the encoding %s', (encoding) => {
    const request: EmbeddingsRequest = { model: 'pplx', input: ['a', 'b'], encoding_format: encoding }

    expect(sent(presets.perplexity, request)).toEqual([
      { path: '/v1/embeddings', body: { model: 'pplx', input: ['a', 'b'] }, dropped: [] },
    ])
  })

  it('gives signed bytes, which callers read as numbers', () => {
    const vectors = [
      [127, -128, 0, 5, -1],
      [1, 2, 3, 4, 5],
    ]

    expect(read({ model: 'pplx', input: ['a', 'b'] })).toEqual({ usage: { inputTokens: 6 }, vectors })
    expect(read({ model: 'pplx', input: ['a', 'b'], encoding_format: 'base64' }).vectors).toEqual(
      vectors.map((vector) => Buffer.from(Float32Array.from(vector).buffer).toString('base64')),
    )
  })
})

it('a mistake in the embeddings of a preset is named', () => {
  const wrong = { ...presets.mistral, embeddings: { fields: { dimensions: 'gone' } } } as unknown as Preset

  expect(() => openaiCompatible(wrong)).toThrow(/embeddings: unknown rule of fields.dimensions/)
})
