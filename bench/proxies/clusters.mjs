import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROXY_CORE, SECOND_PROXY_CORE } from '../child-process.mjs'
import { startCluster } from '../start-cluster.mjs'

/** One gateway process in Node's cluster module: the others are compared with it. */
export const ONE_WORKER = clusterOf({ name: 'cluster-1', title: '1 worker', cores: [PROXY_CORE] })

const sameCore = [PROXY_CORE, PROXY_CORE]
const ownCores = [PROXY_CORE, SECOND_PROXY_CORE]

/** One worker, with its money in one SQLite file. */
export const ONE_WORKER_SQLITE = clusterOf({
  name: 'cluster-1-sqlite',
  title: '1 worker, SQLite',
  cores: [PROXY_CORE],
  isDurable: true,
})

/** Two workers that take turns on one core. */
export const TWO_WORKERS = clusterOf({ name: 'cluster-2', title: '2 workers, one core', cores: sameCore })

/** Two workers at the same time. */
export const TWO_WORKERS_TWO_CORES = clusterOf({
  name: 'cluster-2-cores',
  title: '2 workers, a core each',
  cores: ownCores,
})

/** Two workers that write one SQLite file, on one core and on a core each. */
export const TWO_WORKERS_SQLITE = clusterOf({
  name: 'cluster-2-sqlite',
  title: '2 workers, one core, SQLite',
  cores: sameCore,
  isDurable: true,
})
export const TWO_WORKERS_TWO_CORES_SQLITE = clusterOf({
  name: 'cluster-2-cores-sqlite',
  title: '2 workers, a core each, SQLite',
  cores: ownCores,
  isDurable: true,
})

function clusterOf({ name, title, cores, isDurable = false }) {
  return {
    name,
    title,
    isTranslating: true,
    isOwn: true,
    launch: ({ upstreamPort, core, runtime }) => {
      const folder = isDurable ? mkdtempSync(join(tmpdir(), 'signalbox-bench-')) : undefined
      return startCluster({
        core,
        runtime,
        settings: {
          upstreamPort,
          workers: cores.length,
          cores,
          ...(folder === undefined ? {} : { store: { kind: 'sqlite', path: join(folder, 'bench.db') } }),
        },
        onStop: () => folder && rmSync(folder, { recursive: true, force: true }),
      })
    },
  }
}
