import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { VoyageAIClient, VoyageAIError } from 'voyageai'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

const QUERY = 'capital of Peru'
const DOCUMENTS = ['Quito is high', 'Lima is the capital of Peru', 'Peru has llamas']

let started: StartedGateway
let client: VoyageAIClient

beforeAll(async () => {
  started = await startGateway()
  client = clientWith(TEST_KEY)
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

function clientWith(apiKey: string): VoyageAIClient {
  return new VoyageAIClient({ apiKey, baseUrl: `${started.url}/v1`, maxRetries: 0 })
}

test.each(['rerank-2.5', 'vy-rerank-2.5', 'rerank-v3.5', 'qw3-rerank'])(
  'rerank with topK sorts documents by %s',
  async (model) => {
    const answer = await client.rerank({ model, query: QUERY, documents: DOCUMENTS, topK: 2, truncation: true })

    expect(answer).toMatchObject({ object: 'list', model })
    expect(answer.data?.map(({ index }) => index)).toEqual([1, 2])
    expect(answer.data?.[0]?.relevanceScore).toBe(0.99)
    expect(answer.usage?.totalTokens).toBeGreaterThan(0)
  },
)

test('rerank without topK has its results under the name that other clients read', async () => {
  const answer = await client.rerank({ model: 'rerank-2.5', query: QUERY, documents: DOCUMENTS })

  expect(answer.data).toBeUndefined()
  expect(answer).toMatchObject({ results: [{ index: 1 }, { index: 2 }, { index: 0 }] })
})

test('embed gives vectors in the order of the texts', async () => {
  const input = ['a lighthouse', 'a harbour']
  const answer = await client.embed({ model: 'vy-4', input, inputType: 'document', truncation: true })
  const alone = await client.embed({ model: 'vy-4', input: 'a harbour', inputType: 'document' })

  expect(answer.data?.map(({ index }) => index)).toEqual([0, 1])
  expect(answer.data?.[1]?.embedding).toHaveLength(1024)
  expect(answer.data?.[1]?.embedding).toEqual(alone.data?.[0]?.embedding)
  expect(answer.usage?.totalTokens).toBeGreaterThan(0)
  expect(started.sandbox.requests[0]?.body).toMatchObject({ input, input_type: 'document', truncation: true })
})

test('embed gives vectors of the size that was asked for', async () => {
  const answer = await client.embed({ model: 'vy-4', input: 'a lighthouse', outputDimension: 256 })

  expect(answer.data?.[0]?.embedding).toHaveLength(256)
})

test('an error has its status and its message', async () => {
  const fault = await client
    .rerank({ model: 'rerank-2.5', query: QUERY, documents: DOCUMENTS, topK: 0 })
    .catch((error: unknown) => error)

  expect(fault).toBeInstanceOf(VoyageAIError)
  expect(fault).toMatchObject({ statusCode: 400, body: { error: { param: 'top_k' } } })
})

test('a wrong key is an error of authentication', async () => {
  await expect(clientWith('sk-wrong').embed({ model: 'vy-4', input: 'a lighthouse' })).rejects.toMatchObject({
    statusCode: 401,
  })
})
