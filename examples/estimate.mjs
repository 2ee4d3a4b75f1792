// @ts-check
/*
 * Estimates the highest possible cost of a request before it is sent, and prints its actual cost.
 *
 *   npm run build && node examples/estimate.mjs
 *
 * Offline stand-ins answer, so it runs without an account. With OPENAI_API_KEY set it calls the vendor.
 */
import { createGateway, openai } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const { OPENAI_API_KEY: vendorKey } = process.env
const sandbox = vendorKey ? undefined : sandboxVendors()
/** Made up: write your own. */
const PRICES = /** @type {const} */ ([
  { model: 'assistant', meter: 'input_token', amount: '1.00', per: 1_000_000 },
  { model: 'assistant', meter: 'output_token', amount: '4.00', per: 1_000_000 },
])
const gateway = createGateway({
  vendors: [openai({ apiKey: vendorKey ?? 'stand-in' })],
  models: [{ id: 'assistant', kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol' }],
  prices: { currency: 'USD', prices: PRICES },
  ...(sandbox ? { transport: sandbox.transport() } : {}),
})
await gateway.start()
await gateway.accounts.create({ id: 'customer-1' })
await gateway.accounts.credit('customer-1', '1.00', { creditId: 'payment-1' })
const client = gateway.client({ accountId: 'customer-1', keyId: 'host', tier: 'paid' })

const body = {
  model: 'assistant',
  max_tokens: 100,
  messages: [{ role: /** @type {const} */ ('user'), content: 'Say hello' }],
}
const estimate = await client.estimate({ endpoint: '/v1/chat/completions', body })
console.log(`at most ${estimate.held} for ${estimate.usage.outputTokens} tokens of output`)
/** @type {string | undefined} */
let cost
const onResponse = (/** @type {import('signalbox/client').ResponseFacts} */ facts) => {
  cost = facts.cost
}
await client.chat.completions.create(body, { onResponse })
console.log(`it cost ${cost}, which is ${Number(cost) < Number(estimate.held) ? 'less' : 'not less'}`)

await gateway.close()
await sandbox?.close()
