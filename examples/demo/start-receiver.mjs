// @ts-check
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { createMailbox } from './mailbox.mjs'

/** @typedef {{ type: string, data: import('signalbox/client').VideoTask }} VideoMessage */

/**
 * Starts a receiver of webhooks, which stores the messages that are signed with the secret.
 * @param {string} secret `whsec_…`
 */
export async function startReceiver(secret) {
  const webhook = new Webhook(secret)
  const messages = /** @type {import('./mailbox.mjs').Mailbox<VideoMessage>} */ (createMailbox('signed webhook'))
  const server = createServer(async (request, response) => {
    try {
      const headers = /** @type {Record<string, string>} */ (request.headers)
      // Throws unless the gateway has signed exactly these bytes within the last five minutes.
      const message = /** @type {VideoMessage} */ (webhook.verify(await text(request), headers))
      response.writeHead(204).end()
      messages.put(message.data.id, message)
    } catch {
      response.writeHead(401).end()
    }
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    url: `http://127.0.0.1:${port}/hooks/videos`,
    messageAbout: messages.take,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
