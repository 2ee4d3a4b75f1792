// Measures the gateway's own cost of one submission of a video, without sockets: CPU time of a request, and the memory of its
// open task. Every round begins with a new gateway, because open tasks stay in memory.
//
//   node --expose-gc bench/in-process-videos.mjs [requests per round] [rounds] [sqlite]
//
// With `sqlite`, tasks and money are in SQLite files in the temporary folder, which are flushed before each acknowledgement, instead of in
// memory.
import { Buffer } from 'node:buffer'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGateway, dashscope } from '../dist/index.js'
import { answeringTransport, CALLER_KEY, sendOnce } from './in-process-rounds.mjs'
import { VIDEO_MODEL } from './proxies/gateway.mjs'

const perRound = Number(process.argv[2] ?? 8_000)
const rounds = Number(process.argv[3] ?? 15)
const folder = process.argv[4] === 'sqlite' ? mkdtempSync(join(tmpdir(), 'signalbox-bench-')) : undefined
const sqliteStore = folder && (await import('../dist/sqlite.js')).sqliteStore

/** Number of requests in flight. */
const PARALLEL = 32

const REQUEST = Buffer.from(
  JSON.stringify({
    model: 'bench-video',
    duration: 5,
    resolution: '720p',
    input: {
      prompt: 'Why is the sky blue during the day and red in the evening? '.repeat(10),
      negative_prompt: 'people on the track, rain',
    },
    parameters: { seed: 4_711 },
  }),
)

/** Receipts of the vendor, each with a new id. */
const receipts = {
  count: 0,
  *[Symbol.iterator]() {
    this.count += 1
    yield Buffer.from(
      `{"output":{"task_status":"PENDING","task_id":"0385dc79-5ff8-4d82-bcb6-${this.count.toString(16).padStart(12, '0')}"},` +
        '"request_id":"4909100c-7b5a-9f92-bfe5-8d7d2c1f0a3e"}',
    )
  },
}

async function openGateway(number) {
  const gateway = createGateway({
    vendors: [dashscope({ apiKey: 'vendor-key' })],
    models: [VIDEO_MODEL],
    prices: {
      currency: 'USD',
      prices: [
        { model: 'bench-video', meter: 'video_second', amount: '0.10', when: { resolution: '720p' } },
        { model: 'bench-video', meter: 'video_second', amount: '0.15', when: { resolution: '1080p' } },
      ],
    },
    keys: [{ key: CALLER_KEY, account: 'bench' }],
    limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 },
    transport: answeringTransport(receipts),
    // Longer than a round, so that no video is polled while its submission is measured.
    taskPollIntervalMs: 3_600_000,
    ...(sqliteStore === undefined ? {} : { store: sqliteStore({ path: join(folder, `bench-${number}.db`) }) }),
  })
  await gateway.start()
  await gateway.accounts.credit('bench', '1000000')
  return gateway
}

async function measureRound(number) {
  const gateway = await openGateway(number)
  const request = { path: '/v1/videos/generations', contentType: 'application/json', chunks: [REQUEST], status: 202 }
  const once = () => sendOnce(gateway, request)
  for (let done = 0; done < 200; done += PARALLEL) await Promise.all(Array.from({ length: PARALLEL }, once))
  globalThis.gc?.()
  const heapBefore = process.memoryUsage().heapUsed
  const before = process.cpuUsage()
  for (let done = 0; done < perRound; done += PARALLEL) await Promise.all(Array.from({ length: PARALLEL }, once))
  const { user, system } = process.cpuUsage(before)
  globalThis.gc?.()
  const kept = process.memoryUsage().heapUsed - heapBefore
  await gateway.close({ drainMs: 0 })
  return { microseconds: (user + system) / perRound, kept: kept / perRound }
}

await measureRound('warm-up')
const results = []
for (let number = 0; number < rounds; number++) results.push(await measureRound(number))
results.sort((left, right) => left.microseconds - right.microseconds)
const best = results[0]
const median = results[rounds >> 1]
console.log(
  `${best.microseconds.toFixed(2)} CPU µs/submission at best, ${median.microseconds.toFixed(2)} median; ${Math.round(median.kept)} bytes kept for each open task`,
)
if (folder !== undefined) rmSync(folder, { recursive: true })
