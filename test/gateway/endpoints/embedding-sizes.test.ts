import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import { decodeVector, encodeVector } from '../../../src/endpoints/embeddings/embeddings-endpoint.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, json } from '../streams/answering-vendor.ts'

const EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]

const PRICES: PriceFile = { currency: 'USD', prices: [{ model: 'free', meter: 'input_token', amount: '0.01' }] }

let vendor: AnsweringVendor
let started: StartedGateway
/** Vendor's vector for each input. */
let vectors: readonly (readonly (number | null)[])[] = []
let hasIndex = true

beforeEach(async () => {
  hasIndex = true
  // A server that ignores `dimensions`.
  vendor = await answeringVendor((response, body) => {
    const data = vectors.map((vector, index) => ({
      object: 'embedding',
      ...(hasIndex ? { index } : {}),
      embedding: body['encoding_format'] === 'base64' ? encodeVector(vector as number[]) : vector,
    }))
    json(response, { object: 'list', data, model: 'own', usage: { prompt_tokens: 2, total_tokens: 2 } })
  })
  started = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
    models: [
      { id: 'free', kind: 'embedding', vendor: 'openai', upstream: 'own' },
      { id: 'sized', kind: 'embedding', vendor: 'openai', upstream: 'own', limits: { dimensions: 16 } },
      {
        id: 'fixed',
        kind: 'embedding',
        vendor: 'openai',
        upstream: 'own',
        limits: { dimensions: 8, nativeDimensions: [4, 8], truncatesDimensions: false },
      },
    ],
    billing: 'off',
  })
})
afterEach(async () => {
  await started.close()
  await vendor.close()
})

interface Answer {
  readonly data?: { readonly index: number; readonly embedding: number[] | string }[]
  readonly error?: { readonly message: string; readonly param: string }
}

async function embed(body: object): Promise<{ status: number; answer: Answer; numbers: number[][]; retry: unknown }> {
  const response = await started.post('/v1/embeddings', { model: 'free', ...body })
  const answer = (await response.json()) as Answer
  const numbers = (answer.data ?? []).map(({ embedding }) =>
    typeof embedding === 'string' ? decodeVector(embedding) : embedding,
  )
  return { status: response.status, answer, numbers, retry: response.headers.get('x-should-retry') }
}

describe.each(['float', 'base64'] as const)('vectors as %s of a server that ignores dimensions', (encoding_format) => {
  it('are truncated to a smaller size and have a length of 1', async () => {
    vectors = [EIGHT, EIGHT.toReversed()]
    const { status, numbers } = await embed({ input: ['a', 'b'], dimensions: 4, encoding_format })

    expect([status, numbers.map((vector) => vector.length)]).toEqual([200, [4, 4]])
    for (const vector of numbers) expect(Math.hypot(...vector)).toBeCloseTo(1, 6)
    expect(numbers[0]![1]! / numbers[0]![0]!).toBeCloseTo(2, 6)
  })

  it('get 502 with the reason if they are too short, and the vendor stays in use', async () => {
    vectors = [EIGHT]
    const short = await embed({ input: 'a', dimensions: 16, encoding_format })
    for (let call = 0; call < 10; call++) await embed({ input: 'a', dimensions: 16, encoding_format })
    const next = await embed({ input: 'a', dimensions: 8, encoding_format })

    expect([short.status, short.retry, short.answer.error]).toMatchObject([
      502,
      'false',
      {
        message: 'dimensions: the vendor of this model ignored 16 and sent vectors of 8 numbers',
        param: 'dimensions',
      },
    ])
    expect([next.status, next.numbers]).toEqual([200, [EIGHT]])
  })

  it('get 502 if they are shorter than the model should have', async () => {
    vectors = [EIGHT]

    expect((await embed({ model: 'sized', input: 'a', dimensions: 16, encoding_format })).status).toBe(502)
  })

  it('get 502 if they are larger and the model has no meaning in a part of them', async () => {
    vectors = [EIGHT]

    expect((await embed({ model: 'fixed', input: 'a', dimensions: 4, encoding_format })).status).toBe(502)
  })

  it('pass if they are packed bits of the requested size', async () => {
    vectors = [EIGHT]

    expect((await embed({ input: 'a', dimensions: 64, encoding_format })).numbers).toEqual([EIGHT])
  })

  it('get an index if the server sends none', async () => {
    vectors = [EIGHT, EIGHT.toReversed()]
    hasIndex = false
    const { answer } = await embed({ input: ['a', 'b'], encoding_format })

    expect(answer.data?.map(({ index }) => index)).toEqual([0, 1])
  })
})

it.each([
  ['null', 'float'],
  ['null', 'base64'],
  ['NaN', 'float'],
  ['NaN', 'base64'],
  ['-Infinity', 'float'],
] as const)('refuses %s in a vector of numbers with 502 and charges nothing (%s)', async (odd, encoding_format) => {
  const server = await answeringVendor((response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const vector = `{"object":"embedding","index":0,"embedding":[1,${odd},3]}`
    response.end(`{"object":"list","data":[${vector}],"model":"own","usage":{"prompt_tokens":2,"total_tokens":2}}`)
  })
  await started.close()
  started = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: server.origin })],
    models: [{ id: 'free', kind: 'embedding', vendor: 'openai', upstream: 'own' }],
    prices: PRICES,
  })
  const before = await started.account()
  const { status } = await embed({ input: 'a', encoding_format })
  const after = await started.account()
  await server.close()

  expect([status, before.balance - after.balance]).toEqual([502, 0n])
})

const BINARY = new Uint8Array(new Float32Array([1, Number.NaN, 3]).buffer)

it.each([
  ['NaN', { encoding_format: 'base64' }, BINARY],
  ['-Infinity', { encoding_format: 'base64' }, new Uint8Array(new Float32Array([-Infinity, 2, 3]).buffer)],
  ['NaN in a vector of another size', { encoding_format: 'base64', dimensions: 2 }, BINARY],
  ['NaN in base64 that the vendor sends unasked', { encoding_format: 'float' }, BINARY],
] as const)('refuses %s in base64 of float32 with 502 and charges nothing', async (_odd, format, bytes) => {
  const encoded = Buffer.from(bytes).toString('base64')
  const server = await startEncoded(encoded)
  const before = await started.account()
  const { status } = await embed({ input: 'a', ...format })
  const after = await started.account()
  await server.close()

  expect([status, before.balance - after.balance]).toEqual([502, 0n])
})

it.each([
  ['the largest floats', { encoding_format: 'base64' }, new Uint8Array(new Float32Array([3.4e38, -3.4e38]).buffer)],
  ['bytes whose bits are those of NaN', { encoding_format: 'base64', output_dtype: 'int8' }, BINARY],
] as const)('passes %s in base64', async (_what, format, bytes) => {
  const encoded = Buffer.from(bytes).toString('base64')
  const server = await startEncoded(encoded)
  const response = await started.post('/v1/embeddings', { model: 'free', input: 'a', ...format })
  const { data } = (await response.json()) as Answer
  await server.close()

  expect([response.status, data?.[0]?.embedding]).toEqual([200, encoded])
})

/** Starts a gateway before a server whose vectors are this base64, whatever is asked for. */
async function startEncoded(embedding: string): Promise<AnsweringVendor> {
  const data = [{ object: 'embedding', index: 0, embedding }]
  const server = await answeringVendor((response) =>
    json(response, { object: 'list', data, model: 'own', usage: { prompt_tokens: 2, total_tokens: 2 } }),
  )
  await started.close()
  started = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: server.origin })],
    models: [{ id: 'free', kind: 'embedding', vendor: 'openai', upstream: 'own' }],
    prices: PRICES,
  })
  return server
}

it('charges truncated vectors, and what a vendor reports for vectors that are too short', async () => {
  await started.close()
  started = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
    models: [{ id: 'free', kind: 'embedding', vendor: 'openai', upstream: 'own' }],
    prices: PRICES,
  })
  vectors = [EIGHT]
  const charges: bigint[] = []
  for (const dimensions of [4, 16]) {
    const before = await started.account()
    await embed({ input: 'a', dimensions })
    charges.push(before.balance - (await started.account()).balance)
  }

  expect(charges).toEqual([20_000_000n, 0n])
})
