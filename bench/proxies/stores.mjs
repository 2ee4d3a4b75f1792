import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgresServer } from '../postgres-server.mjs'
import { startCluster } from '../start-cluster.mjs'

const PROCESSES = 4

/** Stores with one process, or several that share them. */
export const onePostgres = { name: 'postgres-1', title: 'PostgreSQL, 1 process', workers: 1, open: openPostgres }
export const fourPostgres = {
  name: 'postgres-4',
  title: `PostgreSQL, ${PROCESSES} processes`,
  workers: PROCESSES,
  open: openPostgres,
}
export const oneMemory = { name: 'memory-1', title: 'memory, 1 process', workers: 1, open: async () => ({}) }
const oneSqlite = { name: 'sqlite-1', title: 'SQLite, 1 process', workers: 1, open: openSqlite }
const fourSqlite = { name: 'sqlite-4', title: `SQLite, ${PROCESSES} processes`, workers: PROCESSES, open: openSqlite }

/** A gateway with its money in each kind of store. */
export const STORES = [oneMemory, onePostgres, fourPostgres, oneSqlite, fourSqlite]

/** Gateways with their money in `stores`, for a number of accounts, all of which the scenario uses. */
export const proxiesWith = ({ accounts, stores }) =>
  stores.map(({ name, title, workers, open }) => ({
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

/** Each proxy has a separate server, so that the CPU time of the others' idle processes is not counted. */
async function openPostgres() {
  const { url, cpuMicroseconds, stop } = await startPostgresServer()
  return { store: { kind: 'postgres', url, schema: 'bench' }, serverMicroseconds: cpuMicroseconds, onStop: stop }
}

async function openSqlite() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
  return {
    store: { kind: 'sqlite', path: join(folder, 'bench.db') },
    onStop: () => rmSync(folder, { recursive: true, force: true }),
  }
}
