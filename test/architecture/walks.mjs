// How far one must read: sizes of the files of src, and for five requests the files whose functions run, and how often the next
// function to be entered is in another file than the one before (a hop).
//
//  node test/architecture/walks.mjs [--check] [root of a checkout]
//
// With --check, the script fails if a figure exceeds its bound in BOUNDS.
//
// Every function of src notes its file when it is entered. A request is sent once to warm up, then four times to be measured: from
// `gateway.fetch` until its answer has been read and its end was reported. The smallest figures count, because timers of background work
// may add to a request. The vendor is a transport of this script.
import { EventEmitter, once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import ts from 'typescript'

/**
 * Bounds of each figure, which `--check` enforces: the figure of the day when the bound was set, plus at most 1 %. Lower a bound with the
 * figure. A raised bound is a commit of its own that says why. Goals are where the figures should go.
 */
const BOUNDS = {
  lines: { bound: 130_600, goal: 116_000 },
  'files of src': { bound: 555, goal: 640 },
  'files with one importer': { bound: 115, goal: 100 },
  'a small chat, whole: files': { bound: 81, goal: 50 },
  'a small chat, whole: hops': { bound: 354, goal: 250 },
  'a Claude stream on SQLite: files': { bound: 92, goal: 60 },
  'a Claude stream on SQLite: hops': { bound: 573, goal: 380 },
  'Responses on Claude, streamed, on SQLite: files': { bound: 110, goal: 70 },
  'Responses on Claude, streamed, on SQLite: hops': { bound: 729, goal: 450 },
  'a video submission on SQLite: files': { bound: 78, goal: 50 },
  'a video submission on SQLite: hops': { bound: 329, goal: 230 },
  'a batch of two requests on SQLite: files': { bound: 109, goal: 80 },
  'a batch of two requests on SQLite: hops': { bound: 1_327, goal: 700 },
}

const { values: flags, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true })
const root = resolve(positionals[0] ?? join(import.meta.dirname, '../..'))
const src = join(root, 'src')
const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
const texts = new Map(paths.map((path) => [path, readFileSync(join(src, path), 'utf8')]))

const importers = new Map(paths.map((path) => [path, new Set()]))
for (const [path, text] of texts) {
  for (const { fileName } of ts.preProcessFile(text).importedFiles)
    if (fileName.startsWith('.')) importers.get(posix.join(dirname(path), fileName))?.add(path)
}
const lines = [...texts.values()].map((text) => text.split('\n').length - 1).sort((left, right) => left - right)
const allLines = lines.reduce((sum, count) => sum + count, 0)
const figures = {
  lines: allLines,
  'files of src': paths.length,
  'files with one importer': [...importers.values()].filter(({ size }) => size === 1).length,
}
console.table({
  'median of lines': lines[lines.length >> 1],
  'nine of ten have at most': lines[Math.ceil(lines.length * 0.9) - 1],
  'files per 1,000 lines': Number(((paths.length / allLines) * 1000).toFixed(1)),
})

let entered
globalThis.enterFile = (path) => {
  entered?.push(path)
}

/** A file with a note at the beginning of each of its functions. */
function noted({ path }) {
  const text = readFileSync(path, 'utf8')
  const note = `enterFile(${JSON.stringify(relative(src, path))})`
  const additions = []
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body !== undefined) {
      if (ts.isBlock(node.body)) additions.push([node.body.getStart() + 1, `${note};`])
      else additions.push([node.body.getStart(), `(${note}, `], [node.body.getEnd(), ')'])
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true))
  additions.sort(([left], [right]) => right - left)
  const contents = additions.reduce((all, [at, added]) => all.slice(0, at) + added + all.slice(at), text)
  return { contents, loader: 'ts' }
}

const outfile = join(root, 'node_modules/.cache/signalbox-walks/gateway.mjs')
await build({
  stdin: {
    contents: `export * from './src/index.ts'
      export { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'
      export { testPrices } from './test/support/test-prices.ts'`,
    resolveDir: root,
  },
  bundle: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
  outfile,
  plugins: [{ name: 'noting', setup: ({ onLoad }) => onLoad({ filter: /\/src\/.*\.ts$/ }, noted) }],
})
const { createGateway, anthropic, dashscope, openai, sqliteStore, testPrices } = await import(pathToFileURL(outfile))

const completion = {
  ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'gpt-5.4' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Good morning.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
}
const begun = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-6', content: [] }
const events = [
  { type: 'message_start', message: { ...begun, usage: { input_tokens: 9, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Good morning.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
  { type: 'message_stop' },
]
const claudeStream = {
  type: 'text/event-stream',
  answer: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
}
const hello = { messages: [{ role: 'user', content: 'Good morning!' }], max_tokens: 50 }
const limits = { maxOutputTokens: 2000 }
const chatModel = { id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', limits }
const batchPrices = ['input_token', 'output_token'].map((meter) => ({
  ...{ model: 'chat-relayed', meter, amount: '0.50', per: 1_000_000 },
  when: { batch: 'true' },
}))
const prices = { ...testPrices, prices: [...testPrices.prices, ...batchPrices] }

/** Stores the file of a batch and returns the body that submits it. */
async function twoRequests(post) {
  const body = { model: 'chat-relayed', ...hello }
  const requests = [1, 2].map((number) =>
    JSON.stringify({ custom_id: `${number}`, method: 'POST', url: '/v1/chat/completions', body }),
  )
  const form = new FormData()
  form.append('purpose', 'batch')
  form.append('file', new Blob([requests.join('\n')]), 'requests.jsonl')
  const file = await post('/v1/files', form)
  return { input_file_id: JSON.parse(file).id, endpoint: '/v1/chat/completions', completion_window: '24h' }
}

const WALKS = {
  'a small chat, whole': { body: { model: 'chat-relayed', ...hello }, answer: [JSON.stringify(completion)] },
  'a Claude stream on SQLite': {
    ...claudeStream,
    body: { model: 'cl-sonnet-4-6', stream: true, ...hello },
    store: sqliteStore({ path: ':memory:' }),
  },
  'Responses on Claude, streamed, on SQLite': {
    ...claudeStream,
    path: '/v1/responses',
    body: { model: 'cl-sonnet-4-6', stream: true, input: 'Good morning!', max_output_tokens: 50 },
    store: sqliteStore({ path: ':memory:' }),
  },
  'a video submission on SQLite': {
    path: '/v1/videos/generations',
    body: {
      ...{ model: 'wv2.7-t2v', duration: 5, resolution: '720p', parameters: { seed: 4711 } },
      input: { prompt: 'a boat in the fog', negative_prompt: 'people, rain' },
    },
    store: sqliteStore({ path: ':memory:' }),
    answer: ['{"output":{"task_status":"PENDING","task_id":"0385dc79-5ff8-4d82-bcb6-000000000001"},"request_id":"r"}'],
  },
  'a batch of two requests on SQLite': {
    path: '/v1/batches',
    bodyFrom: twoRequests,
    end: 'task-ended',
    store: sqliteStore({ path: ':memory:' }),
    batches: { native: false },
    answer: [JSON.stringify(completion)],
  },
}

const JSON_TYPE = 'application/json'

async function walk({ path = '/v1/chat/completions', body, bodyFrom, type = JSON_TYPE, answer, end, store, batches }) {
  const transport = {
    send(_request, handler) {
      setImmediate(() => handler.onHead(200, { 'content-type': type }))
      for (const piece of answer) setImmediate(() => handler.onData(Buffer.from(piece)))
      setImmediate(() => handler.onEnd())
      return { abort() {}, pause() {}, resume() {} }
    },
    close: async () => {},
  }
  const ends = new EventEmitter()
  const isEnd = (told) => (end === undefined ? /^(request-ended|task-submitted)$/.test(told) : told === end)
  const onEvent = (event) => isEnd(event.type) && ends.emit('end')
  const vendors = [openai, anthropic, dashscope].map((vendor) => vendor({ apiKey: 'vendor-key' }))
  const keys = [{ key: 'sk-walk-0123456789', account: 'walker' }]
  const gateway = createGateway({ vendors, transport, models: [chatModel], prices, keys, onEvent, store, batches })
  await gateway.start()
  await gateway.accounts.credit('walker', '100')
  const post = async (at, content) => {
    const isForm = content instanceof FormData
    const headers = { authorization: 'Bearer sk-walk-0123456789', ...(isForm ? {} : { 'content-type': JSON_TYPE }) }
    const sent = { method: 'POST', headers, body: isForm ? content : JSON.stringify(content) }
    const response = await gateway.fetch(new Request(`http://gateway.test${at}`, sent))
    const text = await response.text()
    if (!response.ok) throw new Error(`${at}: ${response.status} ${text}`)
    return text
  }
  const send = async () => {
    const content = body ?? (await bodyFrom(post))
    // Work that the calls before leave to the background would be counted.
    await setTimeout(100)
    const ended = once(ends, 'end')
    entered = []
    await post(path, content)
    await ended
  }
  await send()
  const result = { files: Infinity, hops: Infinity }
  for (let count = 0; count < 4; count++) {
    await send()
    const hops = entered.filter((file, index) => index > 0 && file !== entered[index - 1])
    result.files = Math.min(result.files, new Set(entered).size)
    result.hops = Math.min(result.hops, hops.length)
  }
  entered = undefined
  await gateway.close({ drainMs: 0 })
  return result
}

for (const [name, request] of Object.entries(WALKS)) {
  const { files, hops } = await walk(request)
  figures[`${name}: files`] = files
  figures[`${name}: hops`] = hops
}
console.table(Object.fromEntries(Object.entries(figures).map(([name, figure]) => [name, { figure, ...BOUNDS[name] }])))

if (flags.check) {
  const exceeded = Object.entries(figures).filter(([name, figure]) => !(figure <= BOUNDS[name]?.bound))
  for (const [name, figure] of exceeded) console.error(`${name}: ${figure}, ${BOUNDS[name]?.bound} are allowed`)
  if (exceeded.length > 0) process.exitCode = 1
}
