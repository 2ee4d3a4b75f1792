// Reservations and settlements of the PostgreSQL store, without HTTP.
//
//   node bench/postgres-store.mjs [--in-flight 32,100] [--accounts 1,1000] [--records no,yes] [--processes 1,4] [--seconds 3]
//
// Run it after a build. Starts a server with its default settings, and prints a row for each combination: pairs of a reservation and a
// settlement per second, CPU of PostgreSQL and of Node per pair, and operations per commit, that is the mean size of a group. "In flight" is
// the number of pairs in all processes together. At the end of each row every account must have paid for exactly its settled pairs.
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startChild } from './child-process.mjs'
import { startPostgresServer } from './postgres-server.mjs'
import { rounded } from './rounded.mjs'
import { quantile } from './statistics.mjs'

const SCHEMA = 'bench'
const CHARGE = 900n
const WARM_UP_SECONDS = 2

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '32,100' },
    accounts: { type: 'string', default: '1,1000' },
    records: { type: 'string', default: 'no,yes' },
    processes: { type: 'string', default: '1,4' },
    seconds: { type: 'string', default: '3' },
  },
})
const numbers = (text) => text.split(',').map(Number)
const combinations = numbers(values.processes).flatMap((processes) =>
  numbers(values.accounts).flatMap((accountCount) =>
    numbers(values['in-flight']).flatMap((inFlight) =>
      values.records
        .split(',')
        .map((records) => ({ processes, accountCount, inFlight, isRecording: records === 'yes' })),
    ),
  ),
)
const accounts = Array.from({ length: Math.max(...numbers(values.accounts)) }, (_, index) => `acct_${index}`)

const COLUMNS = [
  'processes',
  'accounts',
  'in flight',
  'records',
  'pairs/s',
  'PostgreSQL µs',
  'Node µs',
  'operations/commit',
]
const LATENCIES = ['reserve p50 ms', 'pair p50 ms', 'pair p99 ms']

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const server = await startPostgresServer()
const client = new pg.Client({ connectionString: server.url })
try {
  await client.connect()
  const [founder] = await startProcesses(1)
  await founder.ask('createAccounts', { accounts })
  await closeAll([founder])
  console.log(`| ${[...COLUMNS, ...LATENCIES].join(' | ')} |`)
  console.log(`|${'---|'.repeat(COLUMNS.length + LATENCIES.length)}`)
  for (const combination of combinations) console.log(`| ${(await rowOf(combination)).join(' | ')} |`)
} finally {
  await client.end()
  await server.stop()
}

async function rowOf({ processes, accountCount, inFlight, isRecording }) {
  const children = await startProcesses(processes)
  const used = accounts.slice(0, accountCount)
  const moneyBefore = await readMoney()
  const commitsBefore = await commitCount()
  const runAll = (seconds) =>
    Promise.all(
      shares(inFlight, processes).map((share, index) =>
        children[index].ask('run', {
          accounts: used,
          inFlight: share,
          isRecording,
          charge: CHARGE,
          durationMs: seconds * 1_000,
        }),
      ),
    )
  const warmUp = await runAll(WARM_UP_SECONDS)
  const serverBefore = await server.cpuMicroseconds()
  const results = await runAll(Number(values.seconds))
  const serverMicroseconds = (await server.cpuMicroseconds()) - serverBefore
  await closeAll(children)
  const commits = (await commitCount()) - commitsBefore
  checkCharges(used, [...warmUp, ...results], { before: moneyBefore, after: await readMoney() })
  const pairs = pairsOf(results)
  const elapsedMs = Math.max(...results.map((result) => result.elapsedMs))
  const nodeMicroseconds = results.reduce((sum, result) => sum + result.cpuMicroseconds, 0)
  const reserveTimes = results.flatMap((result) => result.reserveTimes)
  const pairTimes = results.flatMap((result) => result.pairTimes)
  const cells = [
    (pairs * 1_000) / elapsedMs,
    serverMicroseconds / pairs,
    nodeMicroseconds / pairs,
    (2 * (pairs + pairsOf(warmUp))) / commits,
    quantile(reserveTimes, 0.5),
    quantile(pairTimes, 0.5),
    quantile(pairTimes, 0.99),
  ]
  return [processes, accountCount, inFlight, isRecording ? 'yes' : 'no', ...cells.map(rounded)]
}

function pairsOf(results) {
  return results.reduce((sum, { pairTimes }) => sum + pairTimes.length, 0)
}

function startProcesses(count) {
  const file = new URL('./postgres-store-process.mjs', import.meta.url)
  const settings = JSON.stringify({ url: server.url, schema: SCHEMA })
  return Promise.all(Array.from({ length: count }, () => startChild(file, { arguments: [settings] })))
}

/** Ends the processes. Resolves when the server has closed their connections, because it counts their last commits then. */
async function closeAll(children) {
  for (const child of children) {
    await child.ask('close')
    await child.stop()
  }
  for (;;) {
    const { rows } = await client.query(
      `SELECT count(*)::integer AS open FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
    )
    if (rows[0].open === 0) return
  }
}

async function commitCount() {
  const { rows } = await client.query('SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()')
  return Number(rows[0].xact_commit)
}

/** Divides a number into `count` whole parts that differ by one at most. */
function shares(total, count) {
  return Array.from({ length: count }, (_, index) => Math.floor((total + index) / count))
}

/** Balance and held money of each account, by its id. */
async function readMoney() {
  const { rows } = await client.query(`SELECT id, balance, held FROM ${SCHEMA}.accounts`)
  return new Map(rows.map(({ id, balance, held }) => [id, { balance: BigInt(balance), held: BigInt(held) }]))
}

function checkCharges(ids, results, { before, after }) {
  for (const id of ids) {
    const settled = results.reduce((sum, result) => sum + (result.charged.get(id) ?? 0n), 0n)
    const { balance, held } = after.get(id)
    const paid = before.get(id).balance - balance
    if (held !== 0n || paid !== settled)
      throw new Error(`${id} paid ${paid} for ${settled} nano-dollars, and ${held} are still held`)
  }
}
