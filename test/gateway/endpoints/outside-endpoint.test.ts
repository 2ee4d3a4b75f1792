import { Buffer } from 'node:buffer'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
// Everything that a host gets, and nothing that it does not.
import {
  defineEndpoint,
  GatewayError,
  openai,
  openaiErrors,
  type PassThroughOperation,
  passThrough,
  type StreamTransform,
  type Vendor,
} from '../../../src/index.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

interface RankRequest {
  readonly model: string
  readonly query: string
  readonly documents: readonly string[]
  readonly stream?: boolean
}

/** Vendor's operation for it. */
interface RankOffer {
  readonly rank?: PassThroughOperation<RankRequest>
}

const PATH = '/v1/rank'

/** An endpoint that the library does not have: documents in the order of their fit. */
const rankEndpoint = defineEndpoint<RankRequest, RankOffer>({
  id: 'rank',
  path: PATH,
  kind: 'rank',
  errors: openaiErrors,
  parse(body) {
    const { model, query, documents, stream } = body as Record<string, unknown>
    if (typeof query !== 'string')
      throw new GatewayError('invalid_request', { message: 'query: expected text', param: 'query' })
    if (!Array.isArray(documents) || documents.length === 0)
      throw new GatewayError('invalid_request', { message: 'documents: expected a list', param: 'documents' })
    return { model: String(model), query, documents: documents.map(String), stream: stream === true }
  },
  isStream: (request) => request.stream === true,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  priceFields: ({ documents }) => ({ batch: documents.length > 2 ? 'large' : 'small' }),
  createOperation: ({ rank }, call) => rank && passThrough(rank.toWire(call), rank, call),
})

/** Passes events on, and reads the usage of the last one. */
class RankStream implements StreamTransform {
  hasContent = false
  isComplete = false
  readonly atBoundary = true
  readonly failure = undefined
  readonly outputBytesSeen = 0
  usage: { inputTokens: number } | undefined

  push(chunk: Uint8Array): Uint8Array {
    this.hasContent = true
    const [, tokens] = /"tokens":(\d+)/.exec(Buffer.from(chunk).toString()) ?? []
    if (tokens !== undefined) this.usage = { inputTokens: Number(tokens) }
    return chunk
  }

  end(): undefined {
    this.isComplete = this.usage !== undefined
  }
}

const rank: PassThroughOperation<RankRequest> = {
  toWire: ({ request, model, apiKey }) => ({
    path: '/rank',
    headers: ['content-type', 'application/json', 'authorization', `Bearer ${apiKey}`],
    body: JSON.stringify({ ...request, model: model.upstream }),
    dropped: [],
  }),
  fromWire(chunks) {
    const { tokens } = JSON.parse(Buffer.concat(chunks).toString()) as { tokens?: unknown }
    return typeof tokens === 'number' ? { chunks, usage: { inputTokens: tokens } } : undefined
  },
  stream: () => new RankStream(),
}

let server: Server
let started: StartedGateway
let asked: { readonly model: string; readonly stream?: boolean }[]
let status: number

beforeEach(async () => {
  asked = []
  status = 200
  server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const body = JSON.parse(text) as { model: string; stream?: boolean }
      asked.push(body)
      response.statusCode = status
      if (status !== 200) return response.end('{"error":{"message":"The documents are too many.","type":"invalid"}}')
      if (body.stream !== true) {
        response.setHeader('content-type', 'application/json')
        return response.end('{"order":[1,0],"tokens":1000}')
      }
      response.setHeader('content-type', 'text/event-stream')
      response.write('data: {"first":1}\n\n')
      response.end('data: {"tokens":2000}\n\n')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const vendor: Vendor & RankOffer = { ...openai({ apiKey: 'vendor-key', baseURL }), rank }
  started = await startGateway({
    endpoints: [rankEndpoint],
    vendors: [vendor],
    models: [{ id: 'rank-1', kind: 'rank', vendor: 'openai', upstream: 'rank-1-large' }],
    limits: { requestsPerMinute: 3 },
    prices: {
      currency: 'USD',
      prices: [
        { model: 'rank-1', meter: 'input_token', amount: '1', per: 1_000_000, when: { batch: 'small' } },
        { model: 'rank-1', meter: 'input_token', amount: '2', per: 1_000_000, when: { batch: 'large' } },
        { model: 'rank-1', meter: 'output_token', amount: '0' },
      ],
    },
  })
})
afterEach(async () => {
  await started.close()
  await new Promise((resolve) => server.close(resolve))
})

const BODY = { model: 'rank-1', query: 'q', documents: ['a', 'b'] }

describe('an endpoint that a host defines', () => {
  test('is answered by the vendor that offers it, and charged by its usage and price fields', async () => {
    const response = await started.post(PATH, BODY)

    expect(response.status).toBe(200)
    expect(await response.text()).toBe('{"order":[1,0],"tokens":1000}')
    expect(response.headers.get('x-signalbox-cost')).toBe('0.001')
    expect(asked).toMatchObject([{ model: 'rank-1-large', query: 'q' }])
    await started.post(PATH, { ...BODY, documents: ['a', 'b', 'c'] })
    expect(await started.account()).toEqual({ balance: 100_000_000_000n - 3_000_000n, held: 0n })
  })

  test('streams, and settles at the end', async () => {
    const response = await started.post(PATH, { ...BODY, stream: true })

    expect(response.headers.get('content-type')).toContain('text/event-stream')
    expect(await response.text()).toBe('data: {"first":1}\n\ndata: {"tokens":2000}\n\n')
    expect(await started.ended(response)).toMatchObject({ endpoint: 'rank', usage: { inputTokens: 2000 } })
    expect(await started.account()).toEqual({ balance: 100_000_000_000n - 2_000_000n, held: 0n })
  })

  test("refuses what its own rules refuse, in its dialect, and gives the vendor's refusal back, for nothing", async () => {
    const refused = await started.post(PATH, { model: 'rank-1', documents: ['a'] })
    status = 400
    const rejected = await started.post(PATH, BODY)

    expect([refused.status, await refused.json()]).toEqual([
      400,
      {
        error: {
          message: 'query: expected text',
          type: 'invalid_request_error',
          param: 'query',
          code: 'invalid_request',
        },
      },
    ])
    expect([rejected.status, await rejected.json()]).toMatchObject([
      400,
      { error: { message: 'The documents are too many.' } },
    ])
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('asks for a key, keeps to its scope and to the limits', async () => {
    const scoped = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes: { endpoints: ['chat'] } })
    const authorization = (key: string) => ({ authorization: `Bearer ${key}` })

    expect((await started.post(PATH, BODY, authorization('sk-unknown'))).status).toBe(401)
    expect((await started.post(PATH, BODY, authorization(scoped.key))).status).toBe(403)
    const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await started.post(PATH, BODY)).status))
    expect(statuses.sort()).toEqual([200, 200, 200, 429])
  })

  test('replays its answer under an Idempotency-Key, and charges it once', async () => {
    const headers = { 'idempotency-key': 'once' }
    const first = await (await started.post(PATH, BODY, headers)).text()
    const again = await started.post(PATH, BODY, headers)

    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await again.text()).toBe(first)
    expect(asked).toHaveLength(1)
    expect(await started.account()).toEqual({ balance: 100_000_000_000n - 1_000_000n, held: 0n })
  })

  test('is estimated without a vendor, and takes no model of another kind', async () => {
    const principal = { accountId: TEST_ACCOUNT, keyId: 'in-process', tier: 'paid' } as const
    const estimate = await started.gateway.estimate(principal, { endpoint: 'rank', body: BODY })
    const response = await started.post('/v1/chat/completions', {
      model: 'rank-1',
      messages: [{ role: 'user', content: 'hi' }],
    })

    expect(estimate).toMatchObject({ endpoint: 'rank', model: 'rank-1', billing: 'on' })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'endpoint_model_mismatch' } })
    expect(asked).toEqual([])
  })

  test('answers another method with the one that it takes', async () => {
    const response = await fetch(`${started.url}${PATH}`, { headers: { authorization: `Bearer ${TEST_KEY}` } })

    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

test('a model of a kind that no endpoint serves is refused at start', async () => {
  const models = [{ id: 'odd', kind: 'odd', vendor: 'openai', upstream: 'odd' }]

  await expect(startGateway({ models })).rejects.toThrow(/model "odd": no endpoint serves the kind "odd"/)
})

test('an endpoint that names another protocol for unlisted models of a kind is refused at start', async () => {
  const second = { ...rankEndpoint, kind: 'image', servesUnlisted: () => 'rank' }

  await expect(startGateway({ endpoints: [second] })).rejects.toThrow(
    /endpoint "rank": servesUnlisted names another protocol for image models of "\w+" than an earlier endpoint/,
  )
})
