// What the gateway itself costs for one small chat, without sockets: CPU time and allocated bytes per request.
// Sockets and the kernel are most of a proxied request and most of its noise; this leaves them out.
//
//   node --expose-gc bench/in-process.mjs [requests per round] [sqlite]
//
// With `sqlite` the money is kept in a SQLite file in the temporary folder, synchronous=FULL, instead of in memory.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGateway, openai } from '../dist/index.js'
import { CHAT_ANSWER, CHAT_REQUEST } from './in-process-messages.mjs'
import { answeringTransport, CALLER_KEY, measureRounds, sendOnce } from './in-process-rounds.mjs'

const perRound = Number(process.argv[2] ?? 20_000)
const folder = process.argv[3] === 'sqlite' ? mkdtempSync(join(tmpdir(), 'signalbox-bench-')) : undefined
const store = folder && (await import('../dist/sqlite.js')).sqliteStore({ path: join(folder, 'bench.db') })

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
  ...(store === undefined ? {} : { store }),
})
await gateway.start()
await gateway.accounts.credit('bench', '1000000')

const request = { path: '/v1/chat/completions', contentType: 'application/json', chunks: [CHAT_REQUEST] }
await measureRounds(() => sendOnce(gateway, request), { perRound, rounds: 15, parallel: 32 })
await gateway.close({ drainMs: 0 })
if (folder !== undefined) rmSync(folder, { recursive: true })
