import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { Transport } from '../../../src/transport/transport.ts'
import { undiciTransport } from '../../../src/transport/undici.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { testPrices } from '../../support/test-prices.ts'
import { openDrillStore } from './open-drill-store.ts'
import type { VideoServerSettings, VideoServerWords } from './video-processes.ts'

/**
 * Gateway for videos in a separate process. The first argument contains its settings as JSON. It sends its address to its parent, and
 * on request its memory use and the times of its polls at the vendor.
 */
// Recompiling undici's parser after its first use takes 30 MB for a moment, and on a busy machine long enough to be measured.
for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering']) setFlagsFromString(flag)

const settings = JSON.parse(process.argv[2] ?? '{}') as VideoServerSettings
const { key, account, credit } = settings
const askedAtMs: number[] = []
let submissions = 0

/** Network that refuses every n-th connection for a submission, and records when the vendor is called. */
function drillTransport(): Transport {
  const network = undiciTransport()
  return {
    send(request, handler) {
      if (request.method === 'GET') askedAtMs.push(Date.now())
      else submissions++
      const isRefused =
        request.method === 'POST' && settings.refuseEvery !== undefined && submissions % settings.refuseEvery === 0
      if (!isRefused) return network.send(request, handler)
      const error = new Error('connection refused')
      queueMicrotask(() => handler.onFailure({ phase: 'connect', kind: 'refused', error }))
      return { abort() {}, pause() {}, resume() {} }
    },
    close: () => network.close(),
  }
}

const opened = openDrillStore(settings.store)
const gateway = createGateway({
  vendors: [dashscope({ apiKey: settings.vendorKey, baseURL: settings.vendorOrigin })],
  prices: testPrices,
  store: opened.store,
  keys: [{ key, account }],
  webhookSecret: settings.webhookSecret,
  allowPrivateUrls: true,
  transport: drillTransport(),
  taskPollIntervalMs: settings.pollIntervalMs,
})
await gateway.start()
await gateway.accounts.credit(account, credit, { creditId: `credit-${account}` })
const server = createServer(nodeHandler(gateway))
server.listen(0, '127.0.0.1', () => {
  say({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})

function say(words: VideoServerWords): void {
  process.send?.(words)
}

process.on('message', () => {
  // Measures the memory that the process needs, whenever the collector last ran on a busy machine.
  globalThis.gc?.()
  say({ residentBytes: process.memoryUsage.rss(), askedAtMs: askedAtMs.splice(0) })
})
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
  void gateway
    .close({ drainMs: 5_000 })
    .then(() => opened.release())
    .then(() => process.disconnect())
})
