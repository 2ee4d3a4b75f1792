import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type Listening, listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const MODELS = ['anthropic/claude-sonnet-4.6', 'qwen/qwen3-max']
const COUNTS = { prompt_tokens: 1010, completion_tokens: 5, total_tokens: 1015 }

let vendor: Listening
let started: StartedGateway
let details: object

const chat = (body: object) => ({ id: 'gen-1', created: 1, model: 'm', ...body })
const chunk = (body: object) => `data: ${JSON.stringify(chat({ object: 'chat.completion.chunk', ...body }))}\n\n`

/** Server that reports cache writes in OpenAI's dialect. */
function answerOf(path: string, stream: boolean): string {
  if (path === '/v1/responses') {
    const usage = { input_tokens: 1010, input_tokens_details: details, output_tokens: 5, total_tokens: 1015 }
    const content = [{ type: 'output_text', text: 'hello', annotations: [] }]
    const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }]
    const response = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm', output, usage }
    if (!stream) return JSON.stringify(response)
    return `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', sequence_number: 0, response })}\n\n`
  }
  const usage = { ...COUNTS, prompt_tokens_details: details }
  const message = { role: 'assistant', content: 'hello' }
  if (!stream) return JSON.stringify(chat({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
  return `${chunk({ choices: [{ index: 0, delta: message, finish_reason: 'stop' }] })}${chunk({ choices: [], usage })}data: [DONE]\n\n`
}

const perMillion = (model: string, meter: PriceRow['meter'], amount: string): PriceRow => ({
  model,
  meter,
  amount,
  per: 1_000_000,
})

beforeEach(async () => {
  vendor = await listen(async (request, response) => {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    const stream = (JSON.parse(body) as { stream?: boolean }).stream === true
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
    response.end(answerOf(request.url ?? '', stream))
  })
  started = await startGateway({
    vendors: [
      openaiCompatible(presets.openrouter, {
        apiKey: 'k-0123456789',
        baseURL: `${vendor.origin}/v1`,
        models: MODELS.map((id) => ({ id, kind: 'chat', upstream: id, limits: { maxOutputTokens: 100 } })),
      }),
    ],
    prices: {
      currency: 'USD',
      prices: MODELS.flatMap((model) => [
        perMillion(model, 'input_token', '1'),
        perMillion(model, 'cache_write_token', '1.25'),
        perMillion(model, 'output_token', '10'),
      ]),
    },
  })
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

const CALLS = [
  ['/v1/chat/completions', false],
  ['/v1/chat/completions', true],
  ['/v1/responses', false],
  ['/v1/responses', true],
] as const

/** Returns the cost of a call whose prompt is marked with `ttl`, in nano-dollars. */
function costOf(path: string, stream: boolean, ttl: string, model = MODELS[0]!): Promise<bigint> {
  return costOfMarked(path, { stream, model }, { cache_control: { type: 'ephemeral', ttl } })
}

async function costOfMarked(path: string, fields: object, mark: object): Promise<bigint> {
  const part = { type: path === '/v1/responses' ? 'input_text' : 'text', text: 'A long prompt', ...mark }
  const turns = [{ role: 'user', content: [part] }]
  const before = await started.account()
  const body = { ...fields, ...(path === '/v1/responses' ? { input: turns } : { messages: turns }) }
  const answer = await started.post(path, body)
  const text = await answer.text()
  expect(answer.status, text).toBe(200)
  return before.balance - (await started.account()).balance
}

const costWith = (written: bigint): bigint => 10n * 1_000n + written + 5n * 10_000n
const OF_MINUTES = costWith(1000n * 1_250n)
const OF_AN_HOUR = costWith(1000n * 2_000n)

test.each(CALLS)(
  'cache writes without a lifetime cost what the marks ask for; %s, stream: %s',
  async (path, stream) => {
    details = { cached_tokens: 0, cache_write_tokens: 1000 }

    expect(await costOf(path, stream, '1h')).toBe(OF_AN_HOUR)
    expect(await costOf(path, stream, '5m')).toBe(OF_MINUTES)
    // Other models do not have lifetimes.
    expect(await costOf(path, stream, '1h', MODELS[1])).toBe(OF_MINUTES)
  },
)

test.each(CALLS)('so do those of a mark of the whole request; %s, stream: %s', async (path, stream) => {
  details = { cached_tokens: 0, cache_write_tokens: 1000 }
  const marked = (ttl: string) => ({ model: MODELS[0], stream, cache_control: { type: 'ephemeral', ttl } })

  expect(await costOfMarked(path, marked('1h'), {})).toBe(OF_AN_HOUR)
  expect(await costOfMarked(path, marked('5m'), {})).toBe(OF_MINUTES)
})

test.each([
  ['cache_creation', { cache_creation_input_tokens: 1000 }],
  ['cache_creation_token_details', { cache_creation_tokens: 1000 }],
])('prefers lifetimes that a report contains in %s to the marks', async (member, counts) => {
  for (const [path, stream] of CALLS) {
    details = { ...counts, [member]: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 0 } }
    expect(await costOf(path, stream, '1h')).toBe(OF_MINUTES)
    details = { ...counts, [member]: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1000 } }
    expect(await costOf(path, stream, '1h')).toBe(OF_AN_HOUR)
  }
})
