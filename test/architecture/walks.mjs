// How far one must read: sizes of the files of src, and for three requests the files whose functions run, and how often the next
// function to be entered is in another file than the one before (a hop).
//
//  node test/architecture/walks.mjs [root of a checkout]
//
// Every function of src notes its file when it is entered. A request is sent once to warm up, then once to be measured: from
// `gateway.fetch` until its answer has been read and its end was reported. The vendor is a transport of this script.
import { EventEmitter, once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import ts from 'typescript'

const root = resolve(process.argv[2] ?? join(import.meta.dirname, '../..'))
const src = join(root, 'src')
const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
const texts = new Map(paths.map((path) => [path, readFileSync(join(src, path), 'utf8')]))

const importers = new Map(paths.map((path) => [path, new Set()]))
for (const [path, text] of texts) {
  for (const { fileName } of ts.preProcessFile(text).importedFiles)
    if (fileName.startsWith('.')) importers.get(posix.join(dirname(path), fileName))?.add(path)
}
const lines = [...texts.values()].map((text) => text.split('\n').length - 1).sort((left, right) => left - right)
const allLines = lines.reduce((sum, count) => sum + count, 0)
console.table({
  'files of src': paths.length,
  lines: allLines,
  'median of lines': lines[lines.length >> 1],
  'nine of ten have at most': lines[Math.ceil(lines.length * 0.9) - 1],
  'files with one importer': [...importers.values()].filter(({ size }) => size === 1).length,
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
const hello = { messages: [{ role: 'user', content: 'Good morning!' }], max_tokens: 50 }
const limits = { maxOutputTokens: 2000 }
const chatModel = { id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', limits }
const WALKS = {
  'a small chat, whole': { body: { model: 'chat-relayed', ...hello }, answer: [JSON.stringify(completion)] },
  'a Claude stream on SQLite': {
    body: { model: 'cl-sonnet-4-6', stream: true, ...hello },
    type: 'text/event-stream',
    answer: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
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
}

async function walk({ path = '/v1/chat/completions', body, type = 'application/json', answer, store }) {
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
  const onEvent = ({ type: told }) => /^(request-ended|task-submitted)$/.test(told) && ends.emit('end')
  const vendors = [openai, anthropic, dashscope].map((vendor) => vendor({ apiKey: 'vendor-key' }))
  const keys = [{ key: 'sk-walk-0123456789', account: 'walker' }]
  const gateway = createGateway({ vendors, transport, models: [chatModel], prices: testPrices, keys, onEvent, store })
  await gateway.start()
  await gateway.accounts.credit('walker', '100')
  const headers = { authorization: 'Bearer sk-walk-0123456789', 'content-type': 'application/json' }
  const send = async () => {
    const end = once(ends, 'end')
    const request = new Request(`http://gateway.test${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const response = await gateway.fetch(request)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    await end
  }
  await send()
  entered = []
  await send()
  const hops = entered.filter((file, index) => index > 0 && file !== entered[index - 1])
  const result = { files: new Set(entered).size, hops: hops.length }
  entered = undefined
  await gateway.close({ drainMs: 0 })
  return result
}

const measured = {}
for (const [name, request] of Object.entries(WALKS)) measured[name] = await walk(request)
console.table(measured)
