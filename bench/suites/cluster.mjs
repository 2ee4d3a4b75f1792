import { LOAD_CORE, SECOND_PROXY_CORE } from '../child-process.mjs'
import { canReadProcesses } from '../process-tree.mjs'
import {
  ONE_WORKER,
  ONE_WORKER_SQLITE,
  TWO_WORKERS,
  TWO_WORKERS_SQLITE,
  TWO_WORKERS_TWO_CORES,
  TWO_WORKERS_TWO_CORES_SQLITE,
} from '../proxies/clusters.mjs'
import { scenario as chatBurst } from '../scenarios/chat-burst.mjs'
import { scenario as chatJson } from '../scenarios/chat-json.mjs'
import { verdict, verdictAtLeast } from '../verdict.mjs'

/** The same requests, with the money of all workers in one file. */
const chatDurable = { ...chatJson, name: 'chat-json-sqlite', title: 'chat, JSON, 32 connections, money in SQLite' }

const IN_MEMORY = [ONE_WORKER, TWO_WORKERS, TWO_WORKERS_TWO_CORES]
const DURABLE = [ONE_WORKER_SQLITE, TWO_WORKERS_SQLITE, TWO_WORKERS_TWO_CORES_SQLITE]
const proxiesOf = (scenario) => (scenario === chatDurable ? DURABLE : IN_MEMORY)

/** Two workers may take 15 % more CPU for a request than one. */
const MAX_CPU = 1.15
/** Least part of the answers that each of two workers gives, on one core. */
const MIN_SHARE = 0.45

const ABOUT_CORES =
  SECOND_PROXY_CORE === LOAD_CORE
    ? `There are two cores, and vendor and driver need one of them, so requests per second are not judged. On "a core each" the second
worker shares its core, and its caches, with vendor and driver.`
    : `On "a core each" no worker shares its core with vendor and driver.`

export const suite = {
  name: 'cluster',
  heading: 'In several processes',
  intro: `The gateway in one and in two workers of Node's \`cluster\` module. What is judged is whether a request costs more CPU when another
process serves the same port, and whether both workers give their share of the answers on one core, where they are alike.
${ABOUT_CORES}
CPU is that of the workers and of the process that accepts connections, in steps of 10 ms. Time that a worker waits is not in it.
In memory each worker has money of its own; with SQLite both write one file, one after the other.`,
  scenarios: [chatJson, chatBurst, chatDurable],
  proxiesOf,
  referencesOf: (scenario) => [{ name: proxiesOf(scenario)[0].name, column: 'against 1 worker' }],
  verdictOf: (scenario, { proxy, medians, comparisons }) => {
    const [alone, together] = proxiesOf(scenario)
    if (proxy === alone.name) return ''
    const cpu = verdict(comparisons[alone.name].median, { target: MAX_CPU, sign: '×' })
    return proxy === together.name ? `${cpu}; each ${shareVerdict(medians.leastShare)}` : cpu
  },
  prepare: () => {
    if (!canReadProcesses) throw new Error('--cluster reads the CPU time of processes from /proc, which only Linux has')
  },
}

const shareVerdict = (share) => verdictAtLeast(share * 100, { target: MIN_SHARE * 100, sign: '% of answers' })
