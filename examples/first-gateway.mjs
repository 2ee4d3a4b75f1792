// @ts-check
/*
 * The gateway of docs/getting-started.md.
 *
 *   npm run build && node examples/first-gateway.mjs
 *
 * Runs offline. Without the line that sets `transport` it calls the vendors whose keys are in the environment.
 */
// #region shown
import { createServer } from 'node:http'
import { anthropic, createGateway, listPrices, openai } from 'signalbox'
import { nodeHandler } from 'signalbox/node'
import { sandboxVendors } from 'signalbox/testing'

const { OPENAI_API_KEY = 'stand-in', ANTHROPIC_API_KEY = 'stand-in', PORT = '8787' } = process.env
const gateway = createGateway({
  vendors: [openai({ apiKey: OPENAI_API_KEY }), anthropic({ apiKey: ANTHROPIC_API_KEY })],
  transport: sandboxVendors().transport(), // offline stand-ins: remove this line to call the vendors
  prices: listPrices(),
  logger: console, // says why a vendor refuses a call; silent without it
})

await gateway.accounts.create({ id: 'acct_acme' })
await gateway.accounts.credit('acct_acme', '5.00', { creditId: 'welcome' })
const { key } = await gateway.keys.create({ accountId: 'acct_acme' })

createServer(nodeHandler(gateway)).listen(Number(PORT), '127.0.0.1', () => {
  console.log(`BASE_URL=http://127.0.0.1:${PORT}/v1 API_KEY=${key} node first-call.mjs`)
})
// #endregion
