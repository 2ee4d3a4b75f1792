// Measures the gateway's own cost of one small chat, without sockets: CPU time and allocated bytes per request.
// Sockets and the kernel cause most of the cost and the noise of a proxied request, so they are left out.
//
//   node --expose-gc bench/in-process.mjs [requests per round] [sqlite|memory] [unrecorded|prometheus]
//
// With `sqlite`, the money is in a SQLite file in the temporary folder, which is flushed before each acknowledgement, instead of in memory.
// With `unrecorded` no records of usage are written; with `prometheus` metrics are counted. `bench/telemetry.mjs` measures the cost of
// telemetry more exactly, because gateways with and without it take turns.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CHAT, openChatGateway } from './in-process-chat.mjs'
import { measureRounds, sendOnce } from './in-process-rounds.mjs'

const perRound = Number(process.argv[2] ?? 20_000)
const folder = process.argv[3] === 'sqlite' ? mkdtempSync(join(tmpdir(), 'signalbox-bench-')) : undefined
const store = folder && (await import('../dist/sqlite.js')).sqliteStore({ path: join(folder, 'bench.db') })

const variants = {
  unrecorded: () => ({ usage: 'off' }),
  prometheus: async () => ({ observe: [(await import('../dist/prometheus.js')).prometheus()] }),
}
const further = (await variants[process.argv[4]]?.()) ?? {}
const gateway = await openChatGateway({ ...(store === undefined ? {} : { store }), ...further })
await measureRounds(() => sendOnce(gateway, CHAT), { perRound, rounds: 15, parallel: 32 })
await gateway.close({ drainMs: 0 })
if (folder !== undefined) rmSync(folder, { recursive: true })
