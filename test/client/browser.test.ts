import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { build } from 'esbuild'
import { afterEach, expect, test } from 'vitest'
import { nodeHandler } from '../../src/adapters/node.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const paths = (process.env['PATH'] ?? '').split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)))
const browser = paths.find((path) => existsSync(path))

/** Script of the page. It is bundled with the client and runs in the browser. */
const PAGE = `
import { chat, embedding, imageEdit, video } from './src/client/builders/index.ts'
import { createClient } from './src/client/index.ts'

const client = createClient({ baseURL: location.origin + '/v1', apiKey: '${TEST_KEY}' })
async function run() {
  let streamed = ''
  for await (const chunk of await client.chat.completions.create(chat('cl-sonnet-4-6').user('hello').stream().build())) {
    streamed += chunk.choices[0]?.delta.content ?? ''
  }
  const vectors = await client.embeddings.create(embedding('vy-4').input('a').dimensions(256).base64().build())
  const canvas = new OffscreenCanvas(64, 64)
  canvas.getContext('2d').fillRect(0, 0, 64, 64)
  const picture = await canvas.convertToBlob({ type: 'image/png' })
  const edit = await client.images.edit(imageEdit('gp-image-1').prompt('a sail').image(picture).size('1024x1024').quality('low').build())
  const path = await client.images.edit({ model: 'gp-image-1', prompt: 'a', image: { path: '/etc/hosts' } }).catch((error) => error)
  const missing = await client.videos.get('task_none').catch((error) => error)
  return {
    streamed,
    floats: vectors.data[0].embedding.length,
    pictures: edit.data.length,
    path: path.message,
    missing: [missing.code, missing.status, typeof missing.requestId],
    body: video('wv2.6-t2v').prompt('a boat').build().parameters.size,
  }
}
const result = await run().catch((error) => ({ failed: String(error?.stack ?? error) }))
await fetch('/result', { method: 'POST', body: JSON.stringify(result) })
`

/** A page of another origin than the gateway's: it calls one that lists its origin, and one that does not. */
const FOREIGN_PAGE = `
import { chat } from './src/client/builders/index.ts'
import { createClient } from './src/client/index.ts'

const [open, closed] = new URL(location.href).searchParams.getAll('gateway')
const client = createClient({ baseURL: open + '/v1', apiKey: '${TEST_KEY}', maxRetries: 0 })
const hello = chat('cl-sonnet-4-6').user('hello').build()
async function run() {
  let streamed = ''
  for await (const chunk of await client.chat.completions.create({ ...hello, stream: true })) {
    streamed += chunk.choices[0]?.delta.content ?? ''
  }
  const missing = await client.videos.get('task_none').catch((error) => error)
  const whole = await fetch(open + '/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: 'Bearer ${TEST_KEY}', 'content-type': 'application/json', 'x-stainless-os': 'Linux' },
    body: JSON.stringify(hello),
  })
  const unread = await createClient({ baseURL: closed + '/v1', apiKey: '${TEST_KEY}', maxRetries: 0 }).chat.completions
    .create(hello)
    .catch((error) => error)
  return {
    streamed,
    missing: [missing.status, typeof missing.requestId],
    exposed: [whole.headers.get('x-request-id') !== null, whole.headers.get('x-signalbox-vendor')],
    unread: [unread.code, unread.requestId ?? null],
  }
}
const result = await run().catch((error) => ({ failed: String(error?.stack ?? error) }))
await fetch('/result', { method: 'POST', body: JSON.stringify(result) })
`

let started: StartedGateway | undefined
const servers: Server[] = []
let page: ChildProcess | undefined
let profile: string | undefined

afterEach(async () => {
  if (page !== undefined && page.exitCode === null) {
    const exited = new Promise((resolve) => page?.once('exit', resolve))
    // With its helpers, which would write to its profile for a moment longer.
    process.kill(-page.pid!, 'SIGKILL')
    await exited
  }
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  await started?.close()
  if (profile !== undefined) rmSync(profile, { recursive: true, force: true, maxRetries: 20 })
})

/** Serves a page, its script and, when there is one, the gateway from one origin. */
async function serve(script: string, gateway?: StartedGateway): Promise<{ origin: string; result: Promise<unknown> }> {
  const answer = gateway === undefined ? undefined : nodeHandler(gateway.gateway)
  const { promise: result, resolve } = withResolvers<unknown>()
  const origin = await listen((request, response) => {
    if (answer !== undefined && request.url?.startsWith('/v1/') === true) return answer(request, response)
    if (request.url === '/script.js') return response.setHeader('content-type', 'text/javascript').end(script)
    if (request.url !== '/result') {
      return response.setHeader('content-type', 'text/html').end('<script type="module" src="/script.js"></script>')
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      response.end()
      resolve(JSON.parse(Buffer.concat(chunks).toString()))
    })
  })
  return { origin, result }
}

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function bundled(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: '.', loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
  })
  return outputFiles[0]!.text
}

function openPage(url: string): void {
  profile = mkdtempSync(join(tmpdir(), 'browser-'))
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', `--user-data-dir=${profile}`]
  page = spawn(browser!, [...flags, url], { stdio: 'ignore', detached: true })
}

function withResolvers<Value>() {
  let resolve!: (value: Value) => void
  const promise = new Promise<Value>((fulfil) => {
    resolve = fulfil
  })
  return { promise, resolve }
}

// Without Chromium on the machine there is nothing to run it in.
test.skipIf(browser === undefined)('the client and its builders work in a browser', { timeout: 60_000 }, async () => {
  started = await startGateway()
  const { origin, result } = await serve(await bundled(PAGE), started)
  openPage(origin)

  expect(await result).toEqual({
    streamed: 'You said: hello',
    floats: 256,
    pictures: 1,
    path: 'image: a path can be read in Node only',
    missing: ['task_not_found', 404, 'string'],
    body: '1280*720',
  })
})

test.skipIf(browser === undefined)(
  'the client works on a page of another origin that cors lists',
  { timeout: 60_000 },
  async () => {
    started = await startGateway()
    const { origin, result } = await serve(await bundled(FOREIGN_PAGE))
    const open = await listen(nodeHandler(started.gateway, { cors: { origins: [origin] } }))
    const closed = await listen(nodeHandler(started.gateway, { cors: { origins: ['https://app.example'] } }))
    openPage(
      `${origin}/?${new URLSearchParams([
        ['gateway', open],
        ['gateway', closed],
      ])}`,
    )

    expect(await result).toEqual({
      streamed: 'You said: hello',
      missing: [404, 'string'],
      exposed: [true, 'anthropic'],
      unread: ['upstream_unavailable', null],
    })
  },
)
