import { describe, expect, it } from 'vitest'
import { createEmbeddingsOperation } from '../../../src/endpoints/embeddings/embeddings-endpoint.ts'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { VOYAGE_RULES, voyage } from '../../../src/vendors/voyage/voyage.ts'
import { bodyOf, callFromRequest, callFromText, fixture, NOW_MS, textOf, wireAnswer } from '../shared/vendor-call.ts'

const vendor = voyage({ apiKey: 'pa-test-0123456789abcdef' })
const embeddings = vendor.embeddings!

describe('voyage requests', () => {
  const rows: [sent: Record<string, unknown>, expected: Record<string, unknown>, dropped?: string[]][] = [
    [{ dimensions: 512 }, { output_dimension: 512 }],
    [{ dimensions: null }, {}],
    [{ encoding_format: 'float' }, {}],
    [{ encoding_format: null }, {}],
    [{ encoding_format: 'base64' }, { encoding_format: 'base64' }],
    [{ user: 'u-1' }, {}, ['user']],
    [
      { input_type: 'query', truncation: false },
      { input_type: 'query', truncation: false },
    ],
  ]
  for (const [sent, expected, dropped = []] of rows) {
    it(`sends ${JSON.stringify(sent)} as ${JSON.stringify(expected)}, reporting ${dropped.join() || 'nothing'}`, () => {
      const text = JSON.stringify({ model: 'vy-4', input: ['red', 'blue'], ...sent })

      const wire = embeddings.toWire(callFromText<EmbeddingsRequest>(text, { upstream: 'voyage-4' }))

      expect(bodyOf(wire.body)).toEqual({ model: 'voyage-4', input: ['red', 'blue'], ...expected })
      expect(wire.dropped).toEqual(dropped)
    })
  }

  it('has a rule for every field of the embedding request', () => {
    expect(Object.keys(VOYAGE_RULES).sort()).toEqual(['dimensions', 'encoding_format', 'input', 'model', 'user'])
  })

  it('splices the model into the bytes where nothing else changes', () => {
    const text = '{ "input": "red",  "model": "vy-4" }'

    const wire = embeddings.toWire(callFromText<EmbeddingsRequest>(text, { upstream: 'voyage-4' }))

    expect(textOf([wire.body])).toBe(text.replace('vy-4', 'voyage-4'))
  })

  it('asks for base64 when the answer is translated anyway', () => {
    const call = callFromRequest<EmbeddingsRequest>({ model: 'voyage-4', input: ['red'], encoding_format: 'float' })

    expect(bodyOf(embeddings.toWire(call).body)).toEqual({
      model: 'voyage-4',
      input: ['red'],
      encoding_format: 'base64',
    })
  })

  it.each([
    ['int8', 'float', {}],
    ['binary', null, {}],
    ['uint8', 'base64', { encoding_format: 'base64' }],
  ])('gives vectors of %s as the caller asks for them, also where an answer is translated', (type, asked, sent) => {
    const request = { model: 'voyage-4', input: ['red'], encoding_format: asked, output_dtype: type }
    const operation = createEmbeddingsOperation(embeddings, callFromRequest(request as EmbeddingsRequest))
    const [wire] = operation.requests
    const vector = asked === 'base64' ? 'Af4DBA==' : [1, -2, 3, 4]
    const answer = { object: 'list', data: [{ object: 'embedding', embedding: vector, index: 0 }], model: 'voyage-4' }
    const whole = operation.whole([{ status: 200, headers: {}, chunks: [Buffer.from(JSON.stringify(answer))] }])

    expect(bodyOf(wire!.body)).toEqual({ model: 'voyage-4', input: ['red'], output_dtype: type, ...sent })
    expect(JSON.parse(textOf(whole?.chunks ?? []))).toMatchObject({ data: [{ embedding: vector }] })
  })

  it('takes a thousand texts and no token ids', () => {
    expect(embeddings).toMatchObject({ maxInputs: 1000, takesTokens: false })
  })
})

describe('voyage answers', () => {
  it('completes the usage, which has no prompt tokens', () => {
    const call = callFromText<EmbeddingsRequest>('{"model":"vy-4","input":["red","blue"]}', { upstream: 'voyage-4' })

    const relayed = embeddings.passThrough!.fromWire([fixture(import.meta.url, 'embeddings.json')], call)

    expect(textOf(relayed?.chunks ?? [])).toBe(
      '{"object":"list","data":[{"object":"embedding","embedding":[0.02,-0.04],"index":0},' +
        '{"object":"embedding","embedding":[0.05,0.01],"index":1}],"model":"vy-4","usage":{"prompt_tokens":4,"total_tokens":4}}',
    )
    expect(relayed?.usage).toEqual({ inputTokens: 4 })
  })

  for (const [status, body, expected] of [
    [
      400,
      { detail: 'Argument user is not supported.' },
      { kind: 'caller', message: 'Argument user is not supported.' },
    ],
    [
      400,
      { detail: "Model voyage-3 is not supported. Supported models are ['voyage-multimodal-3']." },
      { kind: 'operator', concerns: 'model' },
    ],
    [
      400,
      { detail: 'The batch is too large.', error_code: 'TOO_MANY_TOKENS_IN_BATCH' },
      { kind: 'caller', code: 'TOO_MANY_TOKENS_IN_BATCH' },
    ],
    [
      422,
      { detail: [{ loc: ['body', 'input', 0], msg: 'must be a string', type: 'type_error' }] },
      { kind: 'caller', status: 422, message: 'input.0: must be a string', param: 'input.0' },
    ],
    [400, { detail: 'Model voyage-1 is not found or no longer supported.' }, { kind: 'operator' }],
    [401, { detail: 'Provided API key is invalid.' }, { kind: 'operator' }],
    [403, { detail: 'Not from here.' }, { kind: 'operator' }],
    [429, { detail: 'Slow down.' }, { kind: 'rate_limited', message: 'Slow down.' }],
    [500, {}, { kind: 'unavailable' }],
    [503, 'upstream connect error', { kind: 'unavailable', message: 'upstream connect error' }],
  ] as const) {
    it(`reads a ${status} with ${JSON.stringify(body).slice(0, 60)} as a matter of: ${expected.kind}`, () => {
      expect(vendor.errorFrom(wireAnswer(body, status), NOW_MS)).toMatchObject(expected)
    })
  }

  it('redacts its own kinds of keys', () => {
    const { message } = vendor.errorFrom(wireAnswer({ detail: 'Bad key pa-abcdefghijklmnopqrstu.' }, 400), NOW_MS)

    expect(message).toBe('Bad key [redacted]')
  })
})

describe('voyage options', () => {
  for (const [options, origin, path] of [
    [{}, 'https://api.voyageai.com', '/v1/embeddings'],
    [{ apiKey: 'al-0123456789' }, 'https://ai.mongodb.com', '/v1/embeddings'],
    [{ apiKey: 'al-0123456789', baseURL: 'http://127.0.0.1:9100/v1' }, 'http://127.0.0.1:9100', '/v1/embeddings'],
  ] as const) {
    it(`reaches ${origin} with ${JSON.stringify(options)}`, () => {
      const vendorAt = voyage(options)

      expect(vendorAt.origin).toBe(origin)
      expect(vendorAt.embeddings!.toWire(callFromRequest({ model: 'm', input: 'a' })).path).toBe(path)
    })
  }

  it('refuses keys of two hosts at once', () => {
    expect(() => voyage({ apiKey: ['al-1', 'pa-2'] })).toThrow(/another host/)
  })
})
