import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, json } from '../streams/answering-vendor.ts'

const ACCOUNT = 'acct_one_dollar'
const KEY = 'sk-one-dollar-0123456789'
const PRINCIPAL = { accountId: ACCOUNT, keyId: 'key_1', tier: 'paid' } as const
const DOLLAR = 1_000_000_000n

let vendor: AnsweringVendor
let started: StartedGateway
/** Input tokens that the vendor reports for a call, by its request, or undefined if it reports nothing. */
let tokensOf: (body: Record<string, unknown>) => number | undefined
let billed: number

beforeEach(async () => {
  billed = 0
  vendor = await answeringVendor((response, body) => {
    const tokens = tokensOf(body)
    billed += tokens ?? 0
    if (String(body['model']).startsWith('claude')) {
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_sequence: null }
      const content = [{ type: 'text', text: 'hello' }]
      json(response, {
        ...message,
        content,
        stop_reason: 'end_turn',
        usage: { input_tokens: tokens, output_tokens: 1 },
      })
      return
    }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }]
    const usage = tokens && { prompt_tokens: tokens, completion_tokens: 1, total_tokens: tokens + 1 }
    json(response, { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices, usage })
  })
})

afterEach(async () => {
  await started?.close()
  await vendor.close()
})

async function start(): Promise<void> {
  const connection = { apiKey: 'vendor-key-0123456789', baseURL: vendor.origin }
  started = await startGateway({
    vendors: [openai(connection), anthropic(connection)],
    models: [
      { id: 'chat', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o', limits: { contextTokens: 128_000 } },
      {
        id: 'claude',
        kind: 'chat',
        vendor: 'anthropic',
        upstream: 'claude-sonnet-4-6',
        limits: { contextTokens: 200_000 },
      },
    ],
    keys: [
      { key: TEST_KEY, account: TEST_ACCOUNT },
      { key: KEY, account: ACCOUNT },
    ],
    prices: {
      currency: 'USD',
      prices: (['chat', 'claude'] as const).flatMap((model) => [
        { model, meter: 'input_token' as const, amount: '3', per: 1_000_000 },
        { model, meter: 'output_token' as const, amount: '3', per: 1_000_000 },
      ]),
    },
  })
  await started.gateway.accounts.credit(ACCOUNT, '1')
}

const ask = (path: string, body: object): Promise<Response> =>
  started.post(path, body, { authorization: `Bearer ${KEY}` })

async function sixty(path: string, body: object): Promise<number[]> {
  const statuses = Array.from({ length: 60 }, async () => {
    const response = await ask(path, body)
    await response.text()
    return response.status
  })
  return Promise.all(statuses)
}

const characters = (first: number, count: number): string =>
  Array.from({ length: 4_000 }, (_, index) => String.fromCodePoint(first + ((index * 7_919) % count))).join('')

describe('sixty prompts at once on a balance of a dollar', () => {
  test.each([
    ['a rare script', characters(0x12000, 0x390)],
    ['rare Chinese characters', characters(0x3400, 0x19b0)],
    ['emoji', characters(0x1f300, 0x4ff)],
    ['digits', '8675309'.repeat(2_000)],
  ])('never cost more than the balance with a token for every byte of %s', async (_what, content) => {
    await start()
    tokensOf = (body) => Buffer.byteLength(JSON.stringify(body['messages'])) - 2

    const messages = [{ role: 'user', content }]
    const statuses = await sixty('/v1/chat/completions', { model: 'chat', max_tokens: 1, messages })
    const account = await started.gateway.accounts.get(ACCOUNT)

    expect(new Set(statuses)).toEqual(new Set([200, 402]))
    expect(billed * 3_000).toBeLessThanOrEqual(Number(DOLLAR))
    expect(account?.owed).toBe(0n)
  })

  test('never cost more than the balance with documents by URL that fill the context of the model', async () => {
    await start()
    tokensOf = () => 190_000

    const source = { type: 'url', url: 'https://example.com/large.pdf' }
    const messages = [{ role: 'user', content: [{ type: 'document', source }] }]
    const statuses = await sixty('/v1/messages', { model: 'claude', max_tokens: 1, messages })
    const account = await started.gateway.accounts.get(ACCOUNT)

    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0)
    expect(billed * 3_000).toBeLessThanOrEqual(Number(DOLLAR))
    expect(account?.owed).toBe(0n)
  })
})

const chat = (content: string): { readonly endpoint: string; readonly body: object } => ({
  endpoint: 'chat',
  body: { model: 'chat', max_tokens: 1, messages: [{ role: 'user', content }] },
})

test('holds no more than the context of the model for dense text', async () => {
  await start()
  const { usage } = await started.gateway.estimate(PRINCIPAL, chat('的'.repeat(60_000)))

  expect(usage.inputTokens).toBe(128_000)
})

test('charges dense text without a report by its usual number of tokens', async () => {
  await start()
  tokensOf = () => undefined
  const { body } = chat('的'.repeat(1_000))
  const { usage: held } = await started.gateway.estimate(PRINCIPAL, chat('的'.repeat(1_000)))
  const { usage } = await started.ended(await ask('/v1/chat/completions', body))

  expect(held.inputTokens).toBeGreaterThan(3_000)
  expect(usage?.inputTokens).toBeGreaterThan(1_000)
  expect(usage?.inputTokens).toBeLessThan(1_100)
})
