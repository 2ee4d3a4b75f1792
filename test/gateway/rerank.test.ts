import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { dataUrl, pngFile } from '../wire/media-files.ts'

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
    ])('whose vendor fails (%s) is answered with %i and not charged', async (fault, status) => {
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

describe('more documents than the vendor takes', () => {
  const texts = (count: number) =>
    Array.from({ length: count }, (_, index) => (index === count - 1 ? 'the capital of Peru' : `text ${index}`))

  test.each([
    ['vy-rerank-2.5', 1001, 2],
    ['qw3-rerank', 1001, 3],
    ['rerank-v3.5', 2001, 3],
  ])('are split for %s and merged by score, charged once', async (model, count, calls) => {
    const response = await started.post(RERANK, { model, query: QUERY, documents: texts(count), top_n: 3 })
    const answer = (await response.json()) as Ranking
    const ended = await started.ended(response)

    expect(answer.results.map(({ index }) => index)).toEqual([count - 1, 0, 1])
    expect(started.sandbox.requests).toHaveLength(calls)
    expect(ended.usage).toMatchObject({
      inputTokens: answer.usage.total_tokens,
      searchUnits: Math.ceil(count / 100),
    })
    expect(await started.account()).toEqual({ balance: START - ended.costNanoDollars, held: 0n })
  })

  test('are refused where the model is not known to score each by itself', async () => {
    const response = await started.post(RERANK, { model: 'gte-rerank-v2', query: QUERY, documents: texts(501) })

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: 'documents' } })
    expect(await started.account()).toEqual({ balance: START, held: 0n })
  })

  test.each([
    // A query of 4,000 tokens by the estimate, 3,000 by the stand-in, for each of the documents.
    ['vy-rerank-2.5', 300, 3],
    ['qw3-rerank', 60, 3],
  ])('or more tokens are split for %s, and refused by no vendor', async (model, count, calls) => {
    const query = 'capital of Peru '.repeat(750)
    const response = await started.post(RERANK, { model, query, documents: texts(count), top_n: 1 })
    const answer = (await response.json()) as Ranking
    const ended = await started.ended(response)

    expect({ status: response.status, answer }).toMatchObject({ status: 200 })
    expect(answer.results.map(({ index }) => index)).toEqual([count - 1])
    expect(started.sandbox.requests).toHaveLength(calls)
    expect(ended.usage).toMatchObject({ inputTokens: answer.usage.total_tokens })
    expect(await started.account()).toEqual({ balance: START - ended.costNanoDollars, held: 0n })
  })

  test('that would become more than a hundred calls are refused', async () => {
    const query = 'x'.repeat(30_000)
    const response = await started.post(RERANK, { model: 'qw3-rerank', query, documents: texts(1_200) })

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { param: 'documents', message: expect.stringContaining('110 calls') },
    })
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toEqual({ balance: START, held: 0n })
  })

  test('or certainly more tokens are refused where the model is not known to score each by itself', async () => {
    const ask = (letters: number, blanks = 0) =>
      started.post(RERANK, {
        model: 'gte-rerank-v2',
        query: QUERY,
        documents: Array.from({ length: 100 }, () => 'x'.repeat(letters) + ' '.repeat(blanks)),
      })
    const refused = await ask(1_900)

    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      error: { param: 'documents', message: expect.stringContaining('30000 tokens') },
    })
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toEqual({ balance: START, held: 0n })
    // What is not certainly too much is for the vendor to say.
    expect((await ask(1_000)).status).toBe(200)
    expect((await ask(1_000, 2_000)).status).toBe(400)
    expect(started.sandbox.requests).toHaveLength(2)
  })

  test('are charged as far as they were answered when a part fails, if the operator wants it', async () => {
    await started.close()
    started = await startGateway({ chargePartialBatches: true })
    const documents = [...texts(1000), '[[fault:status=400]]']
    const response = await started.post(RERANK, { model: 'vy-rerank-2.5', query: QUERY, documents })
    await response.body?.cancel()
    const ended = await started.ended(response)

    expect(response.status).toBe(400)
    // The stand-in counts four bytes a token, the query for each document.
    const tokens = texts(1000).reduce((sum, text) => sum + Math.ceil(text.length / 4), 4 * 1000)
    expect(ended.usage).toEqual({ inputTokens: tokens, outputTokens: 0, searchUnits: 10 })
    expect(await started.account()).toEqual({ balance: START - BigInt(tokens) * 20n, held: 0n })
  })
})

describe('pictures', () => {
  const PICTURE = dataUrl('image/png', pngFile(320, 200))
  const pictures = [{ image: 'https://example.com/capital-of-peru.png' }, 'Quito', { image: PICTURE }]
  const ask = (documents: unknown[], model = 'qw3-vl-rerank', rest: object = {}) =>
    started.post(RERANK, { model, query: QUERY, documents, ...rest })

  test('are ranked with texts, and repeated as the caller wrote them', async () => {
    const response = await ask(pictures, 'qw3-vl-rerank', { return_documents: true })
    const answer = (await response.json()) as Ranking

    expect(answer.results.map(({ document }) => document)).toEqual([pictures[0], { text: 'Quito' }, pictures[2]])
    expect(started.sandbox.requests[0]?.body).toMatchObject({
      input: { documents: [pictures[0], { text: 'Quito' }, pictures[2]] },
    })
  })

  test('are charged as pictures', async () => {
    const response = await ask(pictures)
    const { usage } = (await response.json()) as Ranking
    const ended = await started.ended(response)

    expect(ended.usage).toEqual({
      inputTokens: usage.total_tokens,
      inputImageTokens: 500,
      outputTokens: 0,
      searchUnits: 1,
    })
    expect(ended.costNanoDollars).toBe(BigInt(usage.total_tokens - 500) * 20n + 500n * 50n)
    expect(await started.account()).toEqual({ balance: START - ended.costNanoDollars, held: 0n })
    expect(started.events.filter(({ type }) => type.startsWith('usage-'))).toEqual([])
  })

  test('are charged as they were held for where the vendor reports nothing', async () => {
    const response = await started.post(RERANK, {
      ...{ model: 'qw3-vl-rerank', query: '[[fault:no-usage]] who', documents: pictures },
    })
    await response.body?.cancel()
    const { usage, costNanoDollars } = await started.ended(response)

    // One of unknown size is held for by the most that a document may be.
    expect(usage?.inputImageTokens).toBeGreaterThan(8_000)
    expect(usage?.inputImageTokens).toBeLessThan(10_000)
    expect(await started.account()).toEqual({ balance: START - costNanoDollars, held: 0n })
  })

  test('are shown to no hook that reads texts', async () => {
    await started.close()
    const seen: string[] = []
    started = await startGateway({
      hooks: [{ name: 'watch', request: (call) => void seen.push(...call.texts().map(({ text }) => text)) }],
    })

    expect((await ask(pictures)).status).toBe(200)
    expect(seen).toEqual([QUERY, 'Quito'])
  })

  test.each<[string, unknown[], string]>([
    ['a file name', [{ image: 'cat.png' }], 'documents[0].image'],
    ['an empty address', [{ image: '' }], 'documents[0].image'],
    ['data that is no picture', ['a', { image: 'data:text/plain;base64,aGk=' }], 'documents[1].image'],
    ['data beside other members', [{ title: 'x', image: PICTURE }], 'documents[0].image'],
    ['forty-one pictures', Array.from({ length: 41 }, () => ({ image: PICTURE })), 'documents'],
    ['a hundred and one texts', Array.from({ length: 101 }, () => 'x'), 'documents'],
  ])('that are %s are refused', async (_name, documents, param) => {
    const response = await ask(documents)

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param } })
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toEqual({ balance: START, held: 0n })
  })

  test.each(['vy-rerank-2.5', 'qw3-rerank', 'gte-rerank-v2', 'rerank-v3.5'])('are refused at %s', async (model) => {
    const response = await ask(pictures, model)

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { code: 'unsupported_parameter', param: 'documents[0].image' },
    })
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toEqual({ balance: START, held: 0n })
  })

  test('at private addresses are refused', async () => {
    await started.close()
    started = await startGateway({ allowPrivateUrls: false })
    const response = await ask([{ image: 'http://169.254.169.254/latest' }])

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: 'documents[0].image' } })
  })

  test('in objects with a text, or as addresses beside other members, are part of what is ranked as text', async () => {
    const documents = [
      { text: 'Quito', image: 'https://example.com/a.png' },
      { title: 'Peru', image: 'https://example.com/b.png' },
    ]

    expect((await ask(documents, 'vy-rerank-2.5')).status).toBe(200)
    expect(started.sandbox.requests[0]?.body).toMatchObject({ documents: ['Quito', JSON.stringify(documents[1])] })
  })
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

  test('that ignores top_n is cut to the best, whatever the scores are', async () => {
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
  ])('that answers with %s has not answered', async (_name, broken) => {
    answer = broken
    const response = await started.post(RERANK, { model: 'own', query: QUERY, documents: DOCUMENTS })

    expect(response.status).toBe(502)
    expect(await started.account()).toEqual({ balance: START, held: 0n })
  })

  test.each([-5, 1e12, 'many', null])('that reports %j tokens is not believed', async (total_tokens) => {
    answer = { results: raw, usage: { total_tokens } }
    const response = await started.post(RERANK, { model: 'own', query: QUERY, documents: DOCUMENTS })
    const { usage } = (await response.json()) as Ranking
    const ended = await started.ended(response)

    const estimate = Math.ceil(QUERY.length / 3) * 3 + Math.ceil(DOCUMENTS.join('').length / 3)
    expect(ended.usage?.inputTokens).toBe(estimate)
    expect(usage.total_tokens).toBe(estimate)
  })

  test('that reports far more search units than there can be is not believed', async () => {
    answer = { results: raw, meta: { billed_units: { search_units: 1000 } } }
    const response = await started.post(RERANK, { model: 'own', query: QUERY, documents: DOCUMENTS })

    expect(await response.json()).toMatchObject({ meta: { billed_units: { search_units: 1 } } })
    expect((await started.ended(response)).usage).toMatchObject({ searchUnits: 1 })
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
