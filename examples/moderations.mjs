// @ts-check
/*
 * Classifies users' texts before they are shown, and adds a guard that does so for every chat.
 *
 *   npm run build && node examples/moderations.mjs
 *
 * An offline stand-in judges, so it runs without an account. With OPENAI_API_KEY set it calls the vendor.
 */
import { createGateway, moderationGuard, openai } from 'signalbox'
import { ClientError } from 'signalbox/client'
import { sandboxVendors } from 'signalbox/testing'

const { OPENAI_API_KEY: vendorKey } = process.env
const MODEL = 'omni-moderation-latest'
const sandbox = vendorKey ? undefined : sandboxVendors()
const gateway = createGateway({
  vendors: [openai({ apiKey: vendorKey ?? 'stand-in' })],
  models: [{ id: 'assistant', kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol' }],
  billing: 'off',
  hooks: [moderationGuard({ model: MODEL, block: { violence: 0.5 } })],
  ...(sandbox ? { transport: sandbox.transport() } : {}),
})
const client = gateway.client({ accountId: 'customer-1', keyId: 'host', tier: 'paid' })

const posts = ['a paper boat', 'an ode to violence']
const { results } = await client.moderations.create({ model: MODEL, input: posts })
for (const [index, { flagged }] of results.entries()) console.log(`${posts[index]}: ${flagged ? 'flagged' : 'fine'}`)

for (const content of posts) {
  try {
    const chat = await client.chat.completions.create({ model: 'assistant', messages: [{ role: 'user', content }] })
    console.log(chat.choices[0]?.message.content)
  } catch (error) {
    if (!ClientError.isInstance(error)) throw error
    console.log(`${error.status} ${error.code}`)
  }
}

await gateway.close()
await sandbox?.close()
