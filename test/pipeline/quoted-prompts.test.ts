import { afterEach, expect, test } from 'vitest'
import { fetchHandler } from '../../src/adapters/fetch.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import { withoutQuotes } from '../../src/pipeline/estimate.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Listening, listen } from '../support/listen.ts'

const PROMPT = 'The launch code of the north silo is 4711-ALPHA, and nobody may know it.'
const chat = (content: string) => ({ model: 'chat-model', messages: [{ role: 'user', content }] })

test.each([
  ['backend failed', 'backend failed'],
  [`backend failed on "${PROMPT}" at 12:00`, 'backend failed on "[redacted]." at 12:00'],
  ['backend failed on the LAUNCH code of the\\nNorth silo', 'backend failed on [redacted]'],
  ['half of it: north silo is 4711', 'half of it: [redacted]'],
  ['model chat-model is overloaded, role user', 'model chat-model is overloaded, role user'],
])('a text %j is shown as %j', (text, shown) => {
  expect(withoutQuotes(text, chat(PROMPT))).toBe(shown)
})

test('cuts out a short prompt, a prompt of few letters, and a text of a form', () => {
  expect(withoutQuotes("no answer to 'hunter2' today", chat(' hunter2\n'))).toBe("no answer to '[redacted]' today")
  expect(withoutQuotes('cannot translate 火星に行きたいと思う now', chat('火星に行きたいと思う'))).toBe(
    'cannot translate [redacted] now',
  )
  const form = { model: 'm', prompt: PROMPT, file: { bytes: new Uint8Array(9_000_000) } }
  expect(withoutQuotes(`bad hint ${PROMPT}`, form)).toBe('bad hint [redacted].')
})

test('leaves a text out if the request is too large to be searched', () => {
  const prompt = `${'x '.repeat(3_000_000)}${PROMPT}`

  expect(withoutQuotes(`failed on ${PROMPT}`, chat(prompt))).toBeUndefined()
  expect(withoutQuotes('failed', { input: Array.from({ length: 5_000_000 }, () => 1) })).toBeUndefined()
})

let vendor: Listening | undefined
let gateway: Gateway | undefined
afterEach(async () => {
  await gateway?.close()
  await vendor?.close()
  gateway = vendor = undefined
})

const HEADER_SECRET = 'Basic aGVhZGVyLXNlY3JldA=='
const QUERY_SECRET = 'query+secret/0123456789'

/** Starts a vendor that repeats the request, its headers and its query in an error, and collects what the operator reads. */
async function start(status: number, answerBefore = '') {
  vendor = await listen((request, response) => {
    let body = ''
    request.on('data', (piece) => {
      body += piece
    })
    request.on('end', () => {
      const { messages } = JSON.parse(body) as { messages: { content: string }[] }
      const message = `Failed: ${messages.at(-1)?.content} with ${request.headers['x-proxy-auth']} for ${request.url} ${QUERY_SECRET}`
      const error = JSON.stringify({ error: { message, type: 'server_error', code: 'broken' } })
      if (answerBefore === '') response.writeHead(status, { 'content-type': 'application/json' }).end(error)
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`${answerBefore}data: ${error}\n\n`)
    })
  })
  const told: unknown[] = []
  const log = (text: string, fields?: object) => void told.push([text, fields])
  gateway = createGateway({
    vendors: [
      openaiCompatible({
        ...{ id: 'own', baseURL: `${vendor.origin}/v1`, apiKey: 'own-key-0123456789' },
        models: [{ id: 'chat-model', kind: 'chat' }],
        headers: { 'x-proxy-auth': HEADER_SECRET },
        query: { token: QUERY_SECRET },
      }),
    ],
    billing: 'off',
    logger: { debug: log, info: log, warn: log, error: log },
    onEvent: (event: GatewayEvent) => void told.push(event),
  })
  return { told }
}

function expectSilence(told: readonly unknown[]): void {
  const text = JSON.stringify(told, (_name, value) => (typeof value === 'bigint' ? String(value) : value))
  for (const secret of ['launch', '4711', 'aGVhZGVyLXNlY3JldA', 'query+secret', encodeURIComponent(QUERY_SECRET)])
    expect(text).not.toContain(secret)
}

const post = async (body: object, path = '/v1/chat/completions') => {
  const handler = gateway!.exchangeAs({ accountId: 'acct', keyId: 'key', tier: 'paid' })
  const headers = { 'content-type': 'application/json' }
  const request = new Request(`http://gateway.example${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const response = await fetchHandler(handler)(request)
  return { status: response.status, text: await response.text().catch(() => '') }
}

test.each([
  [401, 'operator'],
  [500, 'unavailable'],
  [429, 'rate_limited'],
])('events and logs of a %d have neither the prompt nor headers and query', async (status, reason) => {
  const { told } = await start(status)
  await post(chat(PROMPT))

  const failed = told.find((entry) => (entry as { type?: string }).type === 'attempt-failed')
  expect(failed).toMatchObject({ reason, message: expect.stringMatching(/^Failed: \[redacted\]/) })
  expectSilence(told)
})

test('a caller reads the own prompt in an error, and no header or query of the operator', async () => {
  const { told } = await start(400)
  const { status, text } = await post(chat(PROMPT))

  expect(status).toBe(400)
  expect(text).toContain('launch code')
  expect(text).not.toMatch(/aGVhZGVyLXNlY3JldA|query\+secret/)
  expectSilence(told)
})

test('events and logs of a stream that fails have no text of the vendor once its request is released', async () => {
  const piece = {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { content: 'Hi' } }],
  }
  const { told } = await start(200, `data: ${JSON.stringify(piece)}\n\n`)
  await post({ ...chat(PROMPT), stream: true })

  const failed = told.find((entry) => (entry as { type?: string }).type === 'attempt-failed')
  expect(failed).toMatchObject({ code: 'broken' })
  expect((failed as { message?: string }).message).toBeUndefined()
  expectSilence(told)
})

test('events and logs of a background answer have no prompt', async () => {
  const { told } = await start(500)
  const { status } = await post({ model: 'chat-model', input: PROMPT, background: true }, '/v1/responses')
  while (!told.some((entry) => (entry as { type?: string }).type === 'task-ended'))
    await new Promise((resolve) => setImmediate(resolve))

  expect(status).toBe(200)
  expect(told.some((entry) => (entry as { type?: string }).type === 'attempt-failed')).toBe(true)
  expectSilence(told)
})
