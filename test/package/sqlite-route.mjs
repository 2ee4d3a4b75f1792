// A route file that serves chats on a SQLite store, for hosts that bundle it.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGateway, gemini } from 'signalbox'
import { nextHandlers } from 'signalbox/fetch'
import { sqliteStore } from 'signalbox/sqlite'
import { sandboxVendors } from 'signalbox/testing'

const API_KEY = 'sk-route'

let handlers

async function start() {
  const { origin } = await sandboxVendors().listen()
  const gateway = createGateway({
    vendors: [gemini({ apiKey: 'vendor-key', baseURL: origin })],
    keys: [{ key: API_KEY, account: 'route' }],
    billing: 'off',
    store: sqliteStore({ path: join(mkdtempSync(join(tmpdir(), 'signalbox-route-')), 'store.db') }),
  })
  await gateway.start()
  return nextHandlers(gateway)
}

/** Answers a request, as Next calls it. */
export async function POST(request, context) {
  handlers ??= start()
  return (await handlers).POST(request, context)
}

/** Sends one chat, and returns the status of its answer. */
export async function statusOfChat(send = POST, origin = 'http://host.example') {
  const body = JSON.stringify({ model: 'gmn-2.5-flash', messages: [{ role: 'user', content: 'smoke signal' }] })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` }
  return (await send(new Request(`${origin}/v1/chat/completions`, { method: 'POST', headers, body }))).status
}
