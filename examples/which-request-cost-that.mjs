// @ts-check
/*
 * A customer asks about a charge: which request was it? Runs offline with stand-ins.
 *
 *   npm run build && node examples/which-request-cost-that.mjs
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { anthropic, createGateway, listPrices } from 'signalbox'
import { adminHandler } from 'signalbox/admin'
import { nodeHandler } from 'signalbox/node'
import { sandboxVendors } from 'signalbox/testing'

const sandbox = sandboxVendors()
const vendors = [anthropic({ apiKey: 'stand-in' })]
const gateway = createGateway({ vendors, transport: sandbox.transport(), prices: listPrices() })
const operatorKey = 'an-operator-key-of-this-example'
const handler = adminHandler(gateway, { operatorKeys: [{ name: 'ops', key: operatorKey }] })
const server = createServer(nodeHandler(handler, { basePath: '/admin' })).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
const adminURL = `http://127.0.0.1:${port}/admin/v1`

await gateway.accounts.create({ id: 'acct_shop' })
await gateway.accounts.credit('acct_shop', '5')
for (const [endUser, max_tokens, content] of /** @type {const} */ ([
  ['alice', 50, 'Name a river.'],
  ['bob', 4_000, `Sum this up: ${'a long report. '.repeat(400)}`],
  ['carol', 50, 'Name a lake.'],
])) {
  // The expensive request is answered at the second attempt.
  if (endUser === 'bob') sandbox.fault({ kind: 'status', status: 503, times: 1 })
  const client = gateway.client({ accountId: 'acct_shop', keyId: 'web', tier: 'paid', endUser })
  const messages = [{ role: /** @type {const} */ ('user'), content }]
  await client.chat.completions.create({ model: 'claude-sonnet-5-5', max_tokens, messages })
}

// #region shown
const headers = { authorization: `Bearer ${operatorKey}` }
const read = async (/** @type {string} */ path) => (await fetch(`${adminURL}/${path}`, { headers })).json()

const { data: lines } = await read('accounts/acct_shop/journal?limit=1000')
const dearest = lines
  .filter(({ kind = '' }) => kind === 'charge')
  .sort((one = { due: '' }, other = { due: '' }) => Number(other.due) - Number(one.due))[0]
// The hold of a charge has the id of its request, which the caller got as `x-request-id`. Both have the same time.
const call = await read(`requests/${dearest.hold}?ended_at=${dearest.created_at_ms}`)

console.log(`$${call.charged} for ${call.model} by ${call.end_user} with the key ${call.key}`)
console.log(`${call.usage.inputTokens} tokens in, ${call.usage.outputTokens} out, ${call.attempts.length} attempts`)
// #endregion

server.close()
await gateway.close()
