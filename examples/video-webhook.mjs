// @ts-check
/*
 * Submits a video and receives a webhook when it has ended: gateway and receiver in one process.
 *
 *   npm install standardwebhooks
 *   npm run build && node examples/video-webhook.mjs "a paper boat on a canal"
 *
 * Its vendor is an offline stand-in, so it runs without an account. In production the receiver is a separate program, like
 * examples/webhook-receiver.mjs, at an address that the gateway can reach.
 */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { createApiKey, createGateway, dashscope } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'
import { Webhook } from 'standardwebhooks'

const prompt = process.argv[2] ?? 'a paper boat on a canal'
const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
const webhook = new Webhook(webhookSecret)

/** @type {(message: { type: string, data: { id: string, content?: { video_url: string } } }) => void} */
let onMessage = () => undefined
const received = new Promise((resolve) => {
  onMessage = resolve
})
const receiver = createServer(async (request, response) => {
  try {
    const headers = /** @type {Record<string, string>} */ (request.headers)
    // Throws unless the gateway has signed exactly these bytes within the last five minutes.
    onMessage(/** @type {any} */ (webhook.verify(await text(request), headers)))
    response.writeHead(204).end()
  } catch {
    response.writeHead(401).end()
  }
})
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', () => resolve(undefined)))
const { port } = /** @type {import('node:net').AddressInfo} */ (receiver.address())

const sandbox = sandboxVendors({ videoPendingMs: 300, videoRunningMs: 700 })
const apiKey = createApiKey()
const gateway = createGateway({
  vendors: [dashscope({ apiKey: 'stand-in' })],
  transport: sandbox.transport(),
  keys: [{ key: apiKey, account: 'customer-1' }],
  billing: 'off',
  webhookSecret,
  taskPollIntervalMs: 200,
  // The receiver is on this machine. Never allow it if you do not trust the callers.
  allowPrivateUrls: true,
})
await gateway.start()

const answer = await gateway.fetch(
  new Request('http://gateway.example/v1/videos/generations', {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'wv2.7-t2v',
      input: { prompt },
      webhook_url: `http://127.0.0.1:${port}/hooks/videos`,
    }),
  }),
)
if (answer.status !== 202) throw new Error(`${answer.status}: ${await answer.text()}`)
const { id } = await answer.json()
console.log(`task     ${id}`)

const { type, data } = /** @type {any} */ (await received)
console.log(`message  ${type} ${data.id}`)
console.log(`video    ${data.content?.video_url ?? '(none)'}`)

await gateway.close()
await sandbox.close()
receiver.close()
receiver.closeAllConnections()
