// A gateway in several processes that share a port. Its argument is JSON: `upstreamPort`; `workers`, how many; `cores`, one for
// each worker, or none to let the system place them; `accounts`, how many; `store`, `{ kind: 'sqlite', path }` or
// `{ kind: 'postgres', url, schema }`, which all workers share. Without a store each worker keeps its money in memory.
import { execFileSync } from 'node:child_process'
import cluster from 'node:cluster'
import { importBuilt } from './built.mjs'
import { answerQuestions, canPin, questionsTo } from './child-process.mjs'
import { serve } from './proxies/gateway.mjs'

const { upstreamPort, workers: workerCount, cores = [], accounts, store: storeSettings } = JSON.parse(process.argv[2])

if (cluster.isPrimary) await lead()
else await work()

async function lead() {
  cluster.setupPrimary({ serialization: 'advanced' })
  const workers = []
  let port
  // Workers start one after the other, because the first creates the tables.
  for (let index = 0; index < workerCount; index++) {
    const worker = cluster.fork()
    const { ask, ready } = questionsTo(worker.process, 'a worker')
    ;({ port } = await ready)
    const core = cores[index]
    if (canPin && core !== undefined)
      execFileSync('taskset', ['-a', '-c', '-p', String(core), String(worker.process.pid)], { stdio: 'ignore' })
    workers.push(ask)
  }
  const holders = storeSettings === undefined ? workers : workers.slice(0, 1)
  answerQuestions(
    { port },
    {
      answersByWorker: () => Promise.all(workers.map((ask) => ask('answers'))),
      account: async () => {
        const each = await Promise.all(holders.map((ask) => ask('account')))
        const sum = (field) => each.reduce((total, account) => total + account[field], 0n)
        return { balance: sum('balance'), held: sum('held') }
      },
    },
  )
}

async function work() {
  const { server, account } = await serve({ upstreamPort, accounts, store: await openStore() })
  let answers = 0
  server.on('request', () => {
    answers += 1
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
    answerQuestions({ port: server.address().port }, { account, answers: () => answers })
  })
}

async function openStore() {
  if (storeSettings === undefined) return undefined
  if (storeSettings.kind === 'sqlite') return (await importBuilt('sqlite')).sqliteStore({ path: storeSettings.path })
  const { Pool } = (await import('pg')).default
  const pool = new Pool({ connectionString: storeSettings.url })
  return (await importBuilt('postgres')).postgresStore({ pool, schema: storeSettings.schema })
}
