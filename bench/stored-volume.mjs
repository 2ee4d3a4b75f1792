// Cost of the bounds of stored data at volume, on each store.
//
//   node bench/stored-volume.mjs [entries]
//
// Run it after a build. First an account without money sends creations of conversations to a gateway with the default bounds. Then the store is
// filled with conversations (1,000,000 by default) and the bound is set just above and just below their number. Prints for each store as JSON
// what the default bound keeps, the time of one count, and the time of a creation or refusal. PostgreSQL is included if it is installed.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { importBuilt } from './built.mjs'
import { postgresProgram, startPostgresServer } from './postgres-server.mjs'

const ENTRIES = Number(process.argv[2] ?? 1_000_000)
const SENT_AT_DEFAULT_BOUND = 20_000
const AT_ONCE = 200
const ACCOUNT = 'acct_volume'
const KEY = 'sk-volume-0123456789abcdef'
const DAY_MS = 24 * 60 * 60_000
const MEGABYTE = 1_000_000
const ITEM = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'x'.repeat(600) }] }
const BODY = JSON.stringify({ items: [ITEM] })

const { createGateway, memoryStore } = await importBuilt('index')
const { sqliteStore } = await importBuilt('sqlite')
const { fetchHandler } = await importBuilt('fetch')
const folder = mkdtempSync(join(tmpdir(), 'signalbox-volume-'))
const database = join(folder, 'volume.db')

await measure('memory', memoryStore({ maxConversations: 2 * ENTRIES, maxConversationBytes: Number.MAX_SAFE_INTEGER }))
await measure('sqlite', sqliteStore({ path: database }), () => statSync(database).size)
if (postgresProgram('postgres') !== undefined) {
  const server = await startPostgresServer()
  const { Pool } = (await import('pg')).default
  const { postgresStore } = await importBuilt('postgres')
  const pool = new Pool({ connectionString: server.url })
  await measure('postgres', postgresStore({ pool, statementTimeoutMs: 60_000 }))
  await pool.end()
  await server.stop()
}
rmSync(folder, { recursive: true })

async function measure(name, store, bytesOnDisk) {
  await store.start()
  const atDefault = creator(store, undefined)
  const [filledMs, statuses] = await timed(() => inTurns(SENT_AT_DEFAULT_BOUND, atDefault))
  const kept = await store.stored(ACCOUNT, 'conversations', Date.now())
  const result = {
    store: name,
    sent: SENT_AT_DEFAULT_BOUND,
    refused: statuses.filter((status) => status === 429).length,
    kept,
    keptOnDiskMegabytes: bytesOnDisk === undefined ? undefined : Math.round(bytesOnDisk() / MEGABYTE),
    requestMs: round(filledMs / SENT_AT_DEFAULT_BOUND),
  }
  const nowMs = Date.now()
  const item = { id: 'msg_1', text: JSON.stringify(ITEM) }
  await inTurns(ENTRIES - kept.count, (index) => {
    const facts = { id: `conv_${index}`, accountId: ACCOUNT, metadata: {}, createdAtMs: nowMs }
    return store.conversations.create({ ...facts, expiresAtMs: nowMs + DAY_MS }, [item])
  })
  const count = () => store.stored(ACCOUNT, 'conversations', Date.now())
  const bound = { byteLength: Number.MAX_SAFE_INTEGER, count: ENTRIES + 50 }
  Object.assign(result, { entries: (await count()).count, countMs: await bestMs(count) })
  result.creationNearBoundMs = await bestMs(creator(store, bound))
  const full = creator(store, { ...bound, count: ENTRIES })
  result.refusalMs = await bestMs(full)
  result.creationFarFromBoundMs = await bestMs(creator(store, { ...bound, count: 2 * ENTRIES }))
  console.log(JSON.stringify(result))
  await store.close()
}

/** Returns a function that sends a creation to a new gateway on the store, and returns the status of the answer. */
function creator(store, conversations) {
  const { start, close, ...rest } = store
  const gateway = createGateway({
    vendors: [],
    billing: 'off',
    keys: [{ key: KEY, account: ACCOUNT }],
    store: { ...rest, start: async () => {}, close: async () => {} },
    ...(conversations && { accountStorage: { conversations } }),
  })
  const handle = fetchHandler(gateway)
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  return async () => {
    const answer = await handle(new Request('http://gateway/v1/conversations', { method: 'POST', headers, body: BODY }))
    await answer.arrayBuffer()
    return answer.status
  }
}

/** Calls a function with each index, `AT_ONCE` at a time. */
async function inTurns(total, call) {
  const results = []
  for (let start = 0; start < total; start += AT_ONCE) {
    const indexes = Array.from({ length: Math.min(AT_ONCE, total - start) }, (_, index) => start + index)
    results.push(...(await Promise.all(indexes.map((index) => call(index)))))
  }
  return results
}

async function timed(call) {
  const began = performance.now()
  const result = await call()
  return [performance.now() - began, result]
}

async function bestMs(call) {
  const times = []
  for (let round = 0; round < 5; round++) times.push((await timed(call))[0])
  return round(Math.min(...times))
}

function round(milliseconds) {
  return Math.round(milliseconds * 100) / 100
}
