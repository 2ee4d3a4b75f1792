// Runs in a project that has the packed package installed, on any Node: `node smoke.mjs`. Exits with 0 when all is well.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const API_KEY = 'sk-smoke'

const loaders = {
  import: (entry) => import(entry),
  require: async (entry) => require(entry),
}

for (const [kind, load] of Object.entries(loaders)) {
  await drive(await load('signalbox'), await load('signalbox/node'), await load('signalbox/testing'))
  console.log(`${kind} on Node ${process.versions.node}: chat, stream, embeddings answered`)
}

async function drive({ createGateway, anthropic, dashscope, gemini }, { nodeHandler }, { sandboxVendors }) {
  const sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  const vendor = { apiKey: 'vendor-key', baseURL: origin }
  const gateway = createGateway({
    vendors: [anthropic(vendor), dashscope(vendor), gemini(vendor)],
    keys: [{ key: API_KEY, account: 'smoke' }],
    billing: 'off',
  })
  await gateway.start()
  const server = createServer(nodeHandler(gateway))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${server.address().port}`
  try {
    await chat(base)
    await stream(base)
    await embeddings(base)
    await refusal(base)
  } finally {
    await gateway.close({ drainMs: 1000 })
    server.closeAllConnections()
    server.close()
    await sandbox.close()
  }
}

function post(url, body, key = API_KEY) {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  })
}

async function chat(base) {
  const messages = [{ role: 'user', content: 'smoke signal' }]
  const response = await post(`${base}/v1/chat/completions`, { model: 'gmn-2.5-flash', messages })
  const answer = await response.json()
  assert.equal(response.status, 200, JSON.stringify(answer))
  assert.equal(answer.object, 'chat.completion')
  assert.equal(answer.model, 'gmn-2.5-flash')
  assert.match(answer.choices[0].message.content, /smoke signal/)
  assert.ok(answer.usage.total_tokens > 0)
}

async function stream(base) {
  const messages = [{ role: 'user', content: 'smoke signal' }]
  const response = await post(`${base}/v1/chat/completions`, { model: 'cl-sonnet-4-6', messages, stream: true })
  const text = await response.text()
  assert.equal(response.status, 200, text)
  assert.match(response.headers.get('content-type'), /^text\/event-stream/)
  const events = text.split('\n\n').filter((event) => event.startsWith('data: '))
  assert.equal(events.pop(), 'data: [DONE]')
  const deltas = events.map((event) => JSON.parse(event.slice('data: '.length)).choices[0]?.delta.content ?? '')
  assert.match(deltas.join(''), /smoke signal/)
}

async function embeddings(base) {
  const response = await post(`${base}/v1/embeddings`, { model: 'text-embedding-v4', input: ['smoke', 'signal'] })
  const answer = await response.json()
  assert.equal(response.status, 200, JSON.stringify(answer))
  assert.deepEqual(
    answer.data.map((row) => [row.index, typeof row.embedding[0], row.embedding.length]),
    [
      [0, 'number', 1024],
      [1, 'number', 1024],
    ],
  )
}

async function refusal(base) {
  const response = await post(`${base}/v1/chat/completions`, { model: 'gmn-2.5-flash', messages: [] }, 'sk-wrong')
  assert.equal(response.status, 401)
  assert.equal((await response.json()).error.code, 'invalid_api_key')
}
