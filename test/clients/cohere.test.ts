import { CohereClientV2, CohereError } from 'cohere-ai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

const QUERY = 'capital of Peru'
const DOCUMENTS = ['Quito is high', 'Lima is the capital of Peru', 'Peru has llamas']

let started: StartedGateway
let client: CohereClientV2

beforeAll(async () => {
  started = await startGateway()
  client = clientWith(TEST_KEY)
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

function clientWith(token: string): CohereClientV2 {
  return new CohereClientV2({ token, baseUrl: started.url, clientName: 'test', maxRetries: 0 })
}

test.each(['rerank-v3.5', 'vy-rerank-2.5', 'qw3-rerank', 'gte-rerank-v2'])(
  'rerank sorts documents by %s',
  async (model) => {
    const answer = await client.rerank({ model, query: QUERY, documents: DOCUMENTS, topN: 2 })

    expect(answer.results.map(({ index }) => index)).toEqual([1, 2])
    expect(answer.results[0]?.relevanceScore).toBe(0.99)
  },
)

test('rerank of a model of Cohere has its id and its search units', async () => {
  const answer = await client.rerank({
    ...{ model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS, maxTokensPerDoc: 512, priority: 3 },
  })

  expect(answer.id).toMatch(/./)
  expect(answer.meta?.billedUnits?.searchUnits).toBe(1)
  expect(started.sandbox.requests[0]?.body).toEqual({
    ...{ model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS, max_tokens_per_doc: 512, priority: 3 },
  })
})

test('an error has its status and its message', async () => {
  const fault = await client
    .rerank({ model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS, topN: 0 })
    .catch((error: unknown) => error)

  expect(fault).toBeInstanceOf(CohereError)
  expect(fault).toMatchObject({ statusCode: 400, body: { error: { param: 'top_n' } } })
})

test('a wrong key is an error of authentication', async () => {
  await expect(
    clientWith('sk-wrong').rerank({ model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS }),
  ).rejects.toMatchObject({ statusCode: 401 })
})

test('a failure of the vendor is an error that the client may repeat, and is not charged', async () => {
  const before = await started.account()
  const query = '[[fault:status=503]] who'

  await expect(client.rerank({ model: 'rerank-v3.5', query, documents: DOCUMENTS })).rejects.toMatchObject({
    statusCode: 503,
  })
  expect(await started.account()).toEqual(before)
})
