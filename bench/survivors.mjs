// Measures the unreachable bytes of a small chat that survive collections of the young generation: only a collection of the
// whole heap frees them. It uses no sockets, so that it does not depend on the load of the machine.
//
//   node --expose-gc --min-semi-space-size=4 --max-semi-space-size=4 bench/survivors.mjs [memory|sqlite]
//
// The small young generation is collected several times in each round. Prints as JSON `leftOver`, those bytes per request, and
// `kept`, the data of a request that the gateway keeps on purpose: its record and the lines of the journal.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '../dist/sqlite.js'
import { CHAT, openChatGateway } from './in-process-chat.mjs'
import { sendMany } from './in-process-rounds.mjs'

const PARALLEL = 32
const WARM_UP = 4_000
const ROUND = 1_000
const ROUNDS = 5

const isSqlite = process.argv[2] === 'sqlite'
const folder = isSqlite ? await mkdtemp(join(tmpdir(), 'signalbox-survivors-')) : undefined
const gateway = await openChatGateway(isSqlite ? { store: sqliteStore({ path: join(folder, 'money.db') }) } : {})

/** As with sockets, only a part of the requests in flight becomes ready in one turn of the event loop. */
const between = () => new Promise(setImmediate)

const send = (count) => sendMany(gateway, CHAT, { count, parallel: PARALLEL, between })

/** Bytes in use after a collection, by default of the whole heap. */
function collected(options) {
  for (let time = 0; time < 2; time++) options === undefined ? globalThis.gc() : globalThis.gc(options)
  return process.memoryUsage().heapUsed
}

async function round() {
  const before = collected()
  await send(ROUND)
  const young = collected({ type: 'minor' })
  const whole = collected()
  return { leftOver: (young - whole) / ROUND, kept: (whole - before) / ROUND }
}

function median(values) {
  return Math.round(values.sort((one, other) => one - other)[values.length >> 1])
}

await send(WARM_UP)
const rounds = []
for (let count = 0; count < ROUNDS; count++) rounds.push(await round())
const leftOver = median(rounds.map((each) => each.leftOver))
console.log(JSON.stringify({ leftOver, kept: median(rounds.map((each) => each.kept)) }))
await gateway.close({ drainMs: 0 })
if (folder !== undefined) await rm(folder, { recursive: true })
