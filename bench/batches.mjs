// Measures a large batch: a file of requests is sent, checked, run against a vendor in the same process, and its answers are read, all
// over a real socket, with a SQLite file as the store. Prints the time of each step, lines per second from the first byte sent to the
// last one read, and the highest resident memory of the process, which is also client and vendor.
//
//   node bench/batches.mjs [lines] [files|messages]
//
// `messages` sends the requests inline, in Anthropic's shape. The aim is at most 300 MiB for 50,000 lines.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { importBuilt } from './built.mjs'
import { answeringTransport, CALLER_KEY } from './in-process-rounds.mjs'
import { parseStatus } from './process-tree.mjs'

const [lineText = '50000', dialect = 'files'] = process.argv.slice(2)
const LINES = Number(lineText)
const MODEL = 'bench-chat'
const LIMITS = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 }
const PROMPT = 'Why is the sky blue during the day and red in the evening? '.repeat(15)
const ANSWER = 'Because short waves are scattered more than long ones. '.repeat(15)

const { createGateway, openai } = await importBuilt('index')
const { nodeHandler } = await importBuilt('node')
const { sqliteStore } = await importBuilt('sqlite')

const folder = mkdtempSync(join(tmpdir(), 'signalbox-batches-'))
const completion = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content: ANSWER }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 240, completion_tokens: 165, total_tokens: 405 },
}
const price = (meter, amount) => ({ model: MODEL, meter, amount, per: 1_000_000, when: { batch: 'true' } })
const gateway = createGateway({
  vendors: [openai({ apiKey: 'vendor-key' })],
  models: [{ id: MODEL, kind: 'chat', vendor: 'openai', upstream: MODEL, limits: { maxOutputTokens: 2_000 } }],
  prices: { currency: 'USD', prices: [price('input_token', '0.50'), price('output_token', '2.00')] },
  keys: [{ key: CALLER_KEY, account: 'bench' }],
  limits: LIMITS,
  batches: { native: false },
  transport: answeringTransport([Buffer.from(JSON.stringify(completion))]),
  store: sqliteStore({ path: join(folder, 'bench.db') }),
})
await gateway.start()
await gateway.accounts.credit('bench', '1000000')
const server = createServer(nodeHandler(gateway))
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address()

/** Sends a request whose body is generated while it is sent; passes on the answer in chunks. */
function send(method, path, { contentType, pieces = [], onData }) {
  const headers = { authorization: `Bearer ${CALLER_KEY}`, 'content-type': contentType ?? 'application/json' }
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ port, host: '127.0.0.1', method, path, headers }, (response) => {
      const chunks = []
      response.on('data', onData ?? ((chunk) => chunks.push(chunk)))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        if (response.statusCode === 200) resolve(onData === undefined ? JSON.parse(text) : undefined)
        else reject(new Error(`${response.statusCode}: ${text}`))
      })
    })
    sent.on('error', reject)
    void (async () => {
      for (const piece of pieces) if (!sent.write(piece)) await new Promise((drained) => sent.once('drain', drained))
      sent.end()
    })()
  })
}

const bodyOf = (number) => ({
  model: MODEL,
  max_tokens: 200,
  messages: [{ role: 'user', content: `${number}. ${PROMPT}` }],
})

function* formPieces() {
  const part = (head) => `--bound\r\ncontent-disposition: form-data; ${head}\r\n\r\n`
  yield `${part('name="purpose"')}batch\r\n${part('name="file"; filename="requests.jsonl"')}`
  for (let number = 0; number < LINES; number++) {
    const line = { custom_id: `r${number}`, method: 'POST', url: '/v1/chat/completions', body: bodyOf(number) }
    yield `${JSON.stringify(line)}\n`
  }
  yield '\r\n--bound--\r\n'
}

function* inlinePieces() {
  yield '{"requests":['
  for (let number = 0; number < LINES; number++)
    yield `${number === 0 ? '' : ','}${JSON.stringify({ custom_id: `r${number}`, params: bodyOf(number) })}`
  yield ']}'
}

const steps = []
async function step(name, work) {
  const startedAtMs = performance.now()
  const result = await work()
  steps.push(`${name} ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`)
  return result
}

const ways = {
  files: {
    path: '/v1/batches',
    async submit() {
      const contentType = 'multipart/form-data; boundary=bound'
      const { id } = await step('sending', () => send('POST', '/v1/files', { contentType, pieces: formPieces() }))
      const body = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
      return step('checking', () => send('POST', '/v1/batches', { pieces: [JSON.stringify(body)] }))
    },
    hasEnded: ({ status }) => !['validating', 'in_progress'].includes(status),
    answered: ({ request_counts: { completed } }) => completed,
    results: ({ output_file_id: id }) => `/v1/files/${id}/content`,
  },
  messages: {
    path: '/v1/messages/batches',
    submit: () => step('sending and checking', () => send('POST', '/v1/messages/batches', { pieces: inlinePieces() })),
    hasEnded: ({ processing_status: status }) => status === 'ended',
    answered: ({ request_counts: { succeeded } }) => succeeded,
    results: ({ id }) => `/v1/messages/batches/${id}/results`,
  },
}
const way = ways[dialect]
if (way === undefined || !(LINES >= 1)) throw new TypeError('node bench/batches.mjs [lines] [files|messages]')

try {
  const startedAtMs = performance.now()
  let batch = await way.submit()
  await step('running', async () => {
    while (!way.hasEnded(batch)) {
      await wait(100)
      batch = await send('GET', `${way.path}/${batch.id}`, {})
    }
  })
  let read = 0
  const onData = (chunk) => {
    for (const byte of chunk) if (byte === 10) read++
  }
  await step('reading', () => send('GET', way.results(batch), { onData }))
  const seconds = (performance.now() - startedAtMs) / 1_000
  if (way.answered(batch) !== LINES || read !== LINES)
    throw new Error(`${way.answered(batch)} answered and ${read} read of ${LINES}`)
  const peakMebibytes = Math.round(parseStatus(readFileSync('/proc/self/status', 'utf8')).peakBytes / 2 ** 20)
  console.log(`${dialect}: ${LINES} lines, ${steps.join(', ')}`)
  console.log(`${Math.round(LINES / seconds)} lines/s, peak RSS ${peakMebibytes} MiB`)
} finally {
  server.close()
  server.closeAllConnections()
  await gateway.close({ drainMs: 1_000 })
  rmSync(folder, { recursive: true, force: true })
}
