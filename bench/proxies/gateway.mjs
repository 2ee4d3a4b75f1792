import { createServer } from 'node:http'
import { importBuilt } from '../built.mjs'
import { apiKeys } from '../requests.mjs'

export const name = 'gateway'
export const title = 'signalbox'
export const isTranslating = true
export const isOwn = true

/** The account of the first key; other keys have separate accounts. */
const ACCOUNT = 'acct_bench'
const CREDIT = '1000000000'

/** Dollars per million tokens; whole nano-dollars per token, so that a charge needs no rounding. */
export const PRICES = { input: '0.50', output: '1.50', inputPicture: '0.80', outputPicture: '3.20' }

/** Dollars for a second of video. */
export const VIDEO_SECOND_PRICE = '0.0001'

const MODELS = [
  { id: 'bench-chat', vendor: 'openai', upstream: 'gpt-bench' },
  { id: 'bench-chat-paced', vendor: 'openai', upstream: 'gpt-bench-paced' },
  { id: 'bench-chat-brief', vendor: 'openai', upstream: 'gpt-bench-brief' },
  { id: 'bench-chat-burst', vendor: 'openai', upstream: 'gpt-bench-burst' },
  { id: 'bench-chat-slow', vendor: 'openai', upstream: 'gpt-bench-slow' },
  { id: 'bench-pro-burst', vendor: 'openai', upstream: 'gpt-pro-burst', protocol: 'responses' },
  { id: 'bench-claude', vendor: 'anthropic', upstream: 'claude-bench' },
  { id: 'bench-claude-burst', vendor: 'anthropic', upstream: 'claude-bench-burst' },
  { id: 'bench-claude-paced', vendor: 'anthropic', upstream: 'claude-bench-paced' },
].map((model) => ({ ...model, kind: 'chat', limits: { contextTokens: 200_000, maxOutputTokens: 8_192 } }))

const EMBEDDING_MODEL = {
  id: 'bench-embedding',
  kind: 'embedding',
  vendor: 'openai',
  upstream: 'embedding-bench',
  limits: { contextTokens: 800_000, dimensions: 1_024 },
}

const EDIT_MODELS = [
  { id: 'bench-edit', upstream: 'image-bench' },
  { id: 'bench-edit-held', upstream: 'image-bench-held' },
].map((model) => ({
  ...model,
  kind: 'image_edit',
  vendor: 'openai',
  protocol: 'generations',
  image: {
    sizes: ['auto', '1024x1024', '1024x1536', '1536x1024'],
    defaultSize: 'auto',
    referenceImages: { min: 1, max: 16 },
    maxImages: 10,
    takesMask: true,
    qualities: ['auto', 'low', 'medium', 'high'],
    outputTokens: { 'high 1024x1024': 4_160, default: 6_240 },
    inputTokensPerImage: 7_000,
  },
}))

/** Row like those of the catalog for models of this protocol. */
export const VIDEO_MODEL = {
  id: 'bench-video',
  kind: 'video',
  vendor: 'dashscope',
  upstream: 'video-bench',
  protocol: 'wan-2-6',
  video: {
    task: 't2v',
    resolutions: ['720p', '1080p'],
    durations: { min: 2, max: 15 },
    maxBilledSeconds: 15,
    geometry: 'size',
  },
}

/** Longer than a run, so that no video is polled while its submission is measured. */
const TASK_POLL_INTERVAL_MS = 3_600_000

/** The gateway with everything on: keys in the store, validation, all limits, prices and a ledger, usage read. */
export async function serve({ upstreamPort, store, accounts }) {
  const { nodeHandler } = await importBuilt('node')
  const { gateway, account } = await startGateway({ upstreamPort, store, accounts })
  return { server: createServer(nodeHandler(gateway)), account }
}

/**
 * The gateway without a server, for every kind of mount; `account` reads the total balance of all accounts, in
 * nano-dollars. `accounts` is their number, each with one key of `apiKeys`.
 */
export async function startGateway({ upstreamPort, store, accounts = 1 }) {
  const { anthropic, createGateway, dashscope, openai } = await importBuilt('index')
  const baseURL = `http://127.0.0.1:${upstreamPort}`
  const keys = apiKeys(accounts).map((key, index) => ({ key, account: index === 0 ? ACCOUNT : `${ACCOUNT}_${index}` }))
  const models = [...MODELS, EMBEDDING_MODEL, ...EDIT_MODELS, VIDEO_MODEL]
  const gateway = createGateway({
    vendors: [
      openai({ apiKey: 'sk-vendor-bench', baseURL }),
      anthropic({ apiKey: 'sk-ant-bench', baseURL }),
      dashscope({ apiKey: 'sk-dashscope-bench', baseURL }),
    ],
    models,
    prices: {
      currency: 'USD',
      prices: models.flatMap(pricesOf),
    },
    keys,
    limits: { requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000_000, concurrency: 100_000 },
    taskPollIntervalMs: TASK_POLL_INTERVAL_MS,
    ...(store === undefined ? {} : { store }),
  })
  await gateway.start()
  for (const { account } of keys) await gateway.accounts.credit(account, CREDIT)
  return {
    gateway,
    account: async () => {
      const each = await Promise.all(keys.map(({ account }) => gateway.accounts.get(account)))
      const sum = (field) => each.reduce((total, account) => total + account[field], 0n)
      return { balance: sum('balance'), held: sum('held') }
    },
  }
}

function pricesOf({ id, kind }) {
  if (kind === 'video') return [{ model: id, meter: 'video_second', amount: VIDEO_SECOND_PRICE, per: 1 }]
  const tokens = (meter, amount) => ({ model: id, meter, amount, per: 1_000_000 })
  const input = tokens('input_token', PRICES.input)
  if (kind === 'embedding') return [input]
  const text = [input, tokens('output_token', PRICES.output)]
  if (kind === 'chat') return text
  return [...text, tokens('input_image_token', PRICES.inputPicture), tokens('output_image_token', PRICES.outputPicture)]
}
