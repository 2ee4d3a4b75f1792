import { createServer } from 'node:http'
import {
  createGateway,
  defineEndpoint,
  GatewayError,
  openaiErrors,
  type Vendor,
  type VendorCall,
  voyage,
  type WireRequest,
} from '../../../src/index.ts'

interface RerankRequest {
  readonly model: string
  readonly query: string
  readonly documents: readonly string[]
}

/** What a vendor sends back: the documents by relevance, and the tokens that it bills. */
interface RerankAnswer {
  readonly data: readonly { readonly index: number; readonly relevance_score: number }[]
  readonly usage: { readonly total_tokens: number }
}

/** The part of a vendor that carries out this endpoint. */
interface RerankOffer {
  readonly rerank?: {
    toWire(call: VendorCall<RerankRequest>): WireRequest
    fromWire(body: string): RerankAnswer | undefined
  }
}

const rerankEndpoint = defineEndpoint<RerankRequest, RerankOffer>({
  id: 'rerank',
  path: '/v1/rerank',
  kind: 'rerank',
  errors: openaiErrors,
  canHedge: true,
  parse: parseRequest,
  isStream: () => false,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  createOperation({ rerank }, call) {
    if (rerank === undefined) return undefined
    return {
      requests: [rerank.toWire(call)],
      whole([answer]) {
        const read = rerank.fromWire(Buffer.concat(answer?.chunks ?? []).toString())
        if (read === undefined) return undefined
        const results = read.data.map(({ index, relevance_score }) => ({ index, relevance_score }))
        const body = JSON.stringify({ object: 'list', model: call.publicModel, results })
        return { chunks: [Buffer.from(body)], usage: { inputTokens: read.usage.total_tokens, outputTokens: 0 } }
      },
      stream() {
        throw new TypeError('rerank answers as a whole')
      },
    }
  },
})

function parseRequest(body: unknown): RerankRequest {
  const { query, documents } = body as Partial<RerankRequest>
  if (typeof query !== 'string') throw invalid('query', 'expected text')
  const isList = Array.isArray(documents) && documents.length > 0
  if (!isList || !documents.every((text) => typeof text === 'string'))
    throw invalid('documents', 'expected a list of texts')
  return body as RerankRequest
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}

/** Voyage with the offer added. */
function voyageWithRerank(options: { apiKey: string; baseURL: string }): Vendor & RerankOffer {
  return {
    ...voyage(options),
    models: [{ id: 'rerank-2.5', kind: 'rerank', vendor: 'voyage' }],
    rerank: {
      toWire: ({ request: { query, documents }, model, apiKey }) => ({
        path: '/v1/rerank',
        headers: ['content-type', 'application/json', 'authorization', `Bearer ${apiKey}`],
        body: JSON.stringify({ model: model.upstream, query, documents }),
        dropped: [],
      }),
      fromWire: readAnswer,
    },
  }
}

/** Undefined when the body is not what the vendor promises; the caller then gets 502. */
function readAnswer(body: string): RerankAnswer | undefined {
  try {
    const { data, usage } = JSON.parse(body) as Partial<RerankAnswer>
    return data === undefined || usage === undefined ? undefined : { data, usage }
  } catch {
    return undefined
  }
}

// A stand-in for the vendor, so that the program runs offline.
const standIn = createServer((request, response) => {
  request.resume().on('end', () => {
    response.setHeader('content-type', 'application/json')
    const data = [1, 0].map((index) => ({ index, relevance_score: index === 1 ? 0.9 : 0.2 }))
    response.end(JSON.stringify({ data, usage: { total_tokens: 12 } }))
  })
})
await new Promise<void>((resolve) => standIn.listen(0, '127.0.0.1', resolve))
const { port } = standIn.address() as { port: number }

const gateway = createGateway({
  vendors: [voyageWithRerank({ apiKey: 'vendor-key', baseURL: `http://127.0.0.1:${port}` })],
  endpoints: [rerankEndpoint],
  prices: {
    currency: 'USD',
    prices: [{ model: 'rerank-2.5', meter: 'input_token', amount: '0.05', per: 1_000_000 }],
  },
  keys: [{ key: 'sk-choose-your-own', account: 'acct_web' }],
})
await gateway.start()
await gateway.accounts.credit('acct_web', '1.00')

const response = await gateway.fetch(
  new Request('http://gateway.example/v1/rerank', {
    method: 'POST',
    headers: { authorization: 'Bearer sk-choose-your-own', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'rerank-2.5', query: 'capital of Peru', documents: ['Quito', 'Lima'] }),
  }),
)
console.log(response.status, await response.json(), response.headers.get('x-signalbox-cost'))

await gateway.close()
standIn.close()
