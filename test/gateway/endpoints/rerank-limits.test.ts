import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const RERANK = '/v1/rerank'
const QUERY = 'capital of Peru'
const START = 100_000_000_000n

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway()
})
afterEach(() => started.close())

interface Ranking {
  results: { index: number }[]
  usage: { total_tokens: number }
}

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

  test('are rejected if they would need more than a hundred calls', async () => {
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
    // The vendor decides about requests that may still fit.
    expect((await ask(1_000)).status).toBe(200)
    expect((await ask(1_000, 2_000)).status).toBe(400)
    expect(started.sandbox.requests).toHaveLength(2)
  })
})
