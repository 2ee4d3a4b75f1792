// @ts-check
/*
 * Mounts the gateway under /ai next to your own app on Node's HTTP server: the fastest mount for any app.
 *
 *   npm run build && node examples/node-http.mjs
 *
 * It calls the vendors whose keys are in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY,
 * DASHSCOPE_API_KEY, VOYAGE_API_KEY). Without any of them it uses offline stand-ins, so it runs without an account.
 */
import { createServer } from 'node:http'
import { anthropic, createApiKey, createGateway, dashscope, gemini, openai, voyage } from 'signalbox'
import { nodeHandler } from 'signalbox/node'
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
  onEvent: (event) => {
    if (event.type === 'request-ended') console.log(`${event.requestId} ${event.ending}`)
  },
})

const ai = nodeHandler(gateway, { basePath: '/ai' })
const server = createServer((request, response) => {
  if (ai.handles(request)) return ai(request, response)
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ hello: 'world' }))
})

server.listen(Number(env.PORT ?? 3000), '127.0.0.1', () => {
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
