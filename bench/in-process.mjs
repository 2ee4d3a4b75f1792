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

const perRound = Number(process.argv[2] ?? 20_000)
const rounds = 15
const key = 'sk-bench-0123456789'
const folder = process.argv[3] === 'sqlite' ? mkdtempSync(join(tmpdir(), 'signalbox-bench-')) : undefined
const store = folder && (await import('../dist/sqlite.js')).sqliteStore({ path: join(folder, 'bench.db') })

const transport = {
  send(_request, handler) {
    queueMicrotask(() => {
      handler.onHead(200, { 'content-type': 'application/json' })
      handler.onData(CHAT_ANSWER)
      handler.onEnd()
    })
    return { abort() {}, pause() {}, resume() {} }
  },
  close: () => Promise.resolve(),
}

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
  keys: [{ key, account: 'bench' }],
  limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 },
  transport,
  ...(store === undefined ? {} : { store }),
})
await gateway.start()
await gateway.accounts.credit('bench', '1000000')

const headers = {
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
  'content-length': String(CHAT_REQUEST.length),
}

function once() {
  return new Promise((resolve, reject) => {
    const sink = {
      closed: false,
      status: 0,
      head(status) {
        this.status = status
      },
      write: () => true,
      end() {
        if (this.status === 200) resolve()
        else reject(new Error(`status ${this.status}`))
      },
      destroy: () => reject(new Error('destroyed')),
      onDrain() {},
      onClose() {},
    }
    const request = {
      method: 'POST',
      path: '/v1/chat/completions',
      query: '',
      header: (name) => headers[name],
      readBody: (_limit, listener) => listener(undefined, [CHAT_REQUEST]),
    }
    gateway.handle(request, sink)
  })
}

async function round(count) {
  globalThis.gc?.()
  const heapBefore = process.memoryUsage().heapUsed
  const before = process.cpuUsage()
  for (let done = 0; done < count; done += 32) await Promise.all(Array.from({ length: 32 }, once))
  const { user, system } = process.cpuUsage(before)
  return { microseconds: (user + system) / count, bytes: (process.memoryUsage().heapUsed - heapBefore) / count }
}

await round(perRound)
const results = []
for (let index = 0; index < rounds; index++) results.push(await round(perRound))
results.sort((left, right) => left.microseconds - right.microseconds)
const best = results[0]
const median = results[rounds >> 1]
console.log(
  `${best.microseconds.toFixed(2)} CPU µs/request at best, ${median.microseconds.toFixed(2)} median; ${Math.round(median.bytes)} bytes/request`,
)
await gateway.close({ drainMs: 0 })
if (folder !== undefined) rmSync(folder, { recursive: true })
