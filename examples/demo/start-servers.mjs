// @ts-check
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { anthropic, createApiKey, createGateway, dashscope, gemini, openai, openaiCompatible, voyage } from 'signalbox'
import { createClient } from 'signalbox/client'
import { gatewayWithMcp } from 'signalbox/mcp'
import { nodeHandler } from 'signalbox/node'
import { presets } from 'signalbox/presets'
import { sandboxVendors } from 'signalbox/testing'
import { createMailbox } from './mailbox.mjs'
import { startReceiver } from './start-receiver.mjs'

const ACCOUNT = 'customer-1'
const CREDIT_DOLLARS = '25.00'

/** Time of the stand-in for a video, in milliseconds: first it waits, then it renders. */
const VIDEO_MS = { pending: 400, running: 1_200 }

/** Chat models of vendors without built-in rows; the second member is the vendor's own name. */
const ADDED_MODELS = /** @type {const} */ ([
  { id: 'relay', kind: 'chat', vendor: 'openai', upstream: 'gpt-6-sol', limits: { maxOutputTokens: 4_096 } },
  // OpenAI offers it only through Responses; the gateway still answers chats and Messages.
  { id: 'thinker', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.5-pro', limits: { maxOutputTokens: 4_096 } },
  // OpenAI is called first, and DashScope if OpenAI fails.
  {
    id: 'steady',
    kind: 'chat',
    vendor: 'openai',
    upstream: 'gpt-6-sol',
    routes: [{ vendor: 'openai' }, { vendor: 'dashscope', upstream: 'qwen3-max', priority: 1 }],
    limits: { maxOutputTokens: 4_096 },
  },
  // DeepSeek fills gaps in texts.
  { id: 'coder', kind: 'chat', vendor: 'deepseek', upstream: 'deepseek-v4-flash', limits: { maxOutputTokens: 4_096 } },
  { id: 'translator', kind: 'chat', vendor: 'dashscope', upstream: 'qwen3-max', limits: { maxOutputTokens: 4_096 } },
])

/** Example prices of the added models. */
const ADDED_PRICES = ADDED_MODELS.flatMap(({ id: model }) => [
  { model, meter: 'input_token', amount: '1.00', per: 1_000_000 },
  { model, meter: 'output_token', amount: '4.00', per: 1_000_000 },
  // Requests of batches have separate prices.
  { model, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
  { model, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
])

/**
 * Starts stand-ins for the vendors, a gateway that calls them, and a receiver of its webhooks, each on a free port.
 * @param {{ brokenVendor?: string | undefined }} options `brokenVendor` answers every call with 500.
 */
export async function startServers({ brokenVendor }) {
  const sandbox = sandboxVendors({ videoPendingMs: VIDEO_MS.pending, videoRunningMs: VIDEO_MS.running })
  const { origin } = await sandbox.listen()
  const connection = { apiKey: 'stand-in', baseURL: origin }
  const vendors = [
    openai(connection),
    anthropic(connection),
    gemini(connection),
    dashscope(connection),
    voyage(connection),
    openaiCompatible(presets.deepseek, { ...connection, baseURL: `${origin}/presets/deepseek` }),
  ]
  if (brokenVendor !== undefined) {
    const ids = vendors.map(({ id }) => id)
    if (!ids.includes(brokenVendor)) throw new TypeError(`DEMO_BROKEN_VENDOR is one of ${ids.join(', ')}`)
    sandbox.fault({ kind: 'status', status: 500, vendor: brokenVendor, times: Number.MAX_SAFE_INTEGER })
  }

  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
  const receiver = await startReceiver(webhookSecret)

  // The host's event for each request. Callers see the cost of JSON responses and chat streams.
  const charges = /** @type {import('./mailbox.mjs').Mailbox<bigint>} */ (createMailbox('word of the charge'))
  const list = JSON.parse(await readFile(new URL('../prices.json', import.meta.url), 'utf8'))
  const apiKey = createApiKey()
  const gateway = createGateway({
    vendors,
    models: ADDED_MODELS,
    prices: { ...list, prices: [...list.prices, ...ADDED_PRICES] },
    keys: [{ key: apiKey, account: ACCOUNT }],
    webhookSecret,
    batches: {},
    taskPollIntervalMs: 100,
    // Receiver and stand-ins are on this machine. Never allow it if you do not trust the callers.
    allowPrivateUrls: true,
    onEvent: (event) => {
      if (event.type === 'request-ended') charges.put(event.requestId, event.costNanoDollars)
    },
  })
  await gateway.accounts.credit(ACCOUNT, CREDIT_DOLLARS, { creditId: 'welcome' })
  const handler = gatewayWithMcp(gateway)
  const server = createServer(nodeHandler(handler))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())

  const baseURL = `http://127.0.0.1:${port}/v1`
  // The client retries temporary failures by default. This demo shows each failure at once.
  const clientOf = (/** @type {string} */ key) =>
    createClient({ baseURL, apiKey: key, timeoutMs: 10_000, maxRetries: 0 })

  return {
    client: clientOf(apiKey),
    /** A client with another key. */
    clientOf,
    /** The account of the client, and its key. */
    account: ACCOUNT,
    apiKey,
    mcpURL: `http://127.0.0.1:${port}/mcp`,
    /** Parts that only the host has: the management API, and the stand-ins with their received calls. */
    gateway,
    sandbox,
    webhookUrl: receiver.url,
    /** The verified message about a video. */
    messageAbout: receiver.messageAbout,
    /** The cost of a finished request in nano-dollars, as the host's event reports it. */
    chargeOf: charges.take,
    /** For the progress bar; vendors do not report how long a video takes. */
    expectedVideoMs: VIDEO_MS.pending + VIDEO_MS.running,
    async close() {
      server.close()
      server.closeAllConnections()
      await handler.close()
      await gateway.close()
      await Promise.all([receiver.close(), sandbox.close()])
    },
  }
}

/**
 * The context of every part of the demo.
 * @typedef {Awaited<ReturnType<typeof startServers>> & {
 *   table: import('./table.mjs').Table,
 *   fileOf: (name: string) => string,
 *   save: (name: string, content: string | Uint8Array) => Promise<string>,
 * }} Demo
 */
