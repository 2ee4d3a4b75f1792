import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { EmbeddingsRequest } from '../../../src/endpoints/embeddings/embeddings-request.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { bodyOf, callFromRequest, callFromText, textOf, wireAnswer } from '../shared/vendor-call.ts'

const embeddings = openai({ apiKey: 'sk-test-0123456789abcdef' }).embeddings!
const TWO = '{"model":"te-3","input":["red","blue"]}'
const floatCall = callFromText<EmbeddingsRequest>(TWO, { upstream: 'text-embedding-3-small' })

/** Vectors with odd spacing and number forms, which only survive if nobody parses and writes them again. */
const VECTORS =
  '[ {"object":"embedding","index":0,"embedding":[1.0, -2e-3,0.10]},{"object":"embedding","index":1,"embedding":[3]} ]'

function relayText(text: string, call = floatCall, at = Math.floor(text.length / 2)): string {
  const bytes = Buffer.from(text)
  return textOf(embeddings.passThrough!.fromWire([bytes.subarray(0, at), bytes.subarray(at)], call)?.chunks ?? [])
}

describe('openai embedding requests', () => {
  it('sends the bytes with the model replaced, token ids included', () => {
    const call = callFromText<EmbeddingsRequest>('{"input":[[1,2],[3]], "model":"te-3","dimensions":8}', {
      upstream: 'text-embedding-3-small',
    })

    const wire = embeddings.toWire(call)

    expect(wire.path).toBe('/v1/embeddings')
    expect(textOf([wire.body])).toBe('{"input":[[1,2],[3]], "model":"text-embedding-3-small","dimensions":8}')
    expect(embeddings).toMatchObject({ maxInputs: 2048, takesTokens: true })
  })

  it('asks for base64 when the answer is translated anyway', () => {
    const call = callFromRequest<EmbeddingsRequest>({ model: 'te-3', input: 'red', encoding_format: 'float' })

    expect(embeddings.passThrough!.applies(call)).toBe(false)
    expect(bodyOf(embeddings.toWire(call).body)).toEqual({ model: 'te-3', input: 'red', encoding_format: 'base64' })
  })
})

describe('openai embedding answers, relayed', () => {
  it('passes the vectors through untouched and renames the model, wherever the body is cut', () => {
    const text = `{"object":"list","data":${VECTORS},"model":"text-embedding-3-small","usage":{"prompt_tokens":0,"total_tokens":0}}`
    for (let at = 0; at <= text.length; at += 1) {
      expect(relayText(text, floatCall, at)).toBe(text.replace('text-embedding-3-small', 'te-3'))
    }
  })

  it('reports a usage of zero as zero', () => {
    const text = `{"object":"list","data":${VECTORS},"model":"m","usage":{"prompt_tokens":0,"total_tokens":0}}`

    expect(embeddings.passThrough!.fromWire([Buffer.from(text)], floatCall)?.usage).toEqual({ inputTokens: 0 })
  })

  it('gives the very same chunks when nothing must change', () => {
    const chunks = [
      Buffer.from(`{"object":"list","data":${VECTORS},"model":"te-3","usage":{"prompt_tokens":4,"total_tokens":4}}`),
    ]

    expect(embeddings.passThrough!.fromWire(chunks, floatCall)?.chunks).toBe(chunks)
  })

  it('never reads the vectors on that path', () => {
    const vectors = '[{"embedding":[+1.,],"index":0},{"embedding":[],"index":1}]'
    const text = `{"data":${vectors},"model":"m","usage":{"total_tokens":1}}`

    expect(relayText(text)).toContain(`${vectors},"model":"te-3"`)
  })

  it('finds the end of the vectors when other lists follow', () => {
    const text = `{"object":"list","data":${VECTORS},"model":"m","usage":{"total_tokens":3},"notes":[{"embedding":[1]}]}`

    const relayed = embeddings.passThrough!.fromWire([Buffer.from(text)], floatCall)

    expect(textOf(relayed?.chunks ?? [])).toBe(
      `{"object":"list","data":${VECTORS},"model":"te-3","usage":{"prompt_tokens":3,"total_tokens":3},"notes":[{"embedding":[1]}]}`,
    )
    expect(relayed?.usage).toEqual({ inputTokens: 3 })
  })

  it('does not pass an answer on that holds fewer or more vectors than there were inputs', () => {
    for (const data of ['{"embedding":[1]}', '{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}']) {
      expect(
        embeddings.passThrough!.fromWire([Buffer.from(`{"object":"list","data":[${data}],"model":"te-3"}`)], floatCall),
      ).toBeUndefined()
    }
  })

  it('sorts vectors by their inputs, wherever the index is in an item', () => {
    for (const item of [
      (index: number) => `{"object":"embedding","index":${index},"embedding":[${index}.5]}`,
      (index: number) => `{"object":"embedding","embedding":[${index}.5],"index": ${index} }`,
    ]) {
      const text = `{"object":"list","data":[${item(1)},${item(0)}],"model":"m","usage":{"total_tokens":3}}`

      expect(JSON.parse(relayText(text))).toEqual({
        object: 'list',
        data: [0, 1].map((index) => ({ object: 'embedding', index, embedding: [index + 0.5] })),
        model: 'te-3',
        usage: { prompt_tokens: 3, total_tokens: 3 },
      })
    }
  })

  it('does not pass an answer on that gives two vectors one index', () => {
    const text = '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}],"model":"m"}'

    expect(embeddings.passThrough!.fromWire([Buffer.from(text)], floatCall)).toBeUndefined()
  })

  it('keeps other members and makes no usage up', () => {
    const text = `{"id":"e1","data":${VECTORS},"model":"m"}`

    expect(relayText(text)).toBe(`{"object":"list","data":${VECTORS},"model":"te-3","id":"e1"}`)
  })

  for (const [what, before, items, after] of [
    ['other lists before', '"notes":[],"object":"list",', VECTORS, ''],
    ['escapes in an item', '', VECTORS.replace('"index"', '"x":"\\"]","index"'), ''],
    ['a list in an item', '', VECTORS.replace('"index"', '"x":[[1]],"index"'), ''],
    ['brackets in a text', '"object":"list",', VECTORS, ',"note":"[x]"'],
    ['a nested member called data', '"meta":{"data":[1]},', VECTORS, ''],
  ] as const) {
    it(`is not misled by ${what}, wherever the body is cut`, () => {
      const text = `{${before}"data":${items},"model":"m[","usage":{"total_tokens":3}${after}}`

      for (let cut = 0; cut <= text.length; cut++) {
        const relayed = relayText(text, floatCall, cut)
        expect(JSON.parse(relayed)).toEqual({
          ...JSON.parse(text),
          object: 'list',
          model: 'te-3',
          usage: { prompt_tokens: 3, total_tokens: 3 },
        })
        expect(relayed).toContain(items)
      }
    })
  }

  it('is read as a whole where vectors come in two encodings, or in lists of lists', () => {
    const usage = '"usage":{"total_tokens":3}'
    const mixed = `{"data":[{"embedding":"AACAPw=="},{"embedding":[3]}],${usage}}`

    expect(JSON.parse(relayText(mixed))).toMatchObject({ data: [{ embedding: [1] }, { embedding: [3] }] })
    expect(
      embeddings.passThrough!.fromWire(
        [Buffer.from(`{"data":[{"embedding":[[1]]},{"embedding":[3]}],${usage}}`)],
        floatCall,
      ),
    ).toBeUndefined()
  })

  it('passes on the base64 of the vendor, and encodes it if a server still returns numbers', () => {
    const call = callFromText<EmbeddingsRequest>('{"model":"te-3","input":"red","encoding_format":"base64"}')
    const base64 = Buffer.from(new Float32Array([0.5, -2]).buffer).toString('base64')
    const answerWith = (vector: unknown) =>
      JSON.stringify({ object: 'list', data: [{ object: 'embedding', index: 0, embedding: vector }], model: 'm' })

    for (const vector of [base64, [0.5, -2]]) {
      expect(JSON.parse(relayText(answerWith(vector), call))).toMatchObject({
        data: [{ embedding: base64 }],
        model: 'te-3',
      })
    }
    const plain = callFromText<EmbeddingsRequest>('{"model":"te-3","input":"red"}')
    expect(JSON.parse(relayText(answerWith(base64), plain))).toMatchObject({ data: [{ embedding: [0.5, -2] }] })
  })

  for (const [what, text] of [
    ['an error in disguise', '{"error":{"message":"no"}}'],
    ['half an answer', `{"object":"list","data":${VECTORS.slice(0, 80)}`],
    ['half an answer between two vectors', '{"object":"list","data":[{"embedding":[1]},{"embedding":[2'],
    ['a page', '<html>[]</html>'],
    ['a list that is empty', '{"object":"list","data":[],"model":"m"}'],
    ['nothing', ''],
  ] as const) {
    it(`does not take ${what} for an answer`, () => {
      expect(embeddings.passThrough!.fromWire([Buffer.from(text)], floatCall)).toBeUndefined()
      expect(embeddings.fromWire(wireAnswer(text), floatCall)).toBeUndefined()
    })
  }
})

describe('openai embedding answers, translated', () => {
  it('gives the vectors in the order of the inputs', () => {
    const body = {
      data: [
        { index: 1, embedding: 'AACAPw==' },
        { index: 0, embedding: [0.5] },
      ],
      usage: { prompt_tokens: 4, total_tokens: 4 },
    }

    expect(embeddings.fromWire(wireAnswer(body), floatCall)).toEqual({
      vectors: [[0.5], 'AACAPw=='],
      usage: { inputTokens: 4 },
    })
  })

  it('refuses an answer that misses, repeats or adds a vector', () => {
    for (const indexes of [[0], [0, 0], [0, 1, 2], [0, 7], [0, -1], [0, 'x']]) {
      const body = { data: indexes.map((index) => ({ index, embedding: [1] })) }

      expect(embeddings.fromWire(wireAnswer(body), floatCall)).toBeUndefined()
    }
  })

  it('takes a list of token ids as one input', () => {
    const call = callFromRequest<EmbeddingsRequest>({ model: 'te-3', input: [1, 2, 3] })

    expect(embeddings.fromWire(wireAnswer({ data: [{ embedding: [1] }] }), call)?.vectors).toEqual([[1]])
  })

  it('never throws on nonsense usage', () => {
    for (const [usage, expected] of [
      [{ prompt_tokens: -1 }, { inputTokens: -1 }],
      [{ prompt_tokens: '12', total_tokens: 1.5 }, { inputTokens: 1.5 }],
      [{ prompt_tokens: null }, {}],
      [[], undefined],
    ] as const) {
      const body = { data: [{ embedding: [1] }, { embedding: [2] }], usage }

      expect(embeddings.fromWire(wireAnswer(body), floatCall)?.usage).toEqual(expected)
    }
  })
})
