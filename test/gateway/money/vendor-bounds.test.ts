import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { NewAccount } from '../../../src/stores/ledger.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import { type StartedMcp, startMcp } from '../../mcp/support/start-mcp.ts'
import { callTool } from '../../mcp/support/tool-result.ts'

type Json = Record<string, unknown>

const MAX_ANSWER_TOKENS = 128_000
const DOLLAR = 1_000_000_000n
const PER_TOKEN = 10_000n
const BOUND_HEADER = 'x-signalbox-max-output-tokens'

let started: StartedMcp | undefined
let server: Server | undefined

afterEach(async () => {
  await started?.close()
  server?.closeAllConnections()
  server?.close()
  started = server = undefined
})

/** Starts a gateway and a vendor that answers chats of OpenAI's dialect to their bound, and anything else with 400. */
async function start(vendorAt: (origin: string) => Vendor, upstream: string, account: Omit<NewAccount, 'id'> = {}) {
  const sent: Json[] = []
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Json
    sent.push(body)
    const tokens = Number(body['max_completion_tokens'] ?? MAX_ANSWER_TOKENS)
    const usage = { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 }
    const message = { role: 'assistant', content: 'hi' }
    const choices = [{ index: 0, message, finish_reason: 'length' }]
    response.writeHead(request.url === '/v1/chat/completions' ? 200 : 400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ id: 'c_1', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
  })
  const http = server
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const vendor = vendorAt(`http://127.0.0.1:${(http.address() as AddressInfo).port}`)
  started = await startMcp({
    gateway: {
      vendors: [vendor],
      models: [
        { id: 'long', kind: 'chat', vendor: vendor.id, upstream, limits: { maxOutputTokens: MAX_ANSWER_TOKENS } },
      ],
      prices: {
        currency: 'USD',
        prices: (['input_token', 'output_token'] as const).map((meter) => ({
          ...{ model: 'long', meter, amount: '10', per: 1_000_000 },
        })),
      },
    },
  })
  const { gateway, post, connect } = started
  await gateway.accounts.create({ id: 'acct_b', ...account })
  const { key } = await gateway.keys.create({ accountId: 'acct_b' })
  return {
    sent,
    credit: (dollars: string) => gateway.accounts.credit('acct_b', dollars),
    post: (path: string, body: object) => post(path, { model: 'long', ...body }, { authorization: `Bearer ${key}` }),
    client: () => connect({ apiKey: key }),
    account: async () => (await gateway.accounts.get('acct_b'))!,
  }
}

const messages = [{ role: 'user', content: 'hi' }]
const openaiAt = (baseURL: string) => openai({ apiKey: 'k', baseURL })

/** Value at a path of names, such as `generationConfig.maxOutputTokens`. */
const memberAt = (body: unknown, path: string): unknown =>
  path.split('.').reduce((value, name) => (value as Json | undefined)?.[name], body)

const VENDORS: readonly (readonly [string, (origin: string) => Vendor, string, string, string])[] = [
  ['OpenAI', openaiAt, 'gpt-5.4', 'max_completion_tokens', 'max_output_tokens'],
  ['OpenAI by Responses', openaiAt, 'gpt-5.4-pro', 'max_output_tokens', 'max_output_tokens'],
  ['Azure', (endpoint) => azureOpenai({ apiKey: 'k', endpoint }), 'd', 'max_completion_tokens', 'max_output_tokens'],
  ['Anthropic', (baseURL) => anthropic({ apiKey: 'k', baseURL }), 'claude-sonnet-4-5', 'max_tokens', 'max_tokens'],
  [
    'Gemini',
    (baseURL) => gemini({ apiKey: 'k', baseURL }),
    'gemini-2.5-pro',
    'generationConfig.maxOutputTokens',
    'generationConfig.maxOutputTokens',
  ],
  [
    'DashScope',
    (baseURL) => dashscope({ apiKey: 'k', baseURL }),
    'qwen3-max',
    'max_completion_tokens',
    'max_completion_tokens',
  ],
  [
    'Bedrock',
    (endpoint) => amazonBedrock({ apiKey: 'k', endpoint }),
    'amazon.nova-pro-v1:0',
    'inferenceConfig.maxTokens',
    'inferenceConfig.maxTokens',
  ],
  [
    'Mistral',
    (baseURL) => openaiCompatible(presets.mistral, { apiKey: 'k', baseURL }),
    'mistral-large',
    'max_tokens',
    'max_tokens',
  ],
]

describe.each(VENDORS)('a call without a bound at %s', (_name, at, upstream, member, ofResponses) => {
  test('is sent with the chosen bound in the field of the vendor', async () => {
    const { sent, credit, post } = await start(at, upstream)
    await credit('1')
    await (await post('/v1/chat/completions', { messages })).text()
    await (await post('/v1/responses', { input: 'hi', store: false })).text()

    expect(memberAt(sent[0], member)).toBe(16_384)
    expect(memberAt(sent[1], ofResponses)).toBe(16_384)
  })
})

test('six calls of the MCP tool at once cost at most the balance', async () => {
  const { sent, credit, client, account } = await start(openaiAt, 'gpt-5.4')
  await credit('1')
  const mcp = await client()
  const results = await Promise.all(
    Array.from({ length: 6 }, () => callTool(mcp, 'chat_complete', { model: 'long', messages })),
  )
  const bill = sent.reduce((sum, body) => sum + (BigInt(Number(body['max_completion_tokens'])) + 1n) * PER_TOKEN, 0n)
  const { balance, owed } = await account()

  expect(results.filter(({ isError }) => !isError).length).toBeGreaterThan(1)
  expect(bill).toBeLessThanOrEqual(DOLLAR)
  expect([balance, owed]).toEqual([DOLLAR - bill, 0n])
})

describe('a balance that pays for no useful answer', () => {
  const CALLS: readonly (readonly [string, string, object])[] = [
    ['a chat', '/v1/chat/completions', { messages }],
    ['a stream', '/v1/chat/completions', { messages, stream: true }],
    ['128 answers', '/v1/chat/completions', { messages, n: 128 }],
    ['a response', '/v1/responses', { input: 'hi' }],
    ['a background answer', '/v1/responses', { input: 'hi', background: true }],
    ['a message', '/v1/messages', { messages, max_tokens: 1_000 }],
  ]
  const ACCOUNTS: readonly (readonly [string, Omit<NewAccount, 'id'>, string])[] = [
    ['a balance of $0.0001', {}, '0.0001'],
    ['a cap of $0.0001', { spendingCap: { amount: 100_000n, period: 'day' } }, '100'],
    ['a credit limit of $0.0001', { billing: 'metered', creditLimit: 100_000n }, ''],
  ]

  test.each(CALLS)('rejects %s with 402 and the amount that is missing', async (_title, path, body) => {
    for (const [, account, dollars] of ACCOUNTS) {
      const { sent, credit, post, account: after } = await start(openaiAt, 'gpt-5.4', account)
      if (dollars !== '') await credit(dollars)
      const response = await post(path, body)
      const text = await response.text()

      expect(response.status).toBe(402)
      expect(response.headers.get(BOUND_HEADER)).toBeNull()
      expect(text).toMatch(/This request needs \$0\.\d+, available \$0\.0001; lower max_\w+ or /)
      expect(sent).toEqual([])
      expect(await after()).toMatchObject({ held: 0n, creditHeld: 0n })
      await started?.close()
      server?.close()
    }
  })
})
