// @ts-check
/*
 * Speech in both formats, written to a folder while it arrives.
 *
 *   npm run build && node examples/speech.mjs
 *
 * The folder is `sounds`; SOUNDS sets another one.
 *
 * With DASHSCOPE_API_KEY set it calls the vendor. Without it, an offline stand-in plays a tone for each character, so it
 * runs without an account.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createApiKey, createGateway, dashscope } from 'signalbox'
import { nodeHandler } from 'signalbox/node'
import { sandboxVendors } from 'signalbox/testing'

const { env } = process
const folder = env.SOUNDS ?? 'sounds'
const sandbox = env.DASHSCOPE_API_KEY ? undefined : sandboxVendors()
const apiKey = createApiKey()
const gateway = createGateway({
  vendors: [dashscope({ apiKey: env.DASHSCOPE_API_KEY ?? 'stand-in' })],
  keys: [{ key: apiKey, account: 'customer-1' }],
  billing: 'off',
  ...(sandbox ? { transport: sandbox.transport() } : {}),
})
const server = createServer(nodeHandler(gateway))
await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())

/**
 * Requests speech and writes it to a file while it arrives.
 * @param {string} name of the file
 * @param {object} body
 */
async function speak(name, body) {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/audio/speech`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok || answer.body === null) throw new Error(`${answer.status}: ${await answer.text()}`)
  const path = join(folder, name)
  await writeFile(path, answer.body)
  console.log(`${path}  ${answer.headers.get('content-type')}`)
}

await mkdir(folder, { recursive: true })
await speak('doors.mp3', { model: 'qw3-tts-flash', input: 'Doors close in five minutes.', voice: 'Ethan' })
await speak('doors.wav', {
  model: 'qw3-tts-instruct-flash',
  input: 'Doors close in five minutes.',
  instructions: 'calm, slow, slightly formal',
})

server.close()
await gateway.close()
await sandbox?.close()
