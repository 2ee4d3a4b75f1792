// @ts-check
/*
 * Sends a file of requests that are answered later, at half the price, and prints their charge.
 *
 *   npm run build && node examples/batches.mjs
 *
 * Offline stand-ins answer, so it runs without an account. With OPENAI_API_KEY set it calls the vendor.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { createGateway, openai } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'

const { OPENAI_API_KEY: vendorKey } = process.env
const sandbox = vendorKey ? undefined : sandboxVendors()
/** Made up: write your own. */
const PRICES = /** @type {const} */ ([
  { model: 'assistant', meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
  { model: 'assistant', meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
])
const gateway = createGateway({
  vendors: [openai({ apiKey: vendorKey ?? 'stand-in' })],
  models: [{ id: 'assistant', kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol' }],
  prices: { currency: 'USD', prices: PRICES },
  batches: {},
  ...(sandbox ? { transport: sandbox.transport() } : {}),
})
await gateway.start()
await gateway.accounts.create({ id: 'customer-1' })
await gateway.accounts.credit('customer-1', '1.00', { creditId: 'payment-1' })
const client = gateway.client({ accountId: 'customer-1', keyId: 'host', tier: 'paid' })

const lines = ['noun', 'verb', 'pronoun'].map((word) => ({
  custom_id: word,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'assistant', max_tokens: 100, messages: [{ role: 'user', content: `What is a ${word}?` }] },
}))
const text = lines.map((line) => JSON.stringify(line)).join('\n')
const file = await client.files.create({ file: Buffer.from(text), purpose: 'batch' })
let batch = await client.batches.create({
  input_file_id: file.id,
  endpoint: '/v1/chat/completions',
  completion_window: '24h',
})
console.log(`held: ${(await client.account.balance()).held !== '0'}`)
while (batch.status === 'in_progress' || batch.status === 'validating') {
  await wait(100)
  batch = await client.batches.retrieve(batch)
}

const answers = await (await client.files.content(batch.output_file_id ?? '')).bytes()
for (const line of Buffer.from(answers).toString().trim().split('\n')) {
  const { custom_id, response } = JSON.parse(line)
  console.log(`${custom_id}: ${response.body.choices[0].message.content}`)
}
const { balance, held } = await client.account.balance()
console.log(`${batch.status}: cost ${batch.cost}, balance ${balance}, held ${held}`)

await gateway.close()
await sandbox?.close()
