// @ts-check
/*
 * A Fastify app with the gateway under /ai, with a rate limit for each key.
 *
 *   npm run build && node examples/fastify.mjs
 *
 * It calls the vendors whose keys are in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY,
 * DASHSCOPE_API_KEY, VOYAGE_API_KEY). Without any of them it uses offline stand-ins, so it runs without an account.
 */
import fastify from 'fastify'
import { anthropic, createApiKey, createGateway, dashscope, gemini, openai, voyage } from 'signalbox'
import { fastifyGateway } from 'signalbox/fastify'
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
  limits: { requestsPerMinute: 600, tokensPerMinute: 1_000_000, concurrency: 50 },
})

const app = fastify()
app.get('/', async () => ({ hello: 'world' }))
await app.register(fastifyGateway, { gateway, prefix: '/ai' })

const address = await app.listen({ port: Number(env.PORT ?? 3000), host: '127.0.0.1' })
console.log(`baseURL ${address}/ai/v1`)
console.log(`apiKey  ${apiKey}`)

// Refuses new requests, lets running ones end, and settles their cost.
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, async () => {
    await Promise.all([app.close(), gateway.close({ drainMs: 10_000 })])
  })
}
