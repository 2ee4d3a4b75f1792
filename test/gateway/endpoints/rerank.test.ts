import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const RERANK = '/v1/rerank'
const QUERY = 'capital of Peru'
const DOCUMENTS = ['Quito is high', 'Lima is the capital of Peru', 'Peru has llamas']
const START = 100_000_000_000n

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway()
})
afterEach(() => started.close())

interface Ranking {
  object: string
  model: string
  results: { index: number; relevance_score: number; document?: unknown }[]
  usage: { prompt_tokens: number; total_tokens: number }
  meta?: unknown
}

async function rank(body: Record<string, unknown>, path = RERANK): Promise<Ranking> {
  const response = await started.post(path, { query: QUERY, documents: DOCUMENTS, ...body })
  const answer = (await response.json()) as Ranking
  expect({ status: response.status, answer }).toMatchObject({ status: 200 })
  return answer
}

describe.each(['vy-rerank-2.5', 'qw3-rerank', 'gte-rerank-v2', 'qw3-vl-rerank', 'rerank-v3.5'])(
  'reranking with %s',
  (model) => {
    test.each([RERANK, '/v2/rerank'])('gives the documents by relevance, at %s', async (path) => {
      const answer = await rank({ model }, path)

      expect(answer).toMatchObject({ object: 'list', model })
      expect(answer.results.map(({ index }) => index)).toEqual([1, 2, 0])
      expect(answer.results.every((result) => !('document' in result))).toBe(true)
      expect(answer.usage.prompt_tokens).toBeGreaterThan(0)
      expect(answer.usage.total_tokens).toBe(answer.usage.prompt_tokens)
    })

    test('gives as many results as were asked for, and all where more were asked for', async () => {
      expect((await rank({ model, top_n: 2 })).results.map(({ index }) => index)).toEqual([1, 2])
      expect((await rank({ model, top_n: 9 })).results).toHaveLength(3)
      expect((await rank({ model, top_n: null })).results).toHaveLength(3)
    })

    test('keeps documents of equal score in their order', async () => {
      const { results } = await rank({ model, documents: ['same', 'other', 'capital', 'same'] })

      expect(results.map(({ index }) => index)).toEqual([2, 0, 1, 3])
    })

    test('repeats documents as the caller wrote them', async () => {
      const documents = ['Quito', { text: 'capital of Peru', id: 7 }, { title: 'Peru' }]
      const { results } = await rank({ model, documents, return_documents: true })

      expect(results.map(({ document }) => document)).toEqual([
        { text: 'capital of Peru', id: 7 },
        { title: 'Peru' },
        { text: 'Quito' },
      ])
      const sent = JSON.stringify(started.sandbox.requests[0]?.body)
      expect(sent).toContain(JSON.stringify(['Quito', 'capital of Peru', '{"title":"Peru"}']))
      expect(sent).not.toContain('return_documents')
    })

    test('is charged once, by what the vendor reported', async () => {
      const response = await started.post(RERANK, { model, query: QUERY, documents: DOCUMENTS })
      const answer = (await response.json()) as Ranking
      const ended = await started.ended(response)

      const isByUnit = model === 'rerank-v3.5'
      expect(answer.meta).toEqual(isByUnit ? { billed_units: { search_units: 1 } } : undefined)
      expect(ended.usage).toMatchObject({ inputTokens: answer.usage.prompt_tokens, searchUnits: 1 })
      expect(ended.costNanoDollars).toBe(isByUnit ? 2_000_000n : BigInt(answer.usage.prompt_tokens) * 20n)
      expect(await started.account()).toEqual({ balance: START - ended.costNanoDollars, held: 0n })
      expect(started.events.filter(({ type }) => type === 'usage-implausible')).toEqual([])
    })

    test('is charged by the estimate where the vendor reports nothing', async () => {
      const query = '[[fault:no-usage]] who'
      const response = await started.post(RERANK, { model, query, documents: DOCUMENTS })
      const { usage } = (await response.json()) as Ranking
      const ended = await started.ended(response)

      // The query once for each document, and the documents.
      const tokens = Math.ceil(query.length / 3) * 3 + Math.ceil(DOCUMENTS.join('').length / 3)
      expect(usage.total_tokens).toBe(tokens)
      expect(ended.usage).toEqual({ inputTokens: tokens, outputTokens: 0, searchUnits: 1 })
      expect(ended.costNanoDollars).toBe(model === 'rerank-v3.5' ? 2_000_000n : BigInt(tokens) * 20n)
      expect((await started.account()).held).toBe(0n)
    })

    test.each([
      ['status=503', 503],
      ['status=429', 429],
      ['status=400', 400],
      ['bad-key', 503],
      ['garbage', 502],
      ['half-json', 502],
      ['empty', 502],
      ['reset', 503],
    ])('answers a vendor failure (%s) with %i and no charge', async (fault, status) => {
      const response = await started.post(RERANK, { model, query: `[[fault:${fault}]] who`, documents: DOCUMENTS })
      const body = await response.json()

      expect({ status: response.status, body }).toMatchObject({
        status,
        body: { error: { message: expect.any(String) } },
      })
      expect(await started.account()).toEqual({ balance: START, held: 0n })
    })
  },
)

test.each<[string, object, string]>([
  ['top_n of 0', { top_n: 0 }, 'top_n'],
  ['a negative top_n', { top_n: -1 }, 'top_n'],
  ['half a result', { top_n: 1.5 }, 'top_n'],
  ['top_k of 0', { top_k: 0 }, 'top_k'],
  ['no documents', { documents: [] }, 'documents'],
  ['a document that is a number', { documents: ['a', 7] }, 'documents[1]'],
  ['an empty document', { documents: [''] }, 'documents[0]'],
  ['no query', { query: '' }, 'query'],
])('%s is refused', async (_name, members, param) => {
  const response = await started.post(RERANK, {
    ...{ model: 'vy-rerank-2.5', query: QUERY, documents: DOCUMENTS },
    ...members,
  })

  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param } })
  expect(started.sandbox.requests).toEqual([])
})

test('a request in the shape of version 2 of Cohere, as its client sends it, is answered in that shape', async () => {
  const response = await started.post(
    '/v2/rerank',
    { model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS, top_n: 1, max_tokens_per_doc: 4096 },
    { 'x-client-name': 'test', 'x-fern-language': 'JavaScript' },
  )

  expect(response.headers.get('x-signalbox-dropped')).toBe(null)
  expect(await response.json()).toMatchObject({
    id: expect.stringMatching(/./),
    results: [{ index: 1, relevance_score: 0.99 }],
    meta: { billed_units: { search_units: 1 } },
  })
  expect(started.sandbox.requests[0]).toMatchObject({
    path: '/v2/rerank',
    body: { model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS, top_n: 1, max_tokens_per_doc: 4096 },
  })
})

test.each([null, 2])('a request in the shape of Voyage, with top_k %j, is answered in that shape', async (top_k) => {
  const body = { model: 'rerank-2.5', query: QUERY, documents: DOCUMENTS, top_k, truncation: true }
  const response = await started.post(RERANK, body)
  const answer = (await response.json()) as { data: unknown[] }

  expect(answer).toMatchObject({ object: 'list', model: 'rerank-2.5', usage: { total_tokens: expect.any(Number) } })
  expect(answer.data[0]).toEqual({ index: 1, relevance_score: 0.99 })
  expect(answer.data).toHaveLength(top_k ?? 3)
  expect(answer).not.toHaveProperty('results')
  expect(started.sandbox.requests[0]?.body).toMatchObject({ truncation: true })
})

test('a fraction of the balance of a search unit cannot buy one', async () => {
  await started.close()
  started = await startGateway({
    prices: { currency: 'USD', prices: [{ model: 'rerank-v3.5', meter: 'search_unit', amount: '101' }] },
  })

  expect((await started.post(RERANK, { model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS })).status).toBe(402)
})

test('documents that are longer than 500 tokens are held for as several', async () => {
  const documents = Array.from({ length: 60 }, () => 'x'.repeat(3_000))
  const body = { model: 'rerank-v3.5', query: '[[fault:no-usage]] who', documents }

  const response = await started.post(RERANK, body)
  await response.body?.cancel()

  // 1,008 tokens with the query are three pieces each.
  expect((await started.ended(response)).usage).toMatchObject({ searchUnits: 2 })
})

describe('an own server', () => {
  let answer: unknown
  const received: { path: string | undefined; body: unknown }[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ path: request.url, body: JSON.parse(Buffer.concat(chunks).toString()) })
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(answer))
    })
  })

  beforeEach(async () => {
    received.length = 0
    await started.close()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const models = [{ id: 'own', kind: 'rerank' as const }]
    const prices = [{ model: 'own', meter: 'input_token' as const, amount: '1', per: 1_000_000 }]
    const vendors = [openaiCompatible({ id: 'own', baseURL, models })]
    started = await startGateway({ vendors, models: [], prices: { currency: 'USD', prices } })
  })
  afterEach(() => new Promise((resolve) => server.close(resolve)))

  const raw = [6.83, -2.5, 0.75].map((relevance_score, index) => ({ index, relevance_score, document: { text: 'x' } }))

  test('cuts the results to the best ones if the server ignores top_n, whatever the scores are', async () => {
    answer = { id: 'rerank-1', model: 'any', results: raw, usage: { total_tokens: 41 } }
    const ranked = await rank({ model: 'own', top_n: 2, rank_fields: ['text'] })

    expect(ranked).toEqual({
      id: 'rerank-1',
      object: 'list',
      model: 'own',
      results: [
        { index: 0, relevance_score: 6.83 },
        { index: 2, relevance_score: 0.75 },
      ],
      usage: { prompt_tokens: 41, total_tokens: 41 },
    })
    expect(received).toEqual([
      {
        path: '/v1/rerank',
        body: { model: 'own', query: QUERY, documents: DOCUMENTS, top_n: 2, rank_fields: ['text'] },
      },
    ])
  })

  test.each<[string, unknown]>([
    ['a position that no document has', { results: [{ index: 3, relevance_score: 1 }] }],
    ['a document twice', { results: [raw[0], raw[0]] }],
    ['half a position', { results: [{ index: 0.5, relevance_score: 1 }] }],
    ['no score', { results: [{ index: 0 }] }],
    ['no results', { results: [] }],
    ['fewer results than were asked for', { results: raw.slice(0, 2) }],
  ])('rejects an answer with %s', async (_name, broken) => {
    answer = broken
    const response = await started.post(RERANK, { model: 'own', query: QUERY, documents: DOCUMENTS })

    expect(response.status).toBe(502)
    expect(await started.account()).toEqual({ balance: START, held: 0n })
  })

  test.each([-5, 'many', null])('ignores a report of %j tokens', async (total_tokens) => {
    answer = { results: raw, usage: { total_tokens } }
    const response = await started.post(RERANK, { model: 'own', query: QUERY, documents: DOCUMENTS })
    const { usage } = (await response.json()) as Ranking
    const ended = await started.ended(response)

    const estimate = Math.ceil(QUERY.length / 3) * 3 + Math.ceil(DOCUMENTS.join('').length / 3)
    expect(ended.usage?.inputTokens).toBe(estimate)
    expect(usage.total_tokens).toBe(estimate)
  })

  test('charges a report of far too many tokens at the ceiling', async () => {
    answer = { results: raw, usage: { total_tokens: 1e12 } }
    const response = await started.post(RERANK, { model: 'own', query: QUERY, documents: DOCUMENTS })

    expect((await started.ended(response)).usage?.inputTokens).toBe(4 * 1_048_576)
  })

  test('charges a report of far too many search units as 16', async () => {
    answer = { results: raw, meta: { billed_units: { search_units: 1000 } } }
    const response = await started.post(RERANK, { model: 'own', query: QUERY, documents: DOCUMENTS })

    expect(await response.json()).toMatchObject({ meta: { billed_units: { search_units: 16 } } })
    expect((await started.ended(response)).usage).toMatchObject({ searchUnits: 16 })
  })
})

test('an equal request is answered from the cache, and one that differs in a member is not', async () => {
  await started.close()
  started = await startGateway({ cache: {} })
  const body = { model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS }

  const first = (await (await started.post(RERANK, body)).json()) as Ranking
  const second = (await (await started.post(RERANK, body)).json()) as Ranking
  await rank({ ...body, return_documents: true })
  await rank({ ...body, documents: [...DOCUMENTS].reverse() })

  expect(second.results).toEqual(first.results)
  expect(started.sandbox.requests).toHaveLength(3)
})
