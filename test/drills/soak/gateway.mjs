import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { anthropic, createGateway, dashscope, gemini, openai, undiciTransport, voyage } from 'signalbox'
import { nodeHandler } from 'signalbox/node'
import { sqliteStore } from 'signalbox/sqlite'

/**
 * Gateway of the soak, in a separate process: SQLite, prices, limits and webhooks as in use. Sends its address to its parent, and its
 * measurements on request. The first argument contains its settings as JSON.
 */
const { vendorOrigin, databasePath, accounts, credit, webhookSecret } = JSON.parse(process.argv[2] ?? '{}')

const connection = { apiKey: 'stand-in', baseURL: vendorOrigin }
const list = JSON.parse(await readFile(new URL('../../../examples/prices.json', import.meta.url), 'utf8'))
const delay = monitorEventLoopDelay({ resolution: 10 })
const endings = {}
let ended = 0
let charged = 0n
let internalErrors = 0
let cpuBefore = process.cpuUsage()

const gateway = createGateway({
  vendors: [openai(connection), anthropic(connection), gemini(connection), dashscope(connection), voyage(connection)],
  models: [{ id: 'relay', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', limits: { maxOutputTokens: 4_096 } }],
  prices: {
    ...list,
    prices: [
      ...list.prices,
      { model: 'relay', meter: 'input_token', amount: '1.00', per: 1_000_000 },
      { model: 'relay', meter: 'output_token', amount: '4.00', per: 1_000_000 },
    ],
  },
  keys: accounts.map(({ id, key }) => ({ key, account: id })),
  limits: { requestsPerMinute: 100_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 },
  store: sqliteStore({ path: databasePath }),
  // Long enough for a busy machine: a submission of a video that is not answered in time stays unknown for a day.
  timeouts: { firstByteMs: 15_000, idleMs: 15_000 },
  transport: undiciTransport({ keepAliveTimeoutMs: 2_000 }),
  webhookSecret,
  taskPollIntervalMs: 1_000,
  allowPrivateUrls: true,
  onEvent(event) {
    if (event.type === 'internal-error') {
      internalErrors += 1
      console.error('internal error:', event.where, event.error)
    }
    if (event.type !== 'request-ended' && event.type !== 'task-ended') return
    ended += 1
    charged += event.costNanoDollars
    const name = event.type === 'request-ended' ? `${event.endpoint} ${event.ending} ${event.status}` : event.state
    endings[name] = (endings[name] ?? 0) + 1
  },
})
await gateway.start()
for (const { id } of accounts) await gateway.accounts.credit(id, credit, { creditId: `credit-${id}` })
const server = createServer(nodeHandler(gateway))

/** Measures the process after garbage collection. */
async function sample() {
  const { user, system } = process.cpuUsage(cpuBefore)
  const delayP99Ms = delay.percentile(99) / 1e6
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc()
  }
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage()
  const resources = process.getActiveResourcesInfo()
  const found = await Promise.all(accounts.map(({ id }) => gateway.accounts.get(id)))
  cpuBefore = process.cpuUsage()
  delay.reset()
  return {
    heapBytes: heapUsed + arrayBuffers,
    residentBytes: rss,
    handles: resources.length,
    sockets: resources.filter((name) => name === 'TCPSocketWrap').length,
    callsUnderWay: gateway.routes().vendors.reduce((sum, { inFlight }) => sum + inFlight, 0),
    held: found.reduce((sum, { held }) => sum + held, 0n),
    delayP99Ms,
    cpuMs: (user + system) / 1_000,
    ended,
    internalErrors,
  }
}

/** Whether the money is exact: of each account, and of all bills together. */
async function money() {
  const faults = []
  let spent = 0n
  for (const { id } of accounts) {
    const { balance, held } = await gateway.accounts.get(id)
    const entries = await gateway.accounts.ledger(id, { limit: 100_000_000 })
    const sum = entries.reduce((total, { amount }) => total + amount, 0n)
    const holds = entries.flatMap(({ holdId, kind }) => (kind === 'charge' ? [holdId] : []))
    if (held !== 0n) faults.push(`${id} has ${held} nano-dollars on hold`)
    if (sum !== balance) faults.push(`the journal of ${id} sums up to ${sum}, its balance is ${balance}`)
    if (new Set(holds).size !== holds.length) faults.push(`a hold of ${id} was charged twice`)
    spent += entries.reduce((total, { kind, amount }) => (kind === 'credit' ? total : total - amount), 0n)
  }
  if (spent !== charged) faults.push(`${spent} nano-dollars were taken, but bills of ${charged} were reported`)
  return { faults, spent, endings }
}

const ANSWERS = { sample, money, close: () => gateway.close({ drainMs: 5_000 }) }

process.on('message', async (question) => {
  try {
    process.send({ answer: await ANSWERS[question]() })
  } catch (error) {
    process.send({ fault: error instanceof Error ? error.stack : String(error) })
  }
})
// The process that started it is gone.
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => {
  delay.enable()
  process.send({ answer: { origin: `http://127.0.0.1:${server.address().port}` } })
})
