import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChild } from '../child-process.mjs'
import { CALLER_KEY, hostileAnswers, hostileRequests } from '../hostile-bodies.mjs'

/** A request, and what its vendor answers; without an answer the vendor rejects it. */
interface HostileCase {
  readonly name: string
  readonly path: string
  readonly model?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly answer?: { readonly type: string; readonly body: Buffer } | undefined
}

interface Child {
  readonly ready: { readonly plain: string; readonly hooked: string; readonly baseline: string }
  ask(question: 'begin'): Promise<void>
  ask(question: 'end'): Promise<number>
  stop(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly text: string
}

/** Longest time for which the gateway may keep the event loop beyond what the engine needs for the JSON itself. */
const MAX_BLOCKED_MS = 100

const REJECTION = JSON.stringify({ error: { message: 'no', type: 'invalid_request_error' } })

let answer: HostileCase['answer']
let vendor: Server
let child: Child

beforeAll(async () => {
  vendor = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(answer === undefined ? 400 : 200, { 'content-type': answer?.type ?? 'application/json' })
      response.end(answer?.body ?? REJECTION)
    })
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  const { port } = vendor.address() as AddressInfo
  child = await startChild(new URL('../hostile-gateway.mjs', import.meta.url), {
    arguments: [`http://127.0.0.1:${port}`],
    execArguments: ['--max-old-space-size=512'],
  })
})
afterAll(async () => {
  await child.stop()
  vendor.closeAllConnections()
  vendor.close()
})

test('keeps the event loop free for every endpoint whatever a caller sends', async () => {
  expect(await slowOf(hostileRequests() as Iterable<HostileCase>, () => ['plain'])).toEqual([])
}, 120_000)

test('keeps the event loop free for every translator whatever a vendor answers', async () => {
  expect(
    await slowOf(hostileAnswers() as Iterable<HostileCase>, ({ path }) =>
      path.includes('chat') ? ['plain', 'hooked'] : ['plain'],
    ),
  ).toEqual([])
}, 120_000)

/** Runs the cases and returns those for which the event loop was blocked, the gateway failed or `/livez` did not answer. */
async function slowOf(
  cases: Iterable<HostileCase>,
  gatewaysOf: (one: HostileCase) => readonly ('plain' | 'hooked')[],
): Promise<string[]> {
  const slow: string[] = []
  const beganMs = performance.now()
  let count = 0
  for (const lazy of cases) {
    const one = { ...lazy, answer: lazy.answer && { ...lazy.answer } }
    answer = one.answer
    for (const gateway of gatewaysOf(one)) {
      count += 1
      const measured = await measure(one, child.ready[gateway])
      if (measured !== undefined) slow.push(`${one.path} ${one.model ?? ''} ${one.name} (${gateway}): ${measured}`)
    }
  }
  console.log(`${count} cases in ${Math.round((performance.now() - beganMs) / 1000)} s`)
  return slow
}

/** What is wrong with a case. Measured up to three times: what else the machine does only adds to a figure. */
async function measure(one: HostileCase, origin: string): Promise<string | undefined> {
  let fault: string | undefined
  for (let attempt = 0; attempt < 3; attempt += 1) {
    fault = await measureOnce(one, origin)
    if (fault === undefined) return undefined
  }
  return fault
}

async function measureOnce(one: HostileCase, origin: string): Promise<string | undefined> {
  await child.ask('begin')
  const answered = send(origin, one)
  const alive = send(origin, { method: 'GET', path: '/livez' })
  const [{ status, text }, { status: livez }] = await Promise.all([answered, alive])
  const blockedMs = await child.ask('end')
  if (livez !== 200) return `/livez answered ${livez}`
  if (status >= 500 && one.answer === undefined) return `${status} ${text.slice(0, 200)}`
  if (blockedMs <= MAX_BLOCKED_MS) return undefined
  const jsonMs = Number((await send(child.ready.baseline, { path: '/', body: jsonOf(one) })).text)
  if (blockedMs - jsonMs <= MAX_BLOCKED_MS) return undefined
  return `blocked for ${Math.round(blockedMs)} ms, of which its JSON takes ${Math.round(jsonMs)} ms`
}

/** The JSON that must be parsed in one go: the body of the request, or the answer or its longest event. */
function jsonOf({ body, answer: given }: HostileCase): Buffer {
  if (given === undefined) return body
  if (given.type === 'application/json') return given.body
  const lines = given.body.toString('latin1').split('\n')
  const longest = lines.reduce((long, line) => (line.length > long.length ? line : long), '')
  return Buffer.from(longest.slice('data: '.length), 'latin1')
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
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('latin1') }),
      )
    })
    caller.end(body)
  })
}
