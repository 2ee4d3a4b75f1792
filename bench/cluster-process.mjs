// A gateway in several processes that share a port. Arguments: the vendor's port, a core for each worker (`0,1`), and the
// path of their common SQLite file; without one each worker keeps its money in memory.
import { execFileSync } from 'node:child_process'
import cluster from 'node:cluster'
import { answerQuestions, canPin, questionsTo } from './child-process.mjs'
import { serve } from './proxies/gateway.mjs'

const [upstreamPort, cores, path] = process.argv.slice(2)

if (cluster.isPrimary) await lead()
else await work()

async function lead() {
  cluster.setupPrimary({ serialization: 'advanced' })
  const workers = []
  let port
  // One after the other: the first makes the tables.
  for (const core of cores.split(',')) {
    const worker = cluster.fork()
    const { ask, ready } = questionsTo(worker.process, 'a worker')
    ;({ port } = await ready)
    if (canPin) execFileSync('taskset', ['-a', '-c', '-p', core, String(worker.process.pid)], { stdio: 'ignore' })
    workers.push(ask)
  }
  const accounts = path === undefined ? workers : workers.slice(0, 1)
  answerQuestions(
    { port },
    {
      answersByWorker: () => Promise.all(workers.map((ask) => ask('answers'))),
      account: async () => {
        const each = await Promise.all(accounts.map((ask) => ask('account')))
        const sum = (field) => each.reduce((total, account) => total + account[field], 0n)
        return { balance: sum('balance'), held: sum('held') }
      },
    },
  )
}

async function work() {
  const store = path === undefined ? undefined : (await import('../dist/sqlite.js')).sqliteStore({ path })
  const { server, account } = await serve({ upstreamPort: Number(upstreamPort), store })
  let answers = 0
  server.on('request', () => {
    answers += 1
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
    answerQuestions({ port: server.address().port }, { account, answers: () => answers })
  })
}
