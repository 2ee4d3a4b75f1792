import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChild } from '../child-process.mjs'
import { hostileAnswers } from '../hostile-answers.mjs'
import { hostileBatches, hostileRequests } from '../hostile-bodies.mjs'
import { CALLER_KEY } from '../hostile-models.mjs'

/** Request, and the answer of its vendor; without an answer the vendor rejects it. */
interface HostileCase {
  readonly name: string
  readonly path: string
  readonly model?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly answer?: { readonly type: string; readonly body: Buffer } | undefined
}

/** A gateway in its own process. */
interface Child {
  readonly ready: { readonly gateway: string; readonly baseline: string }
  ask(question: 'begin'): Promise<void>
  ask(question: 'end' | 'slowness'): Promise<number>
  stop(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly body: Buffer
}

/**
 * Longest time for which the gateway may keep the event loop beyond what the engine needs for the JSON itself, on the machine that the
 * bound was set on. The bound of a slower machine grows with the time of its fixed work.
 */
const MAX_BLOCKED_MS = 100

/** Length of a line whose JSON is read or written in one step. */
const LONG_LINE = 64 * 1024

const REJECTION = JSON.stringify({ error: { message: 'no', type: 'invalid_request_error' } })

let answer: HostileCase['answer']
let vendor: Server
/** Gateways without hooks and with them. Both get each case at the same time, which takes half as long as one after the other. */
let children: readonly (readonly [name: string, child: Child])[] = []

beforeAll(async () => {
  vendor = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(answer === undefined ? 400 : 200, { 'content-type': answer?.type ?? 'application/json' })
      response.end(answer?.body ?? REJECTION)
    })
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  const { port } = vendor.address() as AddressInfo
  const start = (...options: string[]): Promise<Child> =>
    startChild(new URL('../hostile-gateway.mjs', import.meta.url), {
      arguments: [`http://127.0.0.1:${port}`, ...options],
      execArguments: ['--max-old-space-size=512'],
    })
  children = [
    ['without hooks', await start()],
    ['with hooks', await start('hooks')],
  ]
})
afterAll(async () => {
  await Promise.all(children.map(([, child]) => child.stop()))
  vendor.closeAllConnections()
  vendor.close()
})

test('keeps the event loop free for every endpoint whatever a caller sends', async () => {
  expect(await slowOf(hostileRequests() as Iterable<HostileCase>)).toEqual([])
}, 240_000)

test('keeps the event loop free for every translator whatever a vendor answers', async () => {
  expect(await slowOf(hostileAnswers() as Iterable<HostileCase>)).toEqual([])
}, 240_000)

test('keeps the event loop free while the lines of native and other batches are checked', async () => {
  const slow: string[] = []
  for (const upload of hostileBatches() as Iterable<HostileCase>) {
    for (const [kind, child] of children) {
      const fault = await measure(() => measureBatch(upload, child))
      if (fault !== undefined) slow.push(`${upload.name}, ${kind}: ${fault}`)
    }
  }
  expect(slow).toEqual([])
}, 240_000)

interface BatchObject {
  readonly id: string
  readonly status: string
  readonly error?: unknown
}

/** Uploads the lines and creates a batch of them. Resolves when they are checked; the batch is cancelled then. */
async function submitBatch(gateway: string, upload: HostileCase): Promise<BatchObject> {
  const call = async (path: string, method: string, body?: Buffer): Promise<BatchObject> => {
    const headers = { 'content-type': 'application/json' }
    const { body: answered } = await send(gateway, { path, method, headers, ...(body && { body }) })
    return JSON.parse(answered.toString()) as BatchObject
  }
  const { body } = await send(gateway, upload)
  const { id: input_file_id } = JSON.parse(body.toString()) as BatchObject
  const request = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  let batch = await call('/v1/batches', 'POST', Buffer.from(JSON.stringify(request)))
  while (batch.status === 'validating') batch = await call(`/v1/batches/${batch.id}`, 'GET')
  if (batch.status === 'in_progress') await call(`/v1/batches/${batch.id}/cancel`, 'POST', Buffer.from('{}'))
  return batch
}

/** Runs the cases and returns those for which the event loop was blocked, the gateway failed or `/livez` did not answer. */
async function slowOf(cases: Iterable<HostileCase>): Promise<string[]> {
  const slow: string[] = []
  const beganMs = performance.now()
  let count = 0
  for (const { name, path, model = '', headers, body, answer: given } of cases) {
    const one = { name, path, headers, body, answer: given && { type: given.type, body: given.body } }
    answer = one.answer
    count += 1
    const faults = await Promise.all(
      children.map(async ([kind, child]) => [kind, await measure(() => measureRequest(one, child))] as const),
    )
    for (const [kind, fault] of faults) {
      if (fault === undefined) continue
      slow.push(`${path} ${model} ${name}, ${kind}: ${fault}`)
      console.log(slow.at(-1))
    }
  }
  console.log(`${count} cases in ${Math.round((performance.now() - beganMs) / 1000)} s`)
  return slow
}

/** Returns the fault of a case. It is measured up to five times: other work of the machine only adds to a figure. */
async function measure(attemptOnce: () => Promise<string | undefined>): Promise<string | undefined> {
  let fault: string | undefined
  for (let attempt = 0; attempt < 5; attempt += 1) {
    fault = await attemptOnce()
    if (fault === undefined) return undefined
  }
  return fault
}

async function measureBatch(upload: HostileCase, child: Child): Promise<string | undefined> {
  await child.ask('begin')
  const { error } = await submitBatch(child.ready.gateway, upload)
  const blockedMs = await child.ask('end')
  if (error !== undefined) return JSON.stringify(error)
  if (blockedMs <= MAX_BLOCKED_MS) return undefined
  const maxMs = await maxBlockedMs()
  return blockedMs <= maxMs ? undefined : `blocked for ${Math.round(blockedMs)} ms; at most ${Math.round(maxMs)} ms`
}

async function measureRequest(one: HostileCase, child: Child): Promise<string | undefined> {
  const { gateway, baseline } = child.ready
  await child.ask('begin')
  const answered = send(gateway, one)
  const alive = send(gateway, { method: 'GET', path: '/livez' })
  const [{ status, body }, { status: livez }] = await Promise.all([answered, alive])
  const blockedMs = await child.ask('end')
  if (livez !== 200) return `/livez answered ${livez}`
  // A request gets 503 if a text is too long for a hook.
  if (status === 500) return `${status} ${body.toString('utf8', 0, 200)}`
  if (blockedMs <= MAX_BLOCKED_MS) return undefined
  // Hooks may reject an answer that was generated for them; the other gateway sends it.
  const [[, plain]] = children as [(typeof children)[number]]
  const written = child === plain ? body : (await send(plain.ready.gateway, one)).body
  let jsonMs = 0
  for (const json of [
    ...jsonIn(one.answer ?? { type: '', body: one.body }),
    ...jsonIn({ type: EVENTS, body: written }),
  ])
    jsonMs += Number((await send(baseline, { path: '/', body: json })).body.toString())
  const maxMs = await maxBlockedMs()
  if (blockedMs - jsonMs <= maxMs) return undefined
  return `${status}, blocked for ${Math.round(blockedMs)} ms, of which its JSON takes ${Math.round(jsonMs)} ms; at most ${Math.round(maxMs)} ms`
}

/** Returns the current bound of this machine. Both gateways do the fixed work at the same time, like each case. */
async function maxBlockedMs(): Promise<number> {
  const slownesses = await Promise.all(children.map(([, child]) => child.ask('slowness')))
  return MAX_BLOCKED_MS * Math.min(...slownesses)
}

const EVENTS = 'text/event-stream'

/** Returns the JSON that is read or written in one step: a whole body, or long events. */
function jsonIn({ type, body }: { readonly type: string; readonly body: Buffer }): Buffer[] {
  if (type !== EVENTS) return [body]
  const lines: Buffer[] = []
  for (let start = 0, end = 0; start < body.length; start = end + 1) {
    end = body.indexOf('\n', start)
    if (end === -1) end = body.length
    if (end - start >= LONG_LINE) lines.push(body.subarray(body[start] === 0x7b ? start : start + 'data: '.length, end))
  }
  return lines
}

interface Sent {
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
}

function send(origin: string, { path, method = 'POST', headers = {}, body }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const caller = httpRequest(`${origin}${path}`, {
      method,
      headers: { ...headers, authorization: `Bearer ${CALLER_KEY}` },
    })
    caller.on('error', reject)
    caller.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }))
    })
    caller.end(body)
  })
}
