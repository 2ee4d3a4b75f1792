import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { testPrices } from '../../support/test-prices.ts'
import { openDrillStore } from './open-drill-store.ts'
import type { ResponsesServerSettings } from './responses-kills-drill.ts'

/** Gateway for responses in a separate process. The first argument contains its settings as JSON. It sends its address to its parent. */
const settings = JSON.parse(process.argv[2] ?? '{}') as ResponsesServerSettings
const { key, account, credit } = settings
const opened = openDrillStore(settings.store)
const gateway = createGateway({
  vendors: [anthropic({ apiKey: settings.vendorKey, baseURL: settings.vendorOrigin })],
  prices: testPrices,
  store: opened.store,
  keys: [{ key, account }],
})
await gateway.start()
await gateway.accounts.credit(account, credit, { creditId: `credit-${account}` })
const server = createServer(nodeHandler(gateway))
server.listen(0, '127.0.0.1', () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})
process.on('disconnect', () => process.exit(0))
