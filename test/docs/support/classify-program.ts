import { createServer } from 'node:http'
import {
  createGateway,
  defineEndpoint,
  GatewayError,
  openaiCompatible,
  openaiErrors,
  type Vendor,
  type VendorCall,
  type WireRequest,
} from '../../../src/index.ts'

interface ClassifyRequest {
  readonly model: string
  readonly input: readonly string[]
}

/** Server's response: a label for each text, and the number of tokens it has read. */
interface ClassifyAnswer {
  readonly data: readonly { readonly index: number; readonly label: string }[]
  readonly usage: { readonly total_tokens: number }
}

/** The part of a vendor that carries out this endpoint. */
interface ClassifyOffer {
  readonly classify?: {
    toWire(call: VendorCall<ClassifyRequest>): WireRequest
    fromWire(body: string): ClassifyAnswer | undefined
  }
}

const classifyEndpoint = defineEndpoint<ClassifyRequest, ClassifyOffer>({
  id: 'classify',
  path: '/v1/classify',
  kind: 'classifier',
  errors: openaiErrors,
  parse: parseRequest,
  isStream: () => false,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  createOperation({ classify }, call) {
    if (classify === undefined) return undefined
    return {
      requests: [classify.toWire(call)],
      whole([answer]) {
        const read = classify.fromWire(Buffer.concat(answer?.chunks ?? []).toString())
        if (read === undefined) return undefined
        const data = read.data.map(({ index, label }) => ({ index, label }))
        const body = JSON.stringify({ object: 'list', model: call.publicModel, data })
        return { chunks: [Buffer.from(body)], usage: { inputTokens: read.usage.total_tokens, outputTokens: 0 } }
      },
      stream() {
        throw new TypeError('classify answers as a whole')
      },
    }
  },
})

function parseRequest(body: unknown): ClassifyRequest {
  const { input } = body as Partial<ClassifyRequest>
  const isList = Array.isArray(input) && input.length > 0
  if (!isList || !input.every((text) => typeof text === 'string')) throw invalid('input', 'expected a list of texts')
  return body as ClassifyRequest
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}

/** A server of vLLM with the offer added. */
function vllmWithClassify(options: { apiKey: string; baseURL: string }): Vendor & ClassifyOffer {
  return {
    ...openaiCompatible({ id: 'vllm', models: [{ id: 'mood', kind: 'classifier' }], ...options }),
    classify: {
      toWire: ({ request: { input }, model, apiKey }) => ({
        path: '/classify',
        headers: ['content-type', 'application/json', 'authorization', `Bearer ${apiKey}`],
        body: JSON.stringify({ model: model.upstream, input }),
        dropped: [],
      }),
      fromWire: readAnswer,
    },
  }
}

/** Undefined when the body is not what the server promises; the caller then gets 502. */
function readAnswer(body: string): ClassifyAnswer | undefined {
  try {
    const { data, usage } = JSON.parse(body) as Partial<ClassifyAnswer>
    return data === undefined || usage === undefined ? undefined : { data, usage }
  } catch {
    return undefined
  }
}

// A stand-in for the vendor, so that the program runs offline.
const standIn = createServer((request, response) => {
  request.resume().on('end', () => {
    response.setHeader('content-type', 'application/json')
    const data = ['happy', 'angry'].map((label, index) => ({ index, label }))
    response.end(JSON.stringify({ data, usage: { total_tokens: 12 } }))
  })
})
await new Promise<void>((resolve) => standIn.listen(0, '127.0.0.1', resolve))
const { port } = standIn.address() as { port: number }

const gateway = createGateway({
  vendors: [vllmWithClassify({ apiKey: 'vendor-key', baseURL: `http://127.0.0.1:${port}` })],
  endpoints: [classifyEndpoint],
  prices: {
    currency: 'USD',
    prices: [{ model: 'mood', meter: 'input_token', amount: '0.05', per: 1_000_000 }],
  },
  keys: [{ key: 'sk-choose-your-own', account: 'acct_web' }],
})
await gateway.start()
await gateway.accounts.credit('acct_web', '1.00')

const response = await gateway.fetch(
  new Request('http://gateway.example/v1/classify', {
    method: 'POST',
    headers: { authorization: 'Bearer sk-choose-your-own', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'mood', input: ['What a day!', 'Not again.'] }),
  }),
)
console.log(response.status, await response.json(), response.headers.get('x-signalbox-cost'))

await gateway.close()
standIn.close()
