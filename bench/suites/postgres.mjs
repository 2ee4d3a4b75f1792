import { postgresProgram, postgresVersion } from '../postgres-server.mjs'
import { canReadProcesses } from '../process-tree.mjs'
import { proxiesWith, REFERENCE, stopSharedServer } from '../proxies/stores.mjs'
import { scenario as chatJson } from '../scenarios/chat-json.mjs'

const VERSION = ((version) => (version === undefined ? '' : ` ${version}`))(postgresVersion())

/** Scenarios with one account, and with many accounts that rarely conflict. */
const scenarios = [
  { accounts: 1, name: 'chat-json-hot-account', title: 'chat, JSON, 32 connections, one account' },
  { accounts: 1_000, name: 'chat-json-1000-accounts', title: 'chat, JSON, 32 connections, 1,000 accounts' },
].map((description) => ({
  ...chatJson,
  ...description,
  unit: 'requests/s',
  headline: 'answersPerSecond',
  proxies: proxiesWith(description),
}))

export const suite = {
  name: 'postgres',
  heading: 'Money in PostgreSQL',
  intro: `The gateway with everything on and its money in PostgreSQL${VERSION}, in one process and in four, beside memory and SQLite. The server is
of this machine, with its own settings: every commit is flushed to the disk, as SQLite's are. Each process has
a pool of ten connections. One account takes all requests, or each of 1,000 takes its turn.
Nothing is kept on one core here but vendor and driver: gateway and database take what is left, so the figures are those of this
machine. CPU is that of the gateway's processes in steps of 10 ms; "database" is that of PostgreSQL's.`,
  scenarios,
  proxiesOf: (scenario) => scenario.proxies,
  referencesOf: () => [{ name: REFERENCE.name, column: `against ${REFERENCE.title}` }],
  prepare: () => {
    if (!canReadProcesses)
      throw new Error('--postgres reads the CPU time of processes from /proc, which only Linux has')
    if (postgresProgram('initdb') === undefined)
      throw new Error('--postgres needs `initdb` and `postgres` (on Debian: `apt-get install postgresql`)')
  },
  finish: stopSharedServer,
}
