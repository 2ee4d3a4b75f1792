// @ts-check
/*
 * A receiver of webhooks: verifies each message with the package standardwebhooks, and handles it once.
 *
 *   npm install standardwebhooks
 *   WEBHOOK_SECRET=whsec_… node examples/webhook-receiver.mjs
 *
 * Without WEBHOOK_SECRET it makes one and prints it. Start the gateway with the same value in SIGNALBOX_WEBHOOK_SECRET. This
 * receiver is on your own machine, so also set SIGNALBOX_ALLOW_PRIVATE_URLS=1.
 */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

const { env } = process
const secret = env.WEBHOOK_SECRET ?? `whsec_${randomBytes(32).toString('base64')}`
const webhook = new Webhook(secret)

const MAX_BODY_BYTES = 1024 * 1024

// Ids of handled messages. In production keep them in your database, for at least three days.
const handled = new Set()

/**
 * The body as sent: the signature covers these exact bytes, which parsing and writing again would change.
 * @param {import('node:http').IncomingMessage} request
 */
async function readBody(request) {
  /** @type {Buffer[]} */
  const chunks = []
  let byteLength = 0
  for await (const chunk of request) {
    byteLength += chunk.length
    if (byteLength > MAX_BODY_BYTES) throw new Error('the message is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const server = createServer(async (request, response) => {
  try {
    const body = await readBody(request)
    const headers = /** @type {Record<string, string>} */ (request.headers)
    const message = /** @type {{ type: string, data: { id: string } }} */ (webhook.verify(body, headers))
    // Answer first: the gateway waits for 15 seconds only, and then sends the message again.
    response.writeHead(204).end()
    const id = headers['webhook-id']
    if (handled.has(id)) return
    handled.add(id)
    console.log(`${message.type} ${message.data.id}`)
  } catch (error) {
    response.writeHead(error instanceof WebhookVerificationError ? 401 : 400, { connection: 'close' }).end()
  }
})

server.listen(Number(env.PORT ?? 3001), '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(`url     http://127.0.0.1:${port}/`)
  console.log(`secret  ${env.WEBHOOK_SECRET === undefined ? secret : '(from WEBHOOK_SECRET)'}`)
})

for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => server.close())
