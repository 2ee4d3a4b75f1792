import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { undiciTransport } from '../../../src/transport/undici.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'
import { drillModels, drillPrices } from './drill-models.ts'
import type { GatewayMeasures, GatewaySettings } from './gateway-process.ts'

/**
 * Gateway in a separate process. The first argument contains its settings as JSON. It sends its address to its parent, and its
 * measurements on request.
 */
const { vendors, routes, timeouts, requestTimeoutMs } = JSON.parse(process.argv[2] ?? '{}') as GatewaySettings

/** Old lines of the journal are summed up, so that its growth is not taken for a leak. */
const store = memoryStore({ maxJournalLines: 500, maxOutcomes: 500 })
const endings: Record<string, number> = {}
let charged = 0n
let cpuBefore = process.cpuUsage()
const gateway = createGateway({
  vendors: vendors.map(({ id, origin }) =>
    openaiCompatible({ id, baseURL: `${origin}/v1`, apiKey: `key-of-${id}`, models: [] }),
  ),
  models: routes.flatMap(({ name, vendors: ids }) => drillModels(name, ids)),
  prices: drillPrices(routes.map(({ name }) => name)),
  store,
  keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }],
  timeouts,
  // Idle connections go soon, so that one that does not go is a leak.
  transport: undiciTransport({ connectTimeoutMs: timeouts.connectMs, keepAliveTimeoutMs: 500 }),
  onEvent(event) {
    if (event.type !== 'request-ended') return
    charged += event.costNanoDollars
    const ending = `${event.endpoint} ${event.ending} ${event.status} ${event.code ?? 'ok'}`
    endings[ending] = (endings[ending] ?? 0) + 1
  },
})
await gateway.start()
await gateway.accounts.credit(TEST_ACCOUNT, '1000000')
const server = createServer(
  requestTimeoutMs === undefined ? {} : { requestTimeout: requestTimeoutMs, connectionsCheckingInterval: 250 },
  nodeHandler(gateway),
)
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})

async function measures(): Promise<GatewayMeasures> {
  // Objects that finished calls leave for later turns are released first.
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc?.()
  }
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage()
  const account = await store.ledger.account(TEST_ACCOUNT)
  const entries = await store.ledger.entries(TEST_ACCOUNT, 100_000)
  const { user, system } = process.cpuUsage(cpuBefore)
  cpuBefore = process.cpuUsage()
  return {
    heapBytes: heapUsed + arrayBuffers,
    externalBytes: external,
    residentBytes: rss,
    // A listening server is another kind of resource, and a pipe to the parent is, too.
    sockets: process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap' || name === 'TLSWrap').length,
    callsUnderWay: gateway.routes().vendors.reduce((sum, { inFlight }) => sum + inFlight, 0),
    retriesLeft: gateway.routes().retriesLeft,
    cpuMs: (user + system) / 1_000,
    balance: String(account?.balance),
    held: String(account?.held),
    journal: String(entries.reduce((sum, { amount }) => sum + amount, 0n)),
    charged: String(charged),
    endings,
  }
}

process.on('message', () => {
  void measures().then((words) => process.send?.(words))
})
// The process that started it is gone.
process.on('disconnect', () => process.exit(0))
