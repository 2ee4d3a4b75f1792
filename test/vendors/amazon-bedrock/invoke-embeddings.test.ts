import { describe, expect, it } from 'vitest'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { bodyOf, callFromRequest, wireAnswer } from '../shared/vendor-call.ts'

const embeddings = amazonBedrock({ region: 'us-east-1', apiKey: 'bedrock-key-0123456789' }).embeddings!
const TITAN = 'amazon.titan-embed-text-v2:0'
const NOVA = 'us.amazon.nova-2-multimodal-embeddings-v1:0'
const COHERE = 'cohere.embed-english-v3'
const callOf = (upstream: string, fields: Partial<EmbeddingsRequest> = {}) =>
  callFromRequest<EmbeddingsRequest>({ model: 'm', input: 'one', ...fields }, { upstream })

describe('requests', () => {
  it.each([
    [TITAN, {}, { inputText: 'one' }],
    [TITAN, { dimensions: 256, encoding_format: 'base64' as const }, { inputText: 'one', dimensions: 256 }],
    [
      'amazon.titan-embed-image-v1',
      { dimensions: 384 },
      { inputText: 'one', embeddingConfig: { outputEmbeddingLength: 384 } },
    ],
    [
      NOVA,
      { dimensions: 1024, input_type: 'search_query' },
      {
        taskType: 'SINGLE_EMBEDDING',
        singleEmbeddingParams: {
          ...{ embeddingPurpose: 'TEXT_RETRIEVAL', embeddingDimension: 1024 },
          text: { truncationMode: 'NONE', value: 'one' },
        },
      },
    ],
    [
      NOVA,
      { truncate: 'END' },
      {
        taskType: 'SINGLE_EMBEDDING',
        singleEmbeddingParams: {
          embeddingPurpose: 'GENERIC_INDEX',
          text: { truncationMode: 'END', value: 'one' },
        },
      },
    ],
    [COHERE, { input: ['a', 'b'] }, { texts: ['a', 'b'], input_type: 'search_document' }],
    [
      'eu.cohere.embed-v4:0',
      { input_type: 'clustering', truncate: 'END', dimensions: 512 },
      { texts: ['one'], input_type: 'clustering', truncate: 'END', output_dimension: 512 },
    ],
  ])('sent to %s with %j contain %j', (upstream, fields, body) => {
    const wire = embeddings.toWire(callOf(upstream, fields))

    expect(wire.path).toBe(`/model/${encodeURIComponent(upstream)}/invoke`)
    expect(bodyOf(wire.body)).toEqual(body)
    expect(wire.dropped).toEqual([])
  })

  it('are split by the limit of the model, and report dropped fields', () => {
    const { maxInputs } = embeddings as { maxInputs: (upstream: string) => number }

    expect([TITAN, NOVA, COHERE].map(maxInputs)).toEqual([1, 1, 96])
    expect(embeddings.toWire(callOf(TITAN, { user: 'u', input_type: 'x' })).dropped).toEqual(['user', 'input_type'])
    expect(() => embeddings.toWire(callOf('amazon.nova-pro-v1:0'))).toThrow(/Titan, Nova and Cohere/)
    expect(() => embeddings.toWire(callOf(TITAN, { input: [1, 2] }))).toThrow(/token ids/)
  })
})

describe('golden answers', () => {
  const header = { 'x-amzn-bedrock-input-token-count': '7' }
  it.each([
    [TITAN, { embedding: [0.1, -0.2], inputTextTokenCount: 3 }, {}, [[0.1, -0.2]], { inputTokens: 3 }],
    [NOVA, { embeddings: [{ embeddingType: 'TEXT', embedding: [1, 2] }] }, header, [[1, 2]], { inputTokens: 7 }],
    [
      COHERE,
      { id: 'x', embeddings: [[1], [2]], response_type: 'embeddings_floats' },
      header,
      [[1], [2]],
      { inputTokens: 7 },
    ],
    ['cohere.embed-v4:0', { id: 'x', embeddings: { float: [[1], [2]] } }, {}, [[1], [2]], undefined],
  ])('are read for %s', (upstream, body, headers, vectors, usage) => {
    const call = callOf(upstream, vectors.length === 2 ? { input: ['a', 'b'] } : {})
    expect(embeddings.fromWire(wireAnswer(body, 200, headers as Record<string, string>), call)).toEqual({
      vectors,
      usage,
    })
  })

  it.each([[{}], [{ embedding: 'AAAA' }], [{ embedding: [] }], [{ embeddings: [[1]] }], ['text']])(
    '%j is none of Titan’s',
    (body) => {
      expect(embeddings.fromWire(wireAnswer(body), callOf(TITAN))).toBeUndefined()
    },
  )
})
