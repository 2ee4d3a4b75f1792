import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import { sealReasoning } from '../../../src/endpoints/responses/reasoning-envelope.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import {
  type ResponsesVendor,
  responsesVendor,
  VENDOR_USAGE,
  vendorEvents,
  vendorResponse,
} from './responses-vendor.ts'

const MODEL = 'chat-relayed'
const perMillion = (meter: PriceRow['meter'], amount: string): PriceRow => ({
  model: MODEL,
  meter,
  amount,
  per: 1_000_000,
})
const TOKENS = [
  perMillion('input_token', '3.00'),
  perMillion('cached_input_token', '0.30'),
  perMillion('output_token', '15.00'),
]
const COST = 15n * 3_000n + 5n * 300n + 7n * 15_000n

let vendor: ResponsesVendor
let started: StartedGateway

async function start(more: readonly PriceRow[] = [], options: Parameters<typeof openai>[0] = {}): Promise<void> {
  started = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin, ...options })],
    prices: { currency: 'USD', prices: [...TOKENS, ...more] },
    disconnect: 'cancel',
  })
}

beforeEach(async () => {
  vendor = await responsesVendor()
  await start()
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

async function charged(call: () => Promise<Response>): Promise<{ cost: bigint; text: string; answer: Response }> {
  const before = await started.account()
  const answer = await call()
  const text = await answer.text()
  if (answer.status === 200) await started.ended(answer)
  const after = await started.account()
  expect(after.held).toBe(0n)
  return { cost: before.balance - after.balance, text, answer }
}

const renamed = (text: string): string => text.replaceAll('"gpt-5.4-2026-03-05"', JSON.stringify(MODEL))

test('a whole answer and its request pass byte for byte, but for the model, and are charged by the report', async () => {
  const body = `{ "model" :"${MODEL}", "input":"hi\\u0021", "of_the_future": 1e2, "max_output_tokens":99, "store":false }`
  const { cost, text } = await charged(() =>
    fetch(`${started.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test-0123456789', 'content-type': 'application/json' },
      body,
    }),
  )
  expect(vendor.calls[0]?.body).toBe(body.replace(MODEL, 'gpt-5.4'))
  expect(text).toBe(renamed(vendor.answer.whole))
  expect(cost).toBe(COST)
})

test.each(['whole', 'byte by byte'])('a stream passes byte for byte, but for the model (%s)', async (how) => {
  const all = vendor.answer.events.join('')
  if (how !== 'whole') vendor.answer.events = [...all]
  const { cost, text } = await charged(() => started.post('/v1/responses', { model: MODEL, input: 'hi', stream: true }))
  expect(text).toBe(renamed(all))
  expect(cost).toBe(COST)
})

test('usage that the vendor does not report is estimated, and the caller reads what is charged', async () => {
  vendor.answer.whole = JSON.stringify(vendorResponse({ usage: null }))
  const { cost, text } = await charged(() => started.post('/v1/responses', { model: MODEL, input: 'hi' }))
  const { usage } = JSON.parse(text) as { usage: typeof VENDOR_USAGE }
  expect(cost).toBe(BigInt(usage.input_tokens) * 3_000n + BigInt(usage.output_tokens) * 15_000n)
  expect(cost).toBeGreaterThan(0n)
})

test.each(['told at its end', 'cut'])(
  'a stream of whole items without deltas costs what its text does (%s)',
  async (end) => {
    const isCut = end === 'cut'
    const isDelta = (event: string): boolean => /^event: response\.[a-z_]+\.(?:delta|done)\n/.test(event)
    const whole = vendorEvents().filter((event) => !isDelta(event) || event.includes('output_item.done'))
    const events = whole.map((event) => event.replace(JSON.stringify(VENDOR_USAGE), 'null'))
    vendor.answer = { ...vendor.answer, events: isCut ? events.slice(0, -1) : events, end: isCut ? 'reset' : 'clean' }
    await charged(() => started.post('/v1/responses', { model: MODEL, input: 'hi', stream: true }))
    const ended = started.events.find((event) => event.type === 'request-ended')
    vendor.answer.whole = JSON.stringify(vendorResponse({ usage: null }))
    const { answer } = await charged(() => started.post('/v1/responses', { model: MODEL, input: 'hi' }))

    expect(ended?.usage?.outputTokens).toBeGreaterThan(0)
    expect(ended?.usage?.outputTokens).toBe((await started.ended(answer)).usage?.outputTokens)
  },
)

test('a stream that is cut after any of its events has one end, and is charged', async () => {
  const events = vendorEvents()
  // Before the first content another vendor could be asked, and nothing is sent.
  for (let count = 3; count < events.length; count++) {
    for (const end of ['clean', 'reset'] as const) {
      vendor.answer = { ...vendor.answer, events: events.slice(0, count), end }
      const { cost, text } = await charged(() =>
        started.post('/v1/responses', { model: MODEL, input: 'hi', stream: true }),
      )
      const read = responseEvents(text)
      expect(checkGrammar(read)['status'], `${count} ${end}`).toBe('failed')
      expect(cost).toBeGreaterThan(0n)
    }
  }
})

test("reports an error inside a stream once, without the vendor's text, and charges its report", async () => {
  const error = { type: 'server_error', code: 'server_error', message: 'secret of the vendor', param: null }
  const failed = vendorResponse({ status: 'failed', error, output: [] })
  vendor.answer.events = [
    ...vendorEvents().slice(0, 8),
    `event: error\ndata: ${JSON.stringify({ type: 'error', sequence_number: 8, error })}\n\n`,
    `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', sequence_number: 9, response: failed })}\n\n`,
  ]
  const { cost, text } = await charged(() => started.post('/v1/responses', { model: MODEL, input: 'hi', stream: true }))
  const events = responseEvents(text)
  expect(events.filter(({ type }) => type === 'error')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { error: { code: 'server_error' } } })
  expect(text).not.toContain('secret of the vendor')
  expect(cost).toBeGreaterThan(0n)
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
})

test('a rate limit inside a stream tells the wait that its vendor asks for, in the words that coding clients read', async () => {
  const error = { code: 'rate_limit_exceeded', message: 'Limit of org-canary reached. Please try again in 11.054s.' }
  const failed = { type: 'response.failed', sequence_number: 8, response: vendorResponse({ status: 'failed', error }) }
  vendor.answer.events = [...vendorEvents().slice(0, 8), `data: ${JSON.stringify(failed)}\n\n`]
  const { text } = await charged(() => started.post('/v1/responses', { model: MODEL, input: 'hi', stream: true }))
  const { response } = responseEvents(text).at(-1) as unknown as { response: { error: Record<string, string> } }
  expect(response.error['code']).toBe('rate_limit_exceeded')
  // openai/codex, codex-rs/codex-api/src/sse/responses.rs
  expect(/try again in\s*(\d+(?:\.\d+)?)\s*(s|ms|seconds?)/i.exec(response.error['message'] ?? '')?.[1]).toBe('12')
  expect(text).not.toContain('org-canary')
})

test('a stored prompt of the operator needs no input', async () => {
  await started.close()
  await start([], { allowVendorObjects: true })
  const body = { model: MODEL, prompt: { id: 'pmpt_1' }, max_output_tokens: 99 }
  expect((await started.post('/v1/responses', body)).status).toBe(200)
  expect(JSON.parse(vendor.calls[0]!.body)).toEqual({ ...body, model: 'gpt-5.4' })
})

test('stops the vendor when the caller disconnects', async () => {
  vendor.answer = { ...vendor.answer, events: vendorEvents().slice(0, 7), end: 'open' }
  const leaving = new AbortController()
  const answer = await started.post('/v1/responses', { model: MODEL, input: 'hi', stream: true }, {}, leaving.signal)
  await answer.body!.getReader().read()
  const gone = vendor.nextAbort()
  const ended = started.nextEnded()
  leaving.abort()
  await gone
  const { ending, costNanoDollars } = await ended
  expect(ending).toBe('abandoned')
  expect(costNanoDollars).toBeGreaterThan(0n)
  expect((await started.account()).held).toBe(0n)
})

describe('tools that the vendor runs', () => {
  const search = { model: MODEL, input: 'hi', tools: [{ type: 'web_search' }] }

  test.each([
    [search, 'tools[0]'],
    [{ ...search, tools: [{ type: 'function', name: 'f', parameters: {} }, { type: 'of_the_future' }] }, 'tools[1]'],
    [{ ...search, tools: [], input: [{ type: 'additional_tools', tools: search.tools }] }, 'input[0].tools[0]'],
    [{ ...search, tools: [{ type: 'namespace', name: 'n', tools: search.tools }] }, 'tools[0].tools[0]'],
  ])('are refused without a price, by their place: %#', async (body, param) => {
    const { answer, text } = await charged(() => started.post('/v1/responses', body))
    expect(answer.status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ error: { param } })
    expect(vendor.calls).toEqual([])
  })

  test.each([
    [{ tool_usage: { web_search: { num_requests: 3 } } }, 3n],
    [{ tool_usage: { web_search: { num_requests: 0 } } }, 0n],
  ])('are charged by what the vendor reports: %j', async (more, searches) => {
    await started.close()
    await start([{ model: MODEL, meter: 'web_search', amount: '10.00', per: 1_000 }])
    vendor.answer.whole = JSON.stringify(vendorResponse({ ...more, tools: search.tools }))
    const { cost } = await charged(() => started.post('/v1/responses', search))
    expect(cost).toBe(COST + searches * 10_000_000n)
  })

  test.each([
    ['vector stores', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }, 'tools[0].vector_store_ids'],
    ['a container', { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }, 'tools[0].container'],
    ['a connector', { tools: [{ type: 'mcp', server_label: 'x', connector_id: 'c' }] }, 'tools[0].connector_id'],
    ['a prompt', { prompt: { id: 'pmpt_1' } }, 'prompt.id'],
    ['a conversation', { conversation: 'conv_1' }, 'conversation'],
    [
      'a file',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] },
      'input[0].content[0].file_id',
    ],
  ])('rejects objects of the operator: %s', async (_what, rest, param) => {
    await started.close()
    const vendors = [openai({ apiKey: 'vendor-key-canary-7f3a', baseURL: vendor.origin })]
    started = await startGateway({ vendors, billing: 'off' })
    const answer = await started.post('/v1/responses', { model: MODEL, input: 'hi', ...rest })
    expect(await answer.json()).toMatchObject({ error: { param } })
    expect(answer.status).toBe(400)
    expect(vendor.calls).toEqual([])
  })
})

test('state of another vendor is not sent, and is reported', async () => {
  const block = { type: 'thinking', thinking: 'hm', signature: 's' } as const
  const encrypted_content = sealReasoning({ blocks: [block] }, { vendor: 'anthropic' })
  const own = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA-own' }
  const input = [{ role: 'user', content: 'hi' }, { ...own, encrypted_content }, own]
  const answer = await started.post('/v1/responses', { model: MODEL, input })
  expect(answer.headers.get('x-signalbox-dropped')).toBe('input.encrypted_content')
  // No answer to the account has named the id.
  const { id: _id, ...sent } = own
  expect((JSON.parse(vendor.calls[0]!.body) as { input: unknown }).input).toEqual([input[0], sent])
})

test('a server without the dialect gets chat completions', async () => {
  await started.close()
  await start([], { responses: false })
  await started.post('/v1/responses', { model: MODEL, input: 'hi' })
  expect(vendor.calls[0]?.path).toBe('POST /v1/chat/completions')
})
