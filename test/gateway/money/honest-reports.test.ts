import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const MODEL = 'reporter'
const INPUT = 1_250n
const OUTPUT = 15_000n
const row = { model: MODEL, per: 1_000_000 } as const
const PRIORITY = { service_tier: 'priority' }
const FLEX = { service_tier: 'flex' }
const CLAUDE = 'cl-sonnet-4-6'
const SMALL_QWEN = 'small-qwen'
const PRICES = [
  { ...row, meter: 'input_token', amount: '1.25' },
  { ...row, meter: 'output_token', amount: '15' },
  { ...row, meter: 'web_search', amount: '10', per: 1_000 },
  { ...row, meter: 'output_token', amount: '30', when: PRIORITY },
  { ...row, meter: 'output_token', amount: '7.5', when: FLEX },
  { ...row, model: CLAUDE, meter: 'input_token', amount: '3' },
  { ...row, model: CLAUDE, meter: 'output_token', amount: '15' },
  { ...row, model: CLAUDE, meter: 'web_search', amount: '10', per: 1_000 },
  { ...row, model: SMALL_QWEN, meter: 'input_token', amount: '0.1' },
  { ...row, model: SMALL_QWEN, meter: 'output_token', amount: '4.2' },
] as const

let server: Server
let started: StartedGateway
let usage: object
let tier: string | undefined

beforeEach(async () => {
  usage = {}
  tier = undefined
  server = createServer((request, response) => {
    request.resume().once('end', () => {
      if (request.url === '/v1/messages') return sendMessage(response, usage)
      const head = { id: 'a_1', model: MODEL, ...(tier === undefined ? {} : { service_tier: tier }) }
      const message = { role: 'assistant', content: 'hello', refusal: null }
      const text = { type: 'output_text', text: 'hello', annotations: [] }
      const output = [{ type: 'message', id: 'm_1', status: 'completed', role: 'assistant', content: [text] }]
      const body =
        request.url === '/v1/responses'
          ? { ...head, object: 'response', status: 'completed', created_at: 1, output, usage }
          : {
              ...head,
              object: 'chat.completion',
              created: 1,
              choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
              usage,
            }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  started = await startGateway({
    vendors: [openai, anthropic, dashscope].map((vendor) =>
      vendor({ apiKey: 'key', baseURL: `http://127.0.0.1:${port}` }),
    ),
    models: [
      { id: MODEL, kind: 'chat', vendor: 'openai', limits: { contextTokens: 200_000, maxOutputTokens: 128_000 } },
      {
        ...{ id: SMALL_QWEN, kind: 'chat', vendor: 'dashscope', upstream: 'qwen3-0.6b' },
        limits: { contextTokens: 32_768, maxOutputTokens: 8_192 },
      },
    ],
    prices: { currency: 'USD', prices: PRICES },
  })
})

afterEach(async () => {
  await started.close()
  server.close()
})

function sendMessage(response: ServerResponse, reported: object): void {
  const content = [{ type: 'text', text: 'hello' }]
  response.setHeader('content-type', 'application/json')
  response.end(
    JSON.stringify({
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'c', content, stop_reason: 'end_turn' },
      ...{ stop_sequence: null, usage: reported },
    }),
  )
}

/** Returns the cost of a call, in nano-dollars. */
async function due(path: string, members: object, headers?: Record<string, string>): Promise<bigint> {
  const answer = await started.post(path, { model: MODEL, ...members }, headers)
  expect(await answer.text()).toContain('hello')
  return (await started.ended(answer)).dueNanoDollars
}

const CHAT = '/v1/chat/completions'
const messages = [{ role: 'user', content: 'hi' }]

test.each([8, 128])('charges %i answers of the longest length as reported', async (n) => {
  usage = { prompt_tokens: 10, completion_tokens: n * 128_000, total_tokens: n * 128_000 + 10 }

  expect(await due(CHAT, { messages, n, max_tokens: 16 })).toBe(10n * INPUT + BigInt(n) * 128_000n * OUTPUT)
})

test('charges the input and the searches of deep research as reported', async () => {
  const tools = [{ type: 'web_search' }]
  usage = { input_tokens: 700_000, output_tokens: 20_000, total_tokens: 720_000, tool_usage: {} }
  const details = { tool_calls_details: { search_web: { invocation: 120 } } }
  usage = { ...usage, ...details }

  expect(await due('/v1/responses', { input: 'hi', tools, max_output_tokens: 1_000 })).toBe(
    700_000n * INPUT + 20_000n * OUTPUT + 120n * 10_000_000n,
  )
})

test('charges the balance and owes the rest if a report costs more', async () => {
  const { gateway } = started
  await gateway.accounts.create({ id: 'acct_b' })
  await gateway.accounts.credit('acct_b', '2')
  const { key } = await gateway.keys.create({ accountId: 'acct_b' })
  usage = { prompt_tokens: 0, completion_tokens: 8 * 128_000, total_tokens: 8 * 128_000 }
  const bill = 8n * 128_000n * OUTPUT

  expect(await due(CHAT, { messages, n: 8, max_tokens: 16 }, { authorization: `Bearer ${key}` })).toBe(bill)
  const { balance, owed } = (await gateway.accounts.get('acct_b'))!
  expect([balance, owed]).toEqual([0n, bill - 2_000_000_000n])
})

test('charges thinking of a small model that exceeds its longest answer', async () => {
  usage = { prompt_tokens: 10, completion_tokens: 30_000, total_tokens: 30_010 }

  expect(await due(CHAT, { model: SMALL_QWEN, messages, max_tokens: 100 })).toBe(10n * 100n + 30_000n * 4_200n)
})

test.each([1, 60])('charges 60 searches of Claude that a request with max_uses of %i reports', async (max_uses) => {
  const server_tool_use = { web_search_requests: 60 }
  const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses }]
  usage = { input_tokens: 900_000, output_tokens: 1_000, server_tool_use }
  const bill = 900_000n * 3_000n + 1_000n * 15_000n + 60n * 10_000_000n

  expect(await due('/v1/messages', { model: CLAUDE, messages, max_tokens: 2_000, tools })).toBe(bill)
})

test('charges a report above the ceiling at the ceiling', async () => {
  usage = { prompt_tokens: 2 ** 31, completion_tokens: 2 ** 31, total_tokens: 2 ** 32 }

  expect(await due(CHAT, { messages, max_tokens: 16 })).toBe(800_000n * INPUT + 512_000n * OUTPUT)
})

test.each([
  [undefined, 'priority', 30_000n],
  [undefined, 'default', 15_000n],
  [undefined, 'flex', 7_500n],
  ['flex', 'flex', 7_500n],
  ['flex', 'default', 15_000n],
  ['priority', 'default', 15_000n],
  ['priority', 'priority', 30_000n],
  ['priority', undefined, 30_000n],
])('charges the tier that the vendor used (requested: %s, used: %s)', async (asked, used, price) => {
  tier = used
  const members = asked === undefined ? {} : { service_tier: asked }
  usage = { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 }

  expect(await due(CHAT, { messages, max_tokens: 200, ...members })).toBe(10n * INPUT + 100n * price)

  usage = { input_tokens: 10, output_tokens: 100, total_tokens: 110 }

  expect(await due('/v1/responses', { input: 'hi', max_output_tokens: 200, ...members })).toBe(
    10n * INPUT + 100n * price,
  )
})

test('charges the ordinary price where a preset does not send the requested tier', async () => {
  const { port } = server.address() as AddressInfo
  await started.close()
  started = await startGateway({
    vendors: [openaiCompatible(presets.mistral, { apiKey: 'key', baseURL: `http://127.0.0.1:${port}/v1` })],
    models: [{ id: MODEL, kind: 'chat', vendor: 'mistral' }],
    prices: { currency: 'USD', prices: PRICES.filter(({ model }) => model === MODEL) },
  })
  usage = { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 }

  expect(await due(CHAT, { messages, max_tokens: 200, ...PRIORITY })).toBe(10n * INPUT + 100n * OUTPUT)
})
