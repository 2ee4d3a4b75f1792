// @ts-check
/*
 * Calls every endpoint of the gateway with the typed client, simulates a failing vendor, reaches a limit and the end of a balance,
 * refunds a charge, and calls a tool through MCP. Needs neither network nor account.
 *
 *   npm run demo
 *
 * It starts stand-ins for the vendors, a gateway that bills by examples/prices.json, and a receiver of webhooks. Each row of
 * its table is a call whose answer was checked; the line above a group of rows says what they prove. Images, audio, videos and vectors are
 * written to `demo-output`, or to the folder in DEMO_OUTPUT. It exits with status 0 if every row is ok, and with status 1 otherwise.
 *
 * To see it fail: DEMO_BROKEN_VENDOR=voyage npm run demo
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { showAccount } from './demo/account.mjs'
import { showBatches } from './demo/batches.mjs'
import { showChats } from './demo/chats.mjs'
import { showCompletions } from './demo/completions.mjs'
import { showEmbeddings } from './demo/embeddings.mjs'
import { showPictures } from './demo/images.mjs'
import { showMessages } from './demo/messages.mjs'
import { showModerations } from './demo/moderations.mjs'
import { showOperations } from './demo/operations.mjs'
import { showRerank } from './demo/rerank.mjs'
import { showResponses } from './demo/responses.mjs'
import { showSpeech } from './demo/speech.mjs'
import { startServers } from './demo/start-servers.mjs'
import { createTable } from './demo/table.mjs'
import { showTranscriptions } from './demo/transcriptions.mjs'
import { showVideos } from './demo/videos.mjs'

const startedAtMs = performance.now()
const folder = process.env.DEMO_OUTPUT ?? 'demo-output'
await mkdir(folder, { recursive: true })
const servers = await startServers({ brokenVendor: process.env.DEMO_BROKEN_VENDOR })
const { client } = servers

try {
  const table = await createTable(client, console.log)
  const demo = {
    ...servers,
    table,
    fileOf: (/** @type {string} */ name) => join(folder, name),
    save: async (/** @type {string} */ name, /** @type {string | Uint8Array} */ content) => {
      await writeFile(join(folder, name), content)
      return `${join(folder, name)}, ${Buffer.byteLength(content)} bytes`
    },
  }
  await showChats(demo)
  await showMessages(demo)
  await showResponses(demo)
  await showCompletions(demo)
  await showEmbeddings(demo)
  await showModerations(demo)
  await showRerank(demo)
  await showBatches(demo)
  await showPictures(demo)
  await showSpeech(demo)
  await showTranscriptions(demo)
  await showVideos(demo)
  await showOperations(demo)
  await showAccount(demo)

  const failed = table.rows.filter((row) => !row.isOk).length
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  const outcome = failed === 0 ? 'all ok' : `${failed} FAILED`
  console.log(`\n${table.rows.length} rows, ${outcome}, in ${seconds} s; the files are in ${folder}`)
  if (failed > 0) process.exitCode = 1
} finally {
  await servers.close()
}
