import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgresServer } from '../postgres-server.mjs'
import { startCluster } from '../start-cluster.mjs'

const PROCESSES = 4

let server
let schemas = 0

/** The server that all proxies of a run share. */
async function sharedServer() {
  server ??= await startPostgresServer()
  return server
}

/** Ends the server, if one was started. */
export async function stopSharedServer() {
  await server?.stop()
  server = undefined
}

/** One process with its money in PostgreSQL: the others are compared with it. */
const onePostgres = { name: 'postgres-1', title: 'PostgreSQL, 1 process', workers: 1, open: openPostgres }
const fourPostgres = {
  name: 'postgres-4',
  title: `PostgreSQL, ${PROCESSES} processes`,
  workers: PROCESSES,
  open: openPostgres,
}
const oneMemory = { name: 'memory-1', title: 'memory, 1 process', workers: 1, open: async () => ({}) }
const oneSqlite = { name: 'sqlite-1', title: 'SQLite, 1 process', workers: 1, open: openSqlite }
const fourSqlite = { name: 'sqlite-4', title: `SQLite, ${PROCESSES} processes`, workers: PROCESSES, open: openSqlite }

/** A gateway with its money in each kind of store, `accounts` of them, all of which the scenario uses. */
export const proxiesWith = ({ accounts }) =>
  [oneMemory, onePostgres, fourPostgres, oneSqlite, fourSqlite].map(({ name, title, workers, open }) => ({
    name,
    title,
    isTranslating: true,
    isOwn: true,
    launch: async ({ upstreamPort, runtime }) => {
      const { store, serverMicroseconds, onStop } = await open()
      const settings = { upstreamPort, workers, accounts, ...(store === undefined ? {} : { store }) }
      return {
        ...(await startCluster({ runtime, settings, onStop })),
        ...(serverMicroseconds && { serverMicroseconds }),
      }
    },
  }))

export const REFERENCE = onePostgres

/** Each proxy has separate tables. */
async function openPostgres() {
  const { url, cpuMicroseconds } = await sharedServer()
  schemas += 1
  return { store: { kind: 'postgres', url, schema: `bench_${schemas}` }, serverMicroseconds: cpuMicroseconds }
}

async function openSqlite() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
  return {
    store: { kind: 'sqlite', path: join(folder, 'bench.db') },
    onStop: () => rmSync(folder, { recursive: true, force: true }),
  }
}
