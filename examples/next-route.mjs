// @ts-check
/*
 * A Next route handler that serves the gateway under /ai: copy it to app/ai/[...path]/route.js.
 *
 * It calls the vendors whose keys are in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY,
 * DASHSCOPE_API_KEY, VOYAGE_API_KEY). Without any of them it uses offline stand-ins, so it runs without an account.
 */
import { anthropic, createApiKey, createGateway, dashscope, gemini, openai, voyage } from 'signalbox'
import { nextHandlers } from 'signalbox/fetch'
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

// Prints a generated key, so that you can use it.
if (env.GATEWAY_KEY === undefined) console.log(`apiKey  ${apiKey}`)

/** Next must not cache responses, and must run this on Node: its edge runtime has no sockets. */
export const dynamic = 'force-dynamic'
export const runtime = 'nodejs'

export const { GET, POST, DELETE, OPTIONS } = nextHandlers(gateway, { basePath: '/ai' })
