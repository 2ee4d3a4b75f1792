import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decodeVector } from '../../../src/endpoints/embeddings/embeddings-endpoint.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const EMBEDDINGS = '/v1/embeddings'
const MODELS = ['embedding-relayed', 'text-embedding-v4', 'gmn-embedding-001', 'vy-4'] as const

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway()
})
afterEach(() => started.close())

interface EmbeddingList {
  object: string
  model: string
  data: { object: string; index: number; embedding: number[] | string }[]
  usage: { prompt_tokens: number; total_tokens: number }
}

async function embed(body: Record<string, unknown>): Promise<EmbeddingList> {
  const response = await started.post(EMBEDDINGS, body)
  const answer = (await response.json()) as EmbeddingList
  expect({ status: response.status, answer }).toMatchObject({ status: 200 })
  return answer
}

function lengthOf(vector: readonly number[]): number {
  return Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
}

function numbersOf(list: EmbeddingList, index = 0): number[] {
  const embedding = list.data[index]?.embedding
  return typeof embedding === 'string' ? decodeVector(embedding) : (embedding ?? [])
}

describe.each(MODELS)('embeddings of %s', (model) => {
  test('carry the public model id, the index of each text, and the usage', async () => {
    const list = await embed({ model, input: ['good morning', 'good night'] })

    expect(list).toMatchObject({ object: 'list', model })
    expect(list.data.map(({ object, index }) => [object, index])).toEqual([
      ['embedding', 0],
      ['embedding', 1],
    ])
    expect(list.usage.prompt_tokens).toBeGreaterThan(0)
    expect(list.usage.total_tokens).toBe(list.usage.prompt_tokens)
    expect(numbersOf(list, 0)).not.toEqual(numbersOf(list, 1))
  })

  test('are the same numbers as floats and as base64', async () => {
    const floats = await embed({ model, input: 'good morning', encoding_format: 'float' })
    const base64 = await embed({ model, input: 'good morning', encoding_format: 'base64' })

    expect(Array.isArray(floats.data[0]?.embedding)).toBe(true)
    expect(typeof base64.data[0]?.embedding).toBe('string')
    expect(numbersOf(base64)).toEqual(numbersOf(floats).map(Math.fround))
    expect(base64.model).toBe(model)
  })

  test('are equal for one text and for a list of one', async () => {
    const one = await embed({ model, input: 'good morning' })
    const list = await embed({ model, input: ['good morning'] })

    expect(list.data).toEqual(one.data)
  })

  test('are charged once, by the tokens reported', async () => {
    const response = await started.post(EMBEDDINGS, { model, input: 'good morning' })
    const list = (await response.json()) as EmbeddingList
    const ended = await started.ended(response)

    expect(ended.usage).toMatchObject({ inputTokens: list.usage.prompt_tokens })
    expect(ended.costNanoDollars).toBe(BigInt(list.usage.prompt_tokens) * 20n)
    expect(await started.account()).toEqual({ balance: 100_000_000_000n - ended.costNanoDollars, held: 0n })
  })

  test('are charged by the estimate if the vendor reports no usage', async () => {
    const response = await started.post(EMBEDDINGS, { model, input: '[[fault:no-usage]] good morning' })
    await response.body?.cancel()
    const ended = await started.ended(response)

    expect(response.status).toBe(200)
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
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
    ['error-event', 503],
  ])('answers a vendor failure (%s) with %i and no charge', async (fault, status) => {
    const response = await started.post(EMBEDDINGS, { model, input: `[[fault:${fault}]] good morning` })
    const body = await response.json()

    expect({ status: response.status, body }).toMatchObject({
      status,
      body: { error: { message: expect.any(String) } },
    })
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })
})

describe.each([
  ['text-embedding-v4', 25, 10, 3],
  ['gmn-embedding-001', 205, 100, 3],
  ['vy-4', 1001, 1000, 2],
] as const)('a batch for %s of %i texts, %i at a time', (model, count, limit, calls) => {
  const dimensions = 256
  const input = Array.from({ length: count }, (_, index) => `text number ${index}`)

  test('is sent in parts and comes back in order, usage added up, charged once', async () => {
    const response = await started.post(EMBEDDINGS, { model, input, dimensions, encoding_format: 'base64' })
    const list = (await response.json()) as EmbeddingList
    const ended = await started.ended(response)
    const [last] = (await embed({ model, input: [input.at(-1) ?? ''], dimensions, encoding_format: 'base64' })).data
    const settlements = (await started.gateway.accounts.ledger('acct_test')).filter(({ kind }) => kind === 'charge')

    expect(started.sandbox.requests).toHaveLength(calls + 1)
    expect(list.data.map(({ index }) => index)).toEqual(input.map((_, index) => index))
    expect(list.data.at(-1)?.embedding).toBe(last?.embedding)
    expect(new Set(list.data.map(({ embedding }) => embedding)).size).toBe(count)
    expect(ended.usage?.inputTokens).toBe(list.usage.prompt_tokens)
    expect(list.usage.prompt_tokens).toBeGreaterThanOrEqual(count)
    expect(settlements).toHaveLength(2)
  })

  test('fails as a whole when one part fails, and is not charged', async () => {
    const failing = input.map((text, index) => (index === limit ? `[[fault:status=500]] ${text}` : text))
    const response = await started.post(EMBEDDINGS, { model, input: failing, dimensions })
    const body = await response.json()

    expect(response.status).toBe(503)
    expect(body.error.code).toBe('upstream_unavailable')
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('is charged by the estimate when one part reports no usage', async () => {
    const silent = input.map((text, index) => (index === limit ? `[[fault:no-usage]] ${text}` : text))
    const response = await started.post(EMBEDDINGS, { model, input: silent, dimensions })
    await response.body?.cancel()
    const ended = await started.ended(response)

    expect(response.status).toBe(200)
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect((await started.account()).held).toBe(0n)
  })
})

describe.each([
  ['vy-4-large', 120_000],
  ['vy-4', 320_000],
  ['vy-4-lite', 1_000_000],
  ['embedding-relayed', 300_000],
] as const)('a batch for %s, which takes %i tokens a call', (model, maxTokens) => {
  const text = 'x'.repeat(30_000)
  const fitting = Array.from({ length: maxTokens / 10_000 }, () => text)

  test.each([
    ['that many tokens', fitting, 1],
    ['more tokens', [...fitting, 'one more'], 2],
    ['one text of more tokens', ['first', 'x'.repeat(3 * maxTokens + 3), 'last'], 3],
  ])('sends %s in as many calls as needed, and keeps the order', async (_what, input, calls) => {
    const list = await embed({ model, input, dimensions: 256 })

    expect(started.sandbox.requests).toHaveLength(calls)
    expect(list.data.map(({ index }) => index)).toEqual(input.map((_, index) => index))
  })
})

describe('dimensions', () => {
  test.each([
    ['text-embedding-v4', 256, 256],
    ['gmn-embedding-001', 768, 768],
    ['vy-4', 2048, 2048],
  ] as const)('%s makes %i itself', async (model, dimensions, asked) => {
    const list = await embed({ model, input: 'good morning', dimensions })
    const body = started.sandbox.requests[0]?.body

    expect(numbersOf(list)).toHaveLength(dimensions)
    expect(lengthOf(numbersOf(list))).toBeCloseTo(1, 5)
    expect(JSON.stringify(body)).toMatch(new RegExp(`"(dimensions|outputDimensionality|output_dimension)":${asked}`))
  })

  test.each([
    ['embedding-relayed', 300],
    ['text-embedding-v4', 300],
    ['gmn-embedding-001', 100],
  ] as const)('a vector of %s is cut to %i and has length 1 again', async (model, dimensions) => {
    const whole = numbersOf(await embed({ model, input: 'good morning' }))
    const cut = numbersOf(await embed({ model, input: 'good morning', dimensions }))
    const inBase64 = await embed({ model, input: 'good morning', dimensions, encoding_format: 'base64' })

    expect(cut).toHaveLength(dimensions)
    expect(lengthOf(cut)).toBeCloseTo(1, 5)
    // The direction is that of the longer vector's beginning.
    const scale = lengthOf(whole.slice(0, dimensions))
    for (const index of [0, 1, dimensions - 1]) expect(cut[index]).toBeCloseTo((whole[index] ?? 0) / scale, 5)
    expect(numbersOf(inBase64)).toEqual(cut.map(Math.fround))
  })

  test.each([
    ['embedding-relayed', 1537],
    ['text-embedding-v4', 2049],
    ['text-embedding-004', 769],
    ['gmn-embedding-001', 3073],
    ['vy-4', 2049],
    ['vy-4', 1000],
    ['vy-4', 128],
    ['vy-4-large', 300],
    ['vy-4-lite', 1023],
  ] as const)('%s gives no %i', async (model, dimensions) => {
    const response = await started.post(EMBEDDINGS, { model, input: 'good morning', dimensions })

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param: 'dimensions' } })
    expect(started.sandbox.requests).toHaveLength(0)
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test.each([256, 512, 1024, 2048])('vy-4 gives %i', async (dimensions) => {
    expect(numbersOf(await embed({ model: 'vy-4', input: 'good morning', dimensions }))).toHaveLength(dimensions)
  })

  test('treats null as the default', async () => {
    expect(numbersOf(await embed({ model: 'vy-4', input: 'good morning', dimensions: null }))).toHaveLength(1024)
  })
})

describe('token ids', () => {
  test.each([
    ['one list', [15339, 1917], 1],
    [
      'several lists',
      [
        [15339, 1917],
        [19045, 3814],
      ],
      2,
    ],
  ])('%s of them pass to a vendor that takes them', async (_name, input, count) => {
    const list = await embed({ model: 'embedding-relayed', input })

    expect(list.data).toHaveLength(count)
    expect(started.sandbox.requests[0]?.body).toMatchObject({ input })
  })

  test.each(['text-embedding-v4', 'gmn-embedding-001', 'vy-4'])('%s takes none, and says so', async (model) => {
    const response = await started.post(EMBEDDINGS, { model, input: [15339, 1917] })

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: 'input', type: 'invalid_request_error' } })
    expect(started.sandbox.requests).toHaveLength(0)
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })
})
