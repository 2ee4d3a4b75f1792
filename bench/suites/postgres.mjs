import { diskFlush } from '../measurements/disk-flush.mjs'
import { loadAtRate } from '../measurements/load.mjs'
import { pgbench } from '../measurements/pgbench.mjs'
import { postgresProgram, postgresVersion } from '../postgres-server.mjs'
import { canReadProcesses } from '../process-tree.mjs'
import { fourPostgres, oneMemory, onePostgres, proxiesWith, STORES } from '../proxies/stores.mjs'
import { scenario as chatJson } from '../scenarios/chat-json.mjs'
import { verdict, verdictAtLeast } from '../verdict.mjs'

const VERSION = ((version) => (version === undefined ? '' : ` ${version}`))(postgresVersion())
const PROGRAMS = ['initdb', 'postgres', 'pgbench']
/** Connections of a load at a fixed rate, which opens more if all are in use. */
const OPEN_LOAD_CONNECTIONS = 8

/** Judges one figure of a result, by the name of its target. */
const VERDICTS = {
  answersPerSecond: ({ medians }, target) => verdictAtLeast(medians.answersPerSecond, { target, sign: 'requests/s' }),
  serverMicroseconds: ({ medians }, target) =>
    `database ${verdict(medians.serverMicroseconds, { target, sign: 'µs' })}`,
  cpuMicroseconds: ({ medians }, target) => `CPU ${verdict(medians.cpuMicroseconds, { target, sign: 'µs' })}`,
  addedP50Ms: ({ comparisons }, target) =>
    verdict(comparisons[oneMemory.name].median, { target, sign: 'ms more than memory' }),
  p99Ms: ({ medians }, target) => `p99 ${verdict(medians.p99Ms, { target, sign: 'ms' })}`,
}

/** All connections send one request after another. One account, or many accounts that rarely conflict. */
const [oneAccount, manyAccounts] = [
  {
    accounts: 1,
    name: 'chat-json-hot-account',
    title: 'chat, JSON, 32 connections, one account',
    targets: {
      [onePostgres.name]: { answersPerSecond: 4_000, serverMicroseconds: 120, cpuMicroseconds: 110 },
      [fourPostgres.name]: { answersPerSecond: 3_000 },
    },
  },
  {
    accounts: 1_000,
    name: 'chat-json-1000-accounts',
    title: 'chat, JSON, 32 connections, 1,000 accounts',
    targets: {
      [onePostgres.name]: { answersPerSecond: 3_500, serverMicroseconds: 150, cpuMicroseconds: 130 },
      [fourPostgres.name]: { answersPerSecond: 3_000 },
    },
  },
].map((description) => ({
  ...chatJson,
  target: undefined,
  goal: undefined,
  unit: 'requests/s',
  headline: 'answersPerSecond',
  stores: STORES,
  ...description,
}))

/** Requests arrive at rates that the gateway can serve. */
const atRates = [
  {
    warmUp: oneAccount,
    name: 'chat-json-10-per-second',
    title: 'chat, JSON, 10 requests per second, one account',
    load: { connections: OPEN_LOAD_CONNECTIONS, perSecond: 10, minSeconds: 10 },
    unit: 'ms, p50',
    headline: 'p50Ms',
    stores: [oneMemory, onePostgres],
    targets: { [onePostgres.name]: { addedP50Ms: 3 } },
  },
  {
    warmUp: oneAccount,
    name: 'chat-json-half-rate-hot-account',
    title: 'chat, JSON, half of the maximum rate, one account',
  },
  {
    warmUp: manyAccounts,
    name: 'chat-json-half-rate-1000-accounts',
    title: 'chat, JSON, half of the maximum rate, 1,000 accounts',
  },
].map((description) => ({
  ...description.warmUp,
  measurement: loadAtRate,
  comparison: 'difference',
  unit: 'ms, p99',
  headline: 'p99Ms',
  load: { connections: OPEN_LOAD_CONNECTIONS, shareOfMaximum: 0.5 },
  stores: [onePostgres, fourPostgres],
  targets: { [onePostgres.name]: { p99Ms: 15 }, [fourPostgres.name]: { p99Ms: 15 } },
  ...description,
}))

/** Speed of the server and of the disk without a gateway. */
const yardsticks = [
  {
    name: 'pgbench',
    title: 'simple update of `pgbench`, 32 clients',
    proxy: { name: 'pgbench', title: 'PostgreSQL alone' },
    measurement: pgbench,
    load: { connections: 32 },
    unit: 'transactions/s',
    headline: 'answersPerSecond',
    comparison: 'ratio',
  },
  {
    name: 'disk-flush',
    title: 'durable write of a page',
    proxy: { name: 'disk', title: 'disk alone' },
    measurement: diskFlush,
    unit: 'ms, p50',
    headline: 'p50Ms',
    comparison: 'difference',
  },
]

export const suite = {
  name: 'postgres',
  heading: 'Money in PostgreSQL',
  intro: `The gateway with everything on and its money in PostgreSQL${VERSION}, in one process and in four, compared with memory and SQLite. Each
server runs on this machine with its default settings, so commits are flushed to the disk, as SQLite's are. Each process has
a pool of ten connections. One account sends all requests, or 1,000 accounts take turns.
At a fixed rate, requests are sent on schedule, whether or not earlier ones have been answered, and times begin at the scheduled time.
The timer of the driver is up to 1 ms late, in every row. "Half of the maximum rate" is half of what the gateway answered to 32
connections directly before. At 10 requests per second a round has 100 requests, so p99 is the slowest, and CPU includes the work of
an idle process.
\`pgbench -N\` is the yardstick: a transaction updates one of 1,000,000 rows, reads it and inserts another, with prepared statements.
A durable write overwrites 8 KiB of a file and calls \`fdatasync\`. The targets assume a disk that needs 1 ms for it.
Only vendor, driver and \`pgbench\` are bound to a core: gateway and database use what is left, so the figures are those of this
machine. CPU is that of the gateway's processes per request in steps of 10 ms; "database" is that of PostgreSQL's processes.`,
  scenarios: [oneAccount, manyAccounts, ...atRates, ...yardsticks].map((scenario) => ({
    ...scenario,
    proxies: scenario.stores === undefined ? [{ ...scenario.proxy, isNodeProgram: false }] : proxiesWith(scenario),
  })),
  proxiesOf: (scenario) => scenario.proxies,
  referencesOf: () => [oneMemory, onePostgres].map(({ name, title }) => ({ name, column: `against ${title}` })),
  verdictOf: ({ targets = {} }, result) =>
    Object.entries(targets[result.proxy] ?? {})
      .map(([name, target]) => VERDICTS[name](result, target))
      .join('; '),
  prepare: () => {
    if (!canReadProcesses)
      throw new Error('--postgres reads the CPU time of processes from /proc, which only Linux has')
    const missing = PROGRAMS.filter((program) => postgresProgram(program) === undefined)
    if (missing.length > 0)
      throw new Error(`--postgres needs ${missing.join(' and ')}. On Debian, run \`apt-get install postgresql\`.`)
  },
}
