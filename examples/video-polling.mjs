// @ts-check
/*
 * Submits a video, polls it until it has ended, and downloads it.
 *
 *   npm run build && node examples/video-polling.mjs "a paper boat on a canal"
 *
 * It calls a gateway at GATEWAY_URL (http://127.0.0.1:8787/v1) with GATEWAY_KEY. Without them it starts one in this process,
 * whose vendor is an offline stand-in, so it runs without an account. VIDEO_FILE is the path of the output.
 */
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { createApiKey, createGateway, dashscope } from 'signalbox'
import { nodeHandler } from 'signalbox/node'
import { sandboxVendors } from 'signalbox/testing'

const { env } = process
const prompt = process.argv[2] ?? 'a paper boat on a canal'
const file = env.VIDEO_FILE ?? join(tmpdir(), 'video.mp4')
const local = env.GATEWAY_URL === undefined ? await localGateway() : undefined
const baseURL = local?.baseURL ?? env.GATEWAY_URL
const headers = { authorization: `Bearer ${local?.apiKey ?? env.GATEWAY_KEY}` }
const POLL_INTERVAL_MS = local === undefined ? 5_000 : 100

// The key makes a retry safe if no answer comes.
const submitted = await fetch(`${baseURL}/videos/generations`, {
  method: 'POST',
  headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
  body: JSON.stringify({ model: 'wv2.7-t2v', duration: 5, resolution: '720p', input: { prompt } }),
})
if (submitted.status !== 202) throw new Error(`${submitted.status}: ${await submitted.text()}`)
const { id } = await submitted.json()
console.log(`task     ${id}`)

const video = await endOf(id)
console.log(`status   ${video.status}`)
if (video.status === 'completed') {
  const content = await fetch(`${baseURL}/videos/generations/${id}/content`, { headers })
  if (!content.ok || content.body === null) throw new Error(`${content.status}: ${await content.text()}`)
  await pipeline(Readable.fromWeb(/** @type {any} */ (content.body)), createWriteStream(file))
  console.log(`video    ${file}`)
} else {
  console.log(`error    ${JSON.stringify(video.error)}`)
  process.exitCode = 1
}
await local?.close()

/**
 * Polls until the task has ended. Polling more often does not speed it up.
 * @param {string} taskId
 */
async function endOf(taskId) {
  let shown = ''
  for (;;) {
    const answer = await fetch(`${baseURL}/videos/generations/${taskId}`, { headers })
    // The gateway restarts, or a limit applies: the task is not affected.
    if (answer.status === 503 || answer.status === 429) {
      await wait(Number(answer.headers.get('retry-after') ?? 5) * 1000)
      continue
    }
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`)
    const task = await answer.json()
    if (['completed', 'failed', 'cancelled'].includes(task.status)) return task
    if (task.status !== shown) console.log(`status   ${task.status}`)
    shown = task.status
    await wait(POLL_INTERVAL_MS)
  }
}

/** A gateway with an offline vendor that renders in a second. */
async function localGateway() {
  const sandbox = sandboxVendors({ videoPendingMs: 300, videoRunningMs: 700 })
  const { origin } = await sandbox.listen()
  const apiKey = createApiKey()
  const gateway = createGateway({
    vendors: [dashscope({ apiKey: 'stand-in', baseURL: origin })],
    keys: [{ key: apiKey, account: 'customer-1' }],
    billing: 'off',
    taskPollIntervalMs: 200,
    // The stand-in's videos are on this machine. Never allow it if you do not trust the callers.
    allowPrivateUrls: true,
  })
  await gateway.start()
  const server = createServer(nodeHandler(gateway))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    baseURL: `http://127.0.0.1:${port}/v1`,
    apiKey,
    async close() {
      server.close()
      server.closeAllConnections()
      await gateway.close()
      await sandbox.close()
    },
  }
}
