import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { dataUrl, pngFile } from '../../wire/media-files.ts'

const RERANK = '/v1/rerank'
const QUERY = 'capital of Peru'
const START = 100_000_000_000n

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway()
})
afterEach(() => started.close())

interface Ranking {
  results: { index: number; document?: unknown }[]
  usage: { total_tokens: number }
}

describe('images', () => {
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

  test('are charged as images', async () => {
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

  test('are shown to hooks by their addresses only', async () => {
    await started.close()
    const seen: string[] = []
    started = await startGateway({
      hooks: [{ name: 'watch', request: (call) => void seen.push(...call.texts().map(({ text }) => text)) }],
    })

    expect((await ask(pictures)).status).toBe(200)
    expect(seen).toEqual([QUERY, 'https://example.com/capital-of-peru.png', 'Quito'])
  })

  test.each<[string, unknown[], string]>([
    ['a file name', [{ image: 'cat.png' }], 'documents[0].image'],
    ['an empty address', [{ image: '' }], 'documents[0].image'],
    ['data that is no picture', ['a', { image: 'data:text/plain;base64,aGk=' }], 'documents[1].image'],
    ['data beside other members', [{ title: 'x', image: PICTURE }], 'documents[0].image'],
    ['forty-one pictures', Array.from({ length: 41 }, () => ({ image: PICTURE })), 'documents'],
    ['a hundred and one texts', Array.from({ length: 101 }, () => 'x'), 'documents'],
  ])('are rejected if they are %s', async (_name, documents, param) => {
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

  test('are rejected at private addresses', async () => {
    await started.close()
    started = await startGateway({ allowPrivateUrls: false })
    const response = await ask([{ image: 'http://169.254.169.254/latest' }])

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: 'documents[0].image' } })
  })

  test('in objects with a text, or as URLs among other members, are ranked as text', async () => {
    const documents = [
      { text: 'Quito', image: 'https://example.com/a.png' },
      { title: 'Peru', image: 'https://example.com/b.png' },
    ]

    expect((await ask(documents, 'vy-rerank-2.5')).status).toBe(200)
    expect(started.sandbox.requests[0]?.body).toMatchObject({ documents: ['Quito', JSON.stringify(documents[1])] })
  })
})
