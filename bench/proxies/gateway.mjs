import { createServer } from 'node:http'
import { API_KEY } from '../requests.mjs'

export const name = 'gateway'
export const title = 'signalbox'
export const isTranslating = true

const ACCOUNT = 'acct_bench'
const CREDIT = '1000000000'

/** Dollars per million tokens; whole nano-dollars per token, so that a charge needs no rounding. */
export const PRICES = { input: '0.50', output: '1.50' }

const MODELS = [
  { id: 'bench-chat', vendor: 'openai', upstream: 'gpt-bench' },
  { id: 'bench-chat-paced', vendor: 'openai', upstream: 'gpt-bench-paced' },
  { id: 'bench-chat-brief', vendor: 'openai', upstream: 'gpt-bench-brief' },
  { id: 'bench-chat-burst', vendor: 'openai', upstream: 'gpt-bench-burst' },
  { id: 'bench-chat-slow', vendor: 'openai', upstream: 'gpt-bench-slow' },
  { id: 'bench-claude', vendor: 'anthropic', upstream: 'claude-bench' },
  { id: 'bench-claude-burst', vendor: 'anthropic', upstream: 'claude-bench-burst' },
].map((model) => ({ ...model, kind: 'chat', limits: { contextTokens: 200_000, maxOutputTokens: 8_192 } }))

const EMBEDDING_MODEL = {
  id: 'bench-embedding',
  kind: 'embedding',
  vendor: 'openai',
  upstream: 'embedding-bench',
  limits: { contextTokens: 800_000, dimensions: 1_024 },
}

/** The gateway with everything on: keys in the store, validation, all limits, prices and a ledger, usage read. */
export async function serve({ upstreamPort, store }) {
  const { anthropic, createGateway, openai } = await import('../../dist/index.js')
  const { nodeHandler } = await import('../../dist/node.js')
  const baseURL = `http://127.0.0.1:${upstreamPort}`
  const models = [...MODELS, EMBEDDING_MODEL]
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'sk-vendor-bench', baseURL }), anthropic({ apiKey: 'sk-ant-bench', baseURL })],
    models,
    prices: {
      currency: 'USD',
      prices: models.flatMap(({ id, kind }) => [
        { model: id, meter: 'input_token', amount: PRICES.input, per: 1_000_000 },
        ...(kind === 'chat' ? [{ model: id, meter: 'output_token', amount: PRICES.output, per: 1_000_000 }] : []),
      ]),
    },
    keys: [{ key: API_KEY, account: ACCOUNT }],
    limits: { requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000_000, concurrency: 100_000 },
    ...(store === undefined ? {} : { store }),
  })
  await gateway.start()
  await gateway.accounts.credit(ACCOUNT, CREDIT)
  return {
    server: createServer(nodeHandler(gateway)),
    /** Money that is left, in nano-dollars. */
    account: async () => {
      const { balance, held } = await gateway.accounts.get(ACCOUNT)
      return { balance, held }
    },
  }
}
