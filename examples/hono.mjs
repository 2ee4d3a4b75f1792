// @ts-check
/*
 * A Hono app with the gateway under /ai.
 *
 *   npm run build && node examples/hono.mjs
 *
 * It calls the vendors whose keys are in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY,
 * DASHSCOPE_API_KEY, VOYAGE_API_KEY). Without any of them it uses offline stand-ins, so it runs without an account.
 */
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { anthropic, createApiKey, createGateway, dashscope, gemini, openai, voyage } from 'signalbox'
import { fetchHandler } from 'signalbox/fetch'
import { sandboxVendors } from 'signalbox/testing'

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
  billing: 'off',
})

const ai = fetchHandler(gateway, { basePath: '/ai' })
const app = new Hono()
app.get('/', (context) => context.json({ hello: 'world' }))
app.all('/ai/*', (context) => ai(context.req.raw))

const server = serve({ fetch: app.fetch, port: Number(env.PORT ?? 3000), hostname: '127.0.0.1' }, ({ port }) => {
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
