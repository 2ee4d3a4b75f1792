import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createApiKey } from 'signalbox'
import { sandboxVendors } from 'signalbox/testing'
import { Webhook } from 'standardwebhooks'

const ACCOUNTS = 4
const CREDIT_DOLLARS = '1000000'
/** A heap that grows without end meets this wall before the hour is over. */
const HEAP_LIMIT_MIB = 256

/** Starts stand-ins, a receiver of webhooks, and a gateway in a process of its own. */
export async function startServers() {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-soak-'))
  const sandbox = sandboxVendors({ videoPendingMs: 500, videoRunningMs: 2_000, maxRequests: 10 })
  const { origin: vendorOrigin } = await sandbox.listen()
  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
  const receiver = await startReceiver(webhookSecret)
  const accounts = Array.from({ length: ACCOUNTS }, (_none, index) => ({ id: `acct_${index}`, key: createApiKey() }))
  const settings = {
    vendorOrigin,
    databasePath: join(folder, 'soak.db'),
    accounts,
    credit: CREDIT_DOLLARS,
    webhookSecret,
  }
  const child = spawn(
    process.execPath,
    [
      '--expose-gc',
      `--max-old-space-size=${HEAP_LIMIT_MIB}`,
      fileURLToPath(new URL('./gateway.mjs', import.meta.url)),
      JSON.stringify(settings),
    ],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' },
  )
  const exited = once(child, 'exit').then(([code, signal]) => ({ fault: `the gateway ended with ${code ?? signal}` }))
  const answer = async () => {
    const words = await Promise.race([once(child, 'message').then(([message]) => message), exited])
    if (words.fault !== undefined) throw new Error(words.fault)
    return words.answer
  }
  const { origin } = await answer()
  return {
    origin,
    sandbox,
    receiver,
    apiKeys: accounts.map(({ key }) => key),
    /** Asks the gateway's process, one question at a time. */
    async ask(question) {
      const answered = answer()
      child.send(question)
      return await answered
    },
    async close() {
      child.kill('SIGKILL')
      await exited
      await Promise.all([sandbox.close(), receiver.close()])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Counts the signed messages about each video. */
async function startReceiver(secret) {
  const webhook = new Webhook(secret)
  const messages = new Map()
  let refused = 0
  const server = createServer(async (request, response) => {
    try {
      const { data } = webhook.verify(await text(request), request.headers)
      messages.set(data.id, [...(messages.get(data.id) ?? []), data.status])
      response.writeHead(204).end()
    } catch {
      refused += 1
      response.writeHead(401).end()
    }
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/hooks`,
    /** Reported states by task id. */
    messages,
    get refused() {
      return refused
    },
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}
