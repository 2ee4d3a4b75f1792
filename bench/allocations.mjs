// What one small chat allocates in the gateway, without sockets: a number that, unlike times, does not depend on how busy
// the machine is. The young generation holds a whole round, so nothing is collected while it is measured.
//
//   node --expose-gc --min-semi-space-size=64 --max-semi-space-size=64 bench/allocations.mjs
//
// Prints bytes per request as JSON.
import { createGateway, openai } from '../dist/index.js'
import { CHAT_ANSWER, CHAT_REQUEST } from './in-process-messages.mjs'
import { answeringTransport, CALLER_KEY, sendOnce } from './in-process-rounds.mjs'

const PARALLEL = 32
const WARM_UP = 12_000
const ROUND = 1_000
const ROUNDS = 5

const gateway = createGateway({
  vendors: [openai({ apiKey: 'vendor-key' })],
  models: [
    { id: 'bench-chat', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini', limits: { maxOutputTokens: 1000 } },
  ],
  prices: {
    currency: 'USD',
    prices: [
      { model: 'bench-chat', meter: 'input_token', amount: '1.00', per: 1_000_000 },
      { model: 'bench-chat', meter: 'output_token', amount: '4.00', per: 1_000_000 },
    ],
  },
  keys: [{ key: CALLER_KEY, account: 'bench' }],
  limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 },
  transport: answeringTransport([CHAT_ANSWER]),
})
await gateway.start()
await gateway.accounts.credit('bench', '1000000')

const request = { path: '/v1/chat/completions', contentType: 'application/json', chunks: [CHAT_REQUEST] }

async function send(count) {
  let left = count
  const lane = async () => {
    while (left > 0) {
      left -= 1
      await sendOnce(gateway, request)
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, lane))
}

async function allocatedBytes() {
  globalThis.gc()
  const before = process.memoryUsage().heapUsed
  await send(ROUND)
  return (process.memoryUsage().heapUsed - before) / ROUND
}

await send(WARM_UP)
const rounds = []
for (let round = 0; round < ROUNDS; round++) rounds.push(await allocatedBytes())
// A round with a collection in it shows less.
console.log(JSON.stringify({ bytesPerRequest: Math.round(Math.max(...rounds)) }))
await gateway.close({ drainMs: 0 })
