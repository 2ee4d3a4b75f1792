import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createRerankOperation } from '../../src/endpoints/rerank/rerank-endpoint.ts'
import type { RerankRequest } from '../../src/endpoints/rerank/rerank-request.ts'
import { cohere } from '../../src/vendors/cohere/cohere.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../src/vendors/presets/presets.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'
import { voyage } from '../../src/vendors/voyage/voyage.ts'
import { bodyOf, callFromRequest, NOW_MS, textOf, wireAnswer } from './shared/vendor-call.ts'

const apiKey = 'test-key-0123456789'
const QUERY = 'sky'
const DOCUMENTS = ['red', 'blue', 'green']

interface Wire {
  readonly vendor: Vendor
  readonly upstream: string
  readonly url: string
  /** Request for `top_n: 2` and the field. */
  readonly field: readonly [string, unknown]
  readonly body: object
  readonly fixture: string
  readonly answer: { readonly id?: string; readonly scores: readonly number[]; readonly usage: object }
}

const WIRES: Readonly<Record<string, Wire>> = {
  voyage: {
    vendor: voyage({ apiKey }),
    upstream: 'rerank-2.5',
    url: 'https://api.voyageai.com/v1/rerank',
    field: ['truncation', false],
    body: { truncation: false, model: 'rerank-2.5', query: QUERY, documents: DOCUMENTS, top_k: 2 },
    fixture: 'voyage/fixtures/rerank.json',
    answer: { scores: [0.4375, 0.421875], usage: { inputTokens: 26, searchUnits: 1 } },
  },
  cohere: {
    vendor: cohere({ apiKey }),
    upstream: 'rerank-v3.5',
    url: 'https://api.cohere.com/v2/rerank',
    field: ['max_tokens_per_doc', 512],
    body: { max_tokens_per_doc: 512, model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS, top_n: 2 },
    fixture: 'cohere/fixtures/rerank.json',
    answer: {
      id: '07734bd2-2473-4f07-94e1-0d9f0e6843cf',
      scores: [0.999071, 0.32713068],
      usage: { inputTokens: 7, searchUnits: 1 },
    },
  },
  'dashscope, compatible': {
    vendor: dashscope({ apiKey, region: 'cn' }),
    upstream: 'qwen3-rerank',
    url: 'https://dashscope.aliyuncs.com/compatible-api/v1/reranks',
    field: ['instruct', 'Colours'],
    body: { instruct: 'Colours', model: 'qwen3-rerank', query: QUERY, documents: DOCUMENTS, top_n: 2 },
    fixture: 'dashscope/fixtures/rerank.json',
    answer: {
      id: '85ba5752-1900-47d2-8896-23f99b13f6e1',
      scores: [0.933, 0.341],
      usage: { inputTokens: 79, searchUnits: 1 },
    },
  },
  'dashscope, native': {
    vendor: dashscope({ apiKey, baseURL: 'https://dashscope.aliyuncs.com/compatible-mode/v1' }),
    upstream: 'gte-rerank-v2',
    url: 'https://dashscope.aliyuncs.com/api/v1/services/rerank/text-rerank/text-rerank',
    field: ['instruct', 'Colours'],
    body: {
      model: 'gte-rerank-v2',
      input: { query: QUERY, documents: DOCUMENTS },
      parameters: { instruct: 'Colours', top_n: 2 },
    },
    fixture: 'dashscope/fixtures/rerank-native.json',
    answer: {
      id: '85ba5752-1900-47d2-8896-23f99b13f6e1',
      scores: [0.933, 0.341],
      usage: { inputTokens: 79, searchUnits: 1 },
    },
  },
  'dashscope, multimodal': {
    vendor: dashscope({ apiKey, region: 'cn' }),
    upstream: 'qwen3-vl-rerank',
    url: 'https://dashscope.aliyuncs.com/api/v1/services/rerank/text-rerank/text-rerank',
    field: ['instruct', 'Colours'],
    body: {
      model: 'qwen3-vl-rerank',
      input: { query: QUERY, documents: DOCUMENTS },
      parameters: { instruct: 'Colours', top_n: 2 },
    },
    fixture: 'dashscope/fixtures/rerank-native.json',
    answer: {
      id: '85ba5752-1900-47d2-8896-23f99b13f6e1',
      scores: [0.933, 0.341],
      usage: { inputTokens: 79, searchUnits: 1 },
    },
  },
  vllm: {
    vendor: openaiCompatible({ id: 'vllm', baseURL: 'http://gpu.example/v1', models: [] }),
    upstream: 'BAAI/bge-reranker-v2-m3',
    url: 'http://gpu.example/v1/rerank',
    field: ['truncate_prompt_tokens', 100],
    body: {
      truncate_prompt_tokens: 100,
      model: 'BAAI/bge-reranker-v2-m3',
      query: QUERY,
      documents: DOCUMENTS,
      top_n: 2,
    },
    fixture: 'openai-compatible/fixtures/rerank-vllm.json',
    answer: { id: 'rerank-7c2f', scores: [0.99853515625, 0.0005], usage: { inputTokens: 31, searchUnits: 1 } },
  },
  jina: {
    vendor: openaiCompatible(presets.jina, { apiKey }),
    upstream: 'jina-reranker-v2-base-multilingual',
    url: 'https://api.jina.ai/v1/rerank',
    field: ['truncation', true],
    body: {
      truncation: true,
      model: 'jina-reranker-v2-base-multilingual',
      query: QUERY,
      documents: DOCUMENTS,
      top_n: 2,
    },
    fixture: 'openai-compatible/fixtures/rerank-jina.json',
    answer: { scores: [0.61, -0.08], usage: { inputTokens: 17, searchUnits: 1 } },
  },
  siliconflow: {
    vendor: openaiCompatible(presets.siliconflow, { apiKey }),
    upstream: 'BAAI/bge-reranker-v2-m3',
    url: 'https://api.siliconflow.com/v1/rerank',
    field: ['max_chunks_per_doc', 8],
    body: {
      max_chunks_per_doc: 8,
      model: 'BAAI/bge-reranker-v2-m3',
      query: QUERY,
      documents: DOCUMENTS,
      top_n: 2,
    },
    fixture: 'openai-compatible/fixtures/rerank-siliconflow.json',
    answer: {
      id: '0198f3c2a1d47f53b1c0e6a9f4d2b7c1',
      scores: [0.9936, 0.00496],
      usage: { inputTokens: 59, searchUnits: 1 },
    },
  },
}

describe.each(Object.entries(WIRES))('%s', (_name, { vendor, upstream, url, field, body, fixture, answer }) => {
  const request: RerankRequest = { model: 'ours', query: QUERY, documents: DOCUMENTS }
  const call = (members: object) => callFromRequest<RerankRequest>({ ...request, ...members }, { upstream, apiKey })
  const operate = (members: object) => createRerankOperation(vendor.rerank!, call(members))

  test('is sent what it takes, and no more', () => {
    const [wire] = operate({ top_n: 2, [field[0]]: field[1], return_documents: true }).requests

    expect(vendor.origin + wire!.path).toBe(url)
    expect(wire!.headers.join(' ')).toContain(`authorization Bearer ${apiKey}`)
    expect(textOf([wire!.body])).toBe(JSON.stringify(body))
    expect(wire!.dropped).toEqual([])
  })

  test.each([{}, { top_n: null }, { top_n: 3 }, { top_n: 9 }, { top_k: null }])('is asked for all by %j', (members) => {
    expect(JSON.stringify(bodyOf(operate(members).requests[0]!.body))).not.toContain('"top_')
  })

  test('receives top_n under either name', () => {
    expect(textOf([operate({ top_k: 2, [field[0]]: field[1] }).requests[0]!.body])).toBe(JSON.stringify(body))
  })

  test('gives its answer in the shape of the endpoint', () => {
    const bytes = readFileSync(join(import.meta.dirname, fixture))
    const made = operate({ top_n: 2 }).whole([{ status: 200, headers: {}, chunks: [bytes] }])
    const [first, second] = answer.scores

    const tokens = (answer.usage as { inputTokens: number }).inputTokens
    expect(bodyOf(made!.chunks)).toEqual({
      ...(answer.id === undefined ? {} : { id: answer.id }),
      object: 'list',
      model: 'ours',
      results: [
        { index: 1, relevance_score: first },
        { index: 0, relevance_score: second },
      ],
      usage: { prompt_tokens: tokens, total_tokens: tokens },
      ...(vendor.id === 'cohere' ? { meta: { billed_units: { search_units: 1 } } } : {}),
    })
    expect(made!.usage).toEqual({ outputTokens: 0, ...answer.usage })
  })
})

describe('images', () => {
  const documents = ['red', { image: 'https://example.com/blue.png' }, { image: 'data:image/png;base64,iVBO' }]
  const call = (upstream: string) =>
    callFromRequest<RerankRequest>({ model: 'ours', query: QUERY, documents }, { upstream, apiKey })

  test('stand among texts at the model that ranks both', () => {
    const [wire] = createRerankOperation(dashscope({ apiKey }).rerank!, call('qwen3-vl-rerank')).requests

    expect(bodyOf(wire!.body)).toEqual({
      model: 'qwen3-vl-rerank',
      input: { query: QUERY, documents: [{ text: 'red' }, documents[1], documents[2]] },
      parameters: {},
    })
  })

  test.each([
    [
      { total_tokens: 700, image_tokens: 600 },
      { inputTokens: 700, inputImageTokens: 600 },
    ],
    // Texts are estimated at 5 tokens: the query for each document, and one document.
    [{ total_tokens: 700 }, { inputTokens: 700, inputImageTokens: 696 }],
    [{ total_tokens: 2 }, { inputTokens: 2, inputImageTokens: 0 }],
  ])('are the part of %j that texts cannot be', (usage, expected) => {
    const results = [0, 1, 2].map((index) => ({ index, relevance_score: 1 - index / 10 }))
    const answer = { output: { results }, usage, request_id: 'r' }
    const operation = createRerankOperation(dashscope({ apiKey }).rerank!, call('qwen3-vl-rerank'))
    const made = operation.whole([{ status: 200, headers: {}, chunks: [Buffer.from(JSON.stringify(answer))] }])

    expect(made?.usage).toEqual({ ...expected, outputTokens: 0, searchUnits: 1 })
  })

  test.each(Object.entries(WIRES).filter(([, { upstream }]) => upstream !== 'qwen3-vl-rerank'))(
    'are refused by name at %s, which ranks texts',
    (_name, { vendor, upstream }) => {
      expect(() => createRerankOperation(vendor.rerank!, call(upstream))).toThrow(
        expect.objectContaining({ code: 'unsupported_parameter', param: 'documents[1].image' }),
      )
    },
  )
})

describe.each(Object.entries(WIRES))('a broken answer of %s', (_name, { vendor, upstream, fixture }) => {
  const text = readFileSync(join(import.meta.dirname, fixture), 'utf8')
  const read = (answer: unknown, members: object = { top_n: 2 }) => {
    const request: RerankRequest = { model: 'ours', query: QUERY, documents: DOCUMENTS, ...members }
    const operation = createRerankOperation(vendor.rerank!, callFromRequest(request, { upstream, apiKey }))
    return operation.whole([{ status: 200, headers: {}, chunks: [Buffer.from(JSON.stringify(answer))] }])
  }
  /** Returns the fixture with its second result changed. */
  const withSecond = (change: object): unknown => {
    const answer = JSON.parse(text)
    const holder = answer.output ?? answer
    Object.assign((holder.results ?? holder.data)[1], change)
    return answer
  }

  test('is one with fewer results than were asked for, which no vendor announces', () => {
    expect(read(JSON.parse(text))).toBeDefined()
    expect(read(JSON.parse(text), { top_n: 3 })).toBeUndefined()
    expect(read(JSON.parse(text), {})).toBeUndefined()
  })

  test.each([
    ['an index out of range', { index: 3 }],
    ['a negative index', { index: -1 }],
    ['half an index', { index: 0.5 }],
    ['an index twice', { index: 1 }],
    ['an index that is text', { index: '0' }],
    ['a score that is text', { relevance_score: '0.3' }],
    ['no score', { relevance_score: null }],
  ])('is one with %s', (_fault, change) => {
    expect(read(withSecond({}))).toBeDefined()
    expect(read(withSecond(change))).toBeUndefined()
  })

  test.each([7, null, [], {}, { output: [] }, { results: {} }])('is %j', (answer) => {
    expect(read(answer)).toBeUndefined()
  })
})

test.each([voyage({ apiKey }), cohere({ apiKey }), dashscope({ apiKey })])(
  'fields that $id lacks are dropped and reported',
  ({ rerank, id }) => {
    const request = { model: 'm', query: QUERY, documents: DOCUMENTS, rank_fields: ['a'], user: null }
    const wire = rerank!.toWire(callFromRequest<RerankRequest>(request), { documents: DOCUMENTS, topN: undefined })

    expect({ id, dropped: wire.dropped }).toEqual({ id, dropped: ['rank_fields'] })
    expect(textOf([wire.body])).not.toContain('rank_fields')
  },
)

test('the rows of Cohere are models of rerank with the most tokens of a query and a document', () => {
  expect(cohere().models.map(({ id, kind, limits }) => [id, kind, limits?.contextTokens])).toEqual([
    ['rerank-v4.0-pro', 'rerank', 32_768],
    ['rerank-v4.0-fast', 'rerank', 32_768],
    ['rerank-v3.5', 'rerank', 4096],
  ])
})

describe('errors of Cohere', () => {
  test.each([
    [400, { message: 'invalid request: top_n must be greater than 0' }, { kind: 'caller', status: 400 }],
    [401, { id: 'a', message: 'invalid api token' }, { kind: 'operator' }],
    [402, { message: 'Please add or update your payment method to continue' }, { kind: 'operator' }],
    [
      404,
      {
        message: "model 'x' not found, make sure the correct model ID was used and that you have access to the model.",
      },
      { kind: 'operator' },
    ],
    [422, { message: 'unprocessable' }, { kind: 'caller', status: 422 }],
    [
      429,
      { message: 'You are using a Trial key, which is limited to 10 API calls / minute.' },
      { kind: 'rate_limited' },
    ],
    [500, { message: 'internal server error' }, { kind: 'unavailable' }],
    [503, 'no healthy upstream', { kind: 'unavailable' }],
    [504, {}, { kind: 'timeout' }],
  ])('a %i is a matter of the right side', (status, body, expected) => {
    expect(cohere({ apiKey }).errorFrom(wireAnswer(body, status), NOW_MS)).toMatchObject(expected)
  })
})

test.each([
  [{}, 'https://api.cohere.com/v2/rerank'],
  [{ baseURL: 'http://127.0.0.1:9100' }, 'http://127.0.0.1:9100/v2/rerank'],
  [{ baseURL: 'http://127.0.0.1:9100/proxy/v2/' }, 'http://127.0.0.1:9100/proxy/v2/rerank'],
])('Cohere with %j is reached at %s', (options, url) => {
  const vendor = cohere(options)
  const call = callFromRequest<RerankRequest>({ model: 'm', query: QUERY, documents: DOCUMENTS })

  expect(vendor.origin + vendor.rerank!.toWire(call, { documents: DOCUMENTS, topN: undefined }).path).toBe(url)
})
