import { createConnection } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream, json } from '../streams/answering-vendor.ts'
import { responsesVendor, sameQuestion, vendorEvents, vendorResponse } from './responses-vendor.ts'

const MODEL = 'cl-sonnet-4-6'
const perMillion = (meter: PriceRow['meter'], amount: string, model = MODEL): PriceRow => ({
  model,
  meter,
  amount,
  per: 1_000_000,
})
const PRICES = [
  perMillion('input_token', '3.01'),
  perMillion('cached_input_token', '0.31'),
  perMillion('cache_write_token', '3.77'),
  perMillion('output_token', '15.03'),
]

const USAGE = { input_tokens: 11, cache_creation_input_tokens: 13, cache_read_input_tokens: 17, output_tokens: 19 }
const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: null, stop_sequence: null }

/** The events of an answer of thinking, text and a call. */
const EVENTS = [
  { type: 'message_start', message: { ...MESSAGE, content: [], usage: USAGE } },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm, let me see' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'sig' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'I will ' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'look.' } },
  { type: 'content_block_stop', index: 1 },
  {
    type: 'content_block_start',
    index: 2,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
  },
  { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"at":"x"}' } },
  { type: 'content_block_stop', index: 2 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: USAGE },
  { type: 'message_stop' },
].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

const WHOLE = {
  ...MESSAGE,
  content: [
    { type: 'thinking', thinking: 'hm, let me see', signature: 'sig' },
    { type: 'text', text: 'I will look.' },
    { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'x' } },
  ],
  stop_reason: 'tool_use',
  usage: USAGE,
}

let vendor: AnsweringVendor
let started: StartedGateway
let hasUsage = true
/** How many events come, and whether the connection is then reset, or stays open. */
let cut: { readonly count: number; readonly how: 'reset' | 'open' } | undefined

beforeEach(async () => {
  hasUsage = true
  cut = undefined
  vendor = await answeringVendor((response, body) => {
    const without = (text: string): string => (hasUsage ? text : text.replaceAll(/,?"usage":\{[^}]*\}/g, ''))
    if (body['stream'] !== true) return json(response, JSON.parse(without(JSON.stringify(WHOLE))))
    eventStream(response)
    const events = EVENTS.slice(0, cut?.count).map(without)
    if (cut === undefined) return void response.end(events.join(''))
    response.write(events.join(''), () => {
      if (cut?.how === 'reset') response.socket?.resetAndDestroy()
    })
  })
  started = await startGateway({
    vendors: [anthropic({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })],
    prices: { currency: 'USD', prices: PRICES },
    disconnect: 'cancel',
  })
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

const REQUESTS = sameQuestion(MODEL)

async function charged(path: string, rest: object = {}, headers: Record<string, string> = {}): Promise<bigint> {
  const before = await started.account()
  const answer = await started.post(path, { ...REQUESTS[path], ...rest }, headers)
  await answer.text()
  if (answer.headers.get('idempotent-replayed') === null) await started.ended(answer)
  const after = await started.account()
  expect(after.held).toBe(0n)
  return before.balance - after.balance
}

test.each([false, true])('the same answer costs the same by all three paths (streamed: %s)', async (stream) => {
  const cost = 11n * 3_010n + 13n * 3_770n + 17n * 310n + 19n * 15_030n
  for (const path of Object.keys(REQUESTS)) expect(await charged(path, { stream }), path).toBe(cost)
})

test('whole and streamed answers have the same items', async () => {
  const whole = (await (await started.post('/v1/responses', REQUESTS['/v1/responses'])).json()) as { output: object[] }
  const streamed = await started.post('/v1/responses', { ...REQUESTS['/v1/responses'], stream: true })
  const response = checkGrammar(responseEvents(await streamed.text())) as { output: object[] }
  const withoutIds = (items: readonly object[]): object[] => items.map((item) => ({ ...item, id: '' }))
  expect(withoutIds(response.output)).toEqual(withoutIds(whole.output))
  expect(response.output).toMatchObject([{ type: 'reasoning' }, { type: 'message' }, { type: 'function_call' }])
})

test('state that comes back reaches the vendor as it was, by items and by the id of the answer', async () => {
  const request = REQUESTS['/v1/responses'] as { input: string }
  const seen: unknown[] = []
  await started.close()
  await vendor.close()
  vendor = await answeringVendor((response, body) => {
    seen.push(body['messages'])
    json(response, WHOLE)
  })
  started = await startGateway({ vendors: [anthropic({ apiKey: 'key', baseURL: vendor.origin })], billing: 'off' })
  const first = (await (await started.post('/v1/responses', request)).json()) as { id: string; output: object[] }
  const output = { type: 'function_call_output', call_id: 'toolu_1', output: 'done' }
  const input = [{ role: 'user', content: request.input }, ...first.output, output]
  await (await started.post('/v1/responses', { ...request, input, store: false })).text()
  await (await started.post('/v1/responses', { ...request, input: [output], previous_response_id: first.id })).text()
  expect(seen[1]).toEqual(seen[2])
  expect(seen[1]).toMatchObject([{ role: 'user' }, { role: 'assistant', content: WHOLE.content }, { role: 'user' }])
})

test('an answer without a report costs by its text, and its caller reads what is charged', async () => {
  hasUsage = false
  for (const stream of [false, true]) {
    const chat = await charged('/v1/chat/completions', { stream, max_tokens: 500 })
    const response = await charged('/v1/responses', { stream, max_output_tokens: 500 })
    // The bodies differ in length, and with it the estimate of the prompt: a token for three bytes.
    const bytes = (path: string, rest: object): bigint =>
      BigInt(Math.ceil(Buffer.byteLength(JSON.stringify({ ...REQUESTS[path], ...rest })) / 3))
    const difference =
      bytes('/v1/chat/completions', { stream, max_tokens: 500 }) -
      bytes('/v1/responses', { stream, max_output_tokens: 500 })
    expect(chat - response).toBe(difference * 3_010n)
  }
})

test('a stream that is cut after any event of the vendor has one end, and is charged', async () => {
  for (let count = 3; count < EVENTS.length; count++) {
    cut = { count, how: 'reset' }
    const before = await started.account()
    const body = { ...REQUESTS['/v1/responses'], stream: true, reasoning: { summary: 'auto' } }
    const answer = await started.post('/v1/responses', body)
    expect(checkGrammar(responseEvents(await answer.text()))['status'], String(count)).toBe('failed')
    expect((await started.ended(answer)).ending).toBe('failed')
    const after = await started.account()
    expect(after.held).toBe(0n)
    expect(after.balance).toBeLessThan(before.balance)
  }
})

test('stops the vendor when the caller disconnects', async () => {
  cut = { count: 7, how: 'open' }
  const leaving = new AbortController()
  const body = { ...REQUESTS['/v1/responses'], stream: true }
  const answer = await started.post('/v1/responses', body, {}, leaving.signal)
  await answer.body!.getReader().read()
  const ended = started.nextEnded()
  leaving.abort()
  const { ending, costNanoDollars } = await ended
  expect([ending, costNanoDollars > 0n]).toEqual(['abandoned', true])
  await expect.poll(() => vendor.aborted).toBe(1)
  expect((await started.account()).held).toBe(0n)
})

test.each([false, true])(
  'a repeated Idempotency-Key gets the same bytes and costs once (streamed: %s)',
  async (stream) => {
    const body = { ...REQUESTS['/v1/responses'], stream }
    const headers = { 'idempotency-key': `key-${stream}` }
    const ask = async (): Promise<string> => (await started.post('/v1/responses', body, headers)).text()
    const first = await ask()
    await expect.poll(async () => (await started.account()).held).toBe(0n)
    const { balance } = await started.account()
    expect(await ask()).toBe(first)
    expect((await started.account()).balance).toBe(balance)
    if (stream) checkGrammar(responseEvents(first))
  },
)

test('an answer that fails over to another vendor has its model and price', async () => {
  const other = await responsesVendor()
  other.answer = { whole: JSON.stringify(vendorResponse()), events: vendorEvents(), end: 'clean' }
  await started.close()
  await vendor.close()
  vendor = await answeringVendor((response) => json(response, { type: 'error', error: { type: 'api_error' } }, 503))
  started = await startGateway({
    vendors: [anthropic({ apiKey: 'key', baseURL: vendor.origin }), openai({ apiKey: 'key', baseURL: other.origin })],
    models: [
      { id: 'first', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-4-6', fallbacks: ['second'] },
      { id: 'second', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' },
    ],
    prices: {
      currency: 'USD',
      prices: ['first', 'second'].flatMap((id) => [
        perMillion('input_token', id === 'first' ? '100' : '1', id),
        perMillion('output_token', id === 'first' ? '100' : '1', id),
      ]),
    },
  })
  const before = await started.account()
  const answer = await started.post('/v1/responses', { model: 'first', input: 'hi' })
  expect(await answer.json()).toMatchObject({ model: 'second', status: 'completed' })
  await started.ended(answer)
  expect(before.balance - (await started.account()).balance).toBe(27n * 1_000n)
  await other.close()
})

describe('a WebSocket', () => {
  const exchange = async (method: string, body: string): Promise<{ head: string; body: unknown; openMs: number }> => {
    const { port } = new URL(started.url)
    const socket = createConnection(Number(port), '127.0.0.1')
    const lines = ['host: x', 'connection: Upgrade', 'upgrade: websocket', 'authorization: Bearer sk-test-0123456789']
    const length = `content-type: application/json\r\ncontent-length: ${body.length}`
    socket.write(`${method} /v1/responses HTTP/1.1\r\n${lines.join('\r\n')}\r\n${length}\r\n\r\n${body}`)
    let text = ''
    let answeredAtMs = 0
    socket.on('data', (bytes) => {
      answeredAtMs = performance.now()
      text += bytes.toString()
      if (method === 'POST') socket.end()
    })
    // A client that waits for more would try again for seconds.
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve())
    })
    const [head = '', ...rest] = text.split('\r\n\r\n')
    return { head, body: JSON.parse(rest.join('')), openMs: performance.now() - answeredAtMs }
  }

  test('is refused with 426, which names HTTP and closes the connection', async () => {
    const { head, body, openMs } = await exchange('GET', '')

    expect(head).toMatch(/^HTTP\/1\.1 426 /)
    expect(head).toMatch(/^upgrade: HTTP\/1\.1\r$/im)
    expect(head).toMatch(/^connection: close, upgrade\r?$/im)
    expect(body).toMatchObject({ error: { type: 'invalid_request_error' } })
    expect(openMs).toBeLessThan(2_000)
  })

  test('ignores a WebSocket offer in a POST, and answers the POST', async () => {
    const { head, body } = await exchange('POST', JSON.stringify({ model: MODEL, input: 'hi' }))

    expect([head.split('\r\n')[0], body]).toMatchObject(['HTTP/1.1 200 OK', { object: 'response' }])
  })
})
