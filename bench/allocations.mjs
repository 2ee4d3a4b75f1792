// Measures the bytes that one small chat allocates in the gateway, without sockets. Unlike times, they do not depend on the
// load of the machine. The young generation holds a whole round, so nothing is collected while it is measured.
//
//   node --expose-gc --min-semi-space-size=64 --max-semi-space-size=64 bench/allocations.mjs [openai|compatible|preset]
//
// The vendor is OpenAI, or a compatible server without or with a preset. Prints bytes per request as JSON.
import { openaiCompatible } from '../dist/index.js'
import { presets } from '../dist/presets.js'
import { CHAT, openChatGateway } from './in-process-chat.mjs'
import { sendMany } from './in-process-rounds.mjs'

const PARALLEL = 32
const WARM_UP = 12_000
const ROUND = 1_000
const ROUNDS = 5

const { id, baseURL } = presets.groq
const apiKey = 'vendor-key'
const models = [{ id: 'bench-chat', kind: 'chat', upstream: 'gpt-4.1-mini', limits: { maxOutputTokens: 1000 } }]

/** Options of the gateway by the kind of its vendor. */
const OPTIONS = {
  openai: () => ({}),
  compatible: () => ({ vendors: [openaiCompatible({ id, baseURL, apiKey, models })], models: [] }),
  preset: () => ({ vendors: [openaiCompatible(presets.groq, { apiKey, models })], models: [] }),
}

const gateway = await openChatGateway(OPTIONS[process.argv[2] ?? 'openai']())

const send = (count) => sendMany(gateway, CHAT, { count, parallel: PARALLEL })

async function allocatedBytes() {
  globalThis.gc()
  const before = process.memoryUsage().heapUsed
  await send(ROUND)
  return (process.memoryUsage().heapUsed - before) / ROUND
}

await send(WARM_UP)
const rounds = []
for (let round = 0; round < ROUNDS; round++) rounds.push(await allocatedBytes())
// A round that contains a collection shows too few bytes.
console.log(JSON.stringify({ bytesPerRequest: Math.round(Math.max(...rounds)) }))
await gateway.close({ drainMs: 0 })
