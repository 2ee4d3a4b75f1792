// @ts-check
/*
 * An Express app with the gateway under /ai, which bills its customers by a price file.
 *
 *   npm run build && node examples/express.mjs
 *
 * It calls the vendors whose keys are in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY,
 * DASHSCOPE_API_KEY, VOYAGE_API_KEY). Without any of them it uses offline stand-ins, so it runs without an account.
 */
import { readFile } from 'node:fs/promises'
import express from 'express'
import { anthropic, createApiKey, createGateway, dashscope, formatDollars, gemini, openai, voyage } from 'signalbox'
import { expressHandler } from 'signalbox/express'
import { sandboxVendors } from 'signalbox/testing'

const prices = JSON.parse(await readFile(new URL('./prices.json', import.meta.url), 'utf8'))

// A vendor without a key is listed as unavailable. A call to it is refused; the error names the missing setting.
const { env } = process
const names = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY', 'DASHSCOPE_API_KEY', 'VOYAGE_API_KEY']
const isOffline = !names.some((name) => env[name])
const vendorKey = (/** @type {string} */ name) => (isOffline ? 'stand-in' : env[name])

// Your customers send this as `Authorization: Bearer …`. In production keep it in a secret store.
const apiKey = env.GATEWAY_KEY ?? createApiKey()

const gateway = createGateway({
  vendors: [
    openai({ apiKey: vendorKey('OPENAI_API_KEY') }),
    anthropic({ apiKey: vendorKey('ANTHROPIC_API_KEY') }),
    gemini({ apiKey: vendorKey('GEMINI_API_KEY') }),
    dashscope({ apiKey: vendorKey('DASHSCOPE_API_KEY') }),
    voyage({ apiKey: vendorKey('VOYAGE_API_KEY') }),
  ],
  ...(isOffline ? { transport: sandboxVendors().transport() } : {}),
  keys: [{ key: apiKey, account: 'customer-1' }],
  prices,
})
// The creditId makes this idempotent: the credit is granted once, even if the program restarts on the same store.
await gateway.accounts.credit('customer-1', '5.00', { creditId: 'welcome' })

const app = express()
app.use('/ai', expressHandler(gateway))
app.use(express.json())
app.get('/balance', async (_request, response) => {
  const account = await gateway.accounts.get('customer-1')
  response.json({ dollars: formatDollars(account?.balance ?? 0n) })
})

const server = app.listen(Number(env.PORT ?? 3000), '127.0.0.1', (error) => {
  if (error) throw error
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(`baseURL http://127.0.0.1:${port}/ai/v1`)
  console.log(`apiKey  ${apiKey}`)
})

// Refuses new requests, lets running ones end, and settles their cost.
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, async () => {
    server.close()
    await gateway.close({ drainMs: 10_000 })
  })
}
