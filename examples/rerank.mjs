// @ts-check
/*
 * Documents in the order in which they answer a question: the second step of a search, behind the one by vectors.
 *
 *   npm run build && node examples/rerank.mjs
 *
 * An offline stand-in counts common words, so it runs without an account. With VOYAGE_API_KEY set it calls the vendor.
 */
import { createGateway, voyage } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const { VOYAGE_API_KEY: vendorKey } = process.env
const sandbox = vendorKey ? undefined : sandboxVendors()
const gateway = createGateway({
  vendors: [voyage({ apiKey: vendorKey ?? 'stand-in' })],
  billing: 'off',
  ...(sandbox ? { transport: sandbox.transport() } : {}),
})
const client = gateway.client({ accountId: 'customer-1', keyId: 'host', tier: 'paid' })

const documents = ['a blue mug', 'a paper boat on a pond', 'a paper hat', 'how to fold a boat of paper']
const { results } = await client.rerank({ model: 'vy-rerank-2.5', query: 'fold a paper boat', documents, top_n: 2 })
for (const { index, relevance_score } of results) console.log(`${relevance_score.toFixed(2)} ${documents[index]}`)

await gateway.close()
await sandbox?.close()
