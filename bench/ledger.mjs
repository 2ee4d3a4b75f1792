/**
 * Measures the SQLite ledger. Usage: node bench/ledger.mjs [folder for the database; default: the system's folder for
 * temporary files]. The result depends on the disk of the folder: every group of writes is flushed to it before it is acknowledged.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '../dist/sqlite.js'
import { quantile } from './statistics.mjs'

const PARALLEL = 64
const PAIRS = 40_000
const GROUPED_RESERVES = 100_000
const GROUPED_PARALLEL = 512

const folder = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'signalbox-bench-'))
const store = sqliteStore({ path: join(folder, 'ledger.db') })
const hold = (holdId) => ({
  holdId,
  accountId: 'account_1',
  keyId: 'key_1',
  amount: 1_000n,
  expiresAtMs: Date.now() + 900_000,
})

try {
  await store.start()
  await store.ledger.createAccount({ id: 'account_1' }, Date.now())
  const credit = { creditId: 'credit_1', accountId: 'account_1', amount: 10n ** 15n, description: 'bench' }
  await store.ledger.credit(credit, Date.now())

  await inParallel(PARALLEL, 5_000, (number) => reserveAndSettle(`warm_${number}`))
  await measurePairs('reserve + settle', (number) => `pair_${number}`)
  // Random ids, like those of the gateway: every hold is on another page of the table.
  await measurePairs('the same, random ids', () => `req_${randomUUID().replaceAll('-', '')}`)
  const reserves = await inParallel(GROUPED_PARALLEL, GROUPED_RESERVES, (number) =>
    store.ledger.reserve(hold(`grouped_${number}`), Date.now()),
  )
  console.log(`durable reserves, ${GROUPED_PARALLEL} waiting: ${perSecond(GROUPED_RESERVES, reserves)}/s`)
  const alone = await inParallel(1, 500, (number) => store.ledger.reserve(hold(`alone_${number}`), Date.now()))
  console.log(`one at a time: ${(alone.durationMs / 500).toFixed(2)} ms each`)
} finally {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
}

async function measurePairs(name, idOf) {
  const pairTimes = []
  const reserveTimes = []
  const pairs = await inParallel(PARALLEL, PAIRS, async (number) => {
    const { reserveMs, pairMs } = await reserveAndSettle(idOf(number))
    reserveTimes.push(reserveMs)
    pairTimes.push(pairMs)
  })
  console.log(
    `${name}, ${PARALLEL} parallel: p50 ${quantile(pairTimes, 0.5).toFixed(2)} ms, ` +
      `p99 ${quantile(pairTimes, 0.99).toFixed(2)} ms (reserve alone p50 ${quantile(reserveTimes, 0.5).toFixed(2)} ms), ` +
      `${perSecond(PAIRS, pairs)} pairs/s, CPU ${(pairs.cpuMs / PAIRS).toFixed(3)} ms a pair`,
  )
}

/** Returns the milliseconds of a reservation, without and with its settlement. */
async function reserveAndSettle(holdId) {
  const startedAtMs = performance.now()
  await store.ledger.reserve(hold(holdId), Date.now())
  const reserveMs = performance.now() - startedAtMs
  await store.ledger.settle({ holdId, amount: 900n, description: 'chat' }, Date.now())
  return { reserveMs, pairMs: performance.now() - startedAtMs }
}

async function inParallel(width, count, run) {
  let next = 0
  const cpuBefore = process.cpuUsage()
  const startedAtMs = performance.now()
  const lane = async () => {
    while (next < count) {
      next += 1
      await run(next)
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  const { user, system } = process.cpuUsage(cpuBefore)
  return { durationMs: performance.now() - startedAtMs, cpuMs: (user + system) / 1_000 }
}

function perSecond(count, { durationMs }) {
  return Math.round(count / (durationMs / 1_000)).toLocaleString('en')
}
