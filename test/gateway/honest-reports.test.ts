import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openai } from '../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'

const MODEL = 'reporter'
const INPUT = 1_250n
const OUTPUT = 15_000n
const row = { model: MODEL, per: 1_000_000 } as const
const PRIORITY = { service_tier: 'priority' }
const PRICES = [
  { ...row, meter: 'input_token', amount: '1.25' },
  { ...row, meter: 'output_token', amount: '15' },
  { ...row, meter: 'web_search', amount: '10', per: 1_000 },
  { ...row, meter: 'output_token', amount: '30', when: PRIORITY },
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
    vendors: [openai({ apiKey: 'key', baseURL: `http://127.0.0.1:${port}` })],
    models: [
      { id: MODEL, kind: 'chat', vendor: 'openai', limits: { contextTokens: 200_000, maxOutputTokens: 128_000 } },
    ],
    prices: { currency: 'USD', prices: PRICES },
  })
})

afterEach(async () => {
  await started.close()
  server.close()
})

/** What a call costs, in nano-dollars. */
async function due(path: string, members: object): Promise<bigint> {
  const answer = await started.post(path, { model: MODEL, ...members })
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

test('charges a report above the ceiling at the ceiling', async () => {
  usage = { prompt_tokens: 2 ** 31, completion_tokens: 2 ** 31, total_tokens: 2 ** 32 }

  expect(await due(CHAT, { messages, max_tokens: 16 })).toBe(800_000n * INPUT + 512_000n * OUTPUT)
})

test.each([
  [undefined, 'priority', 30_000n],
  [undefined, 'default', 15_000n],
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
