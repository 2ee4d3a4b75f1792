import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { NewAccount } from '../../../src/stores/ledger.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const MAX_ANSWER_TOKENS = 128_000
const NANO_PER_OUTPUT_TOKEN = 10_000n
const DOLLAR = 1_000_000_000n

let started: StartedGateway | undefined
let server: Server | undefined

afterEach(async () => {
  await started?.close()
  server?.closeAllConnections()
  server?.close()
  started = server = undefined
})

interface SentBody {
  readonly max_completion_tokens?: number
  readonly max_output_tokens?: number
  readonly n?: number
}

/** Starts a vendor whose answers are as long as their bound. They wait for `release`, so that all calls are in flight together. */
async function startVendor() {
  const sent: SentBody[] = []
  const waiting: (() => void)[] = []
  const watchers: (() => void)[] = []
  let isReleased = false
  const answer = (response: ServerResponse, path: string, body: SentBody): void => {
    const bound = body.max_completion_tokens ?? body.max_output_tokens ?? MAX_ANSWER_TOKENS
    const tokens = bound * (body.n ?? 1)
    const usage = { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 }
    const message = { role: 'assistant', content: 'hi' }
    const chat = {
      id: 'chat_1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message, finish_reason: 'length' }],
      usage,
    }
    const text = { type: 'output_text', text: 'hi', annotations: [] }
    const output = [{ type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [text] }]
    const counts = { input_tokens: 1, output_tokens: tokens, total_tokens: tokens + 1 }
    const own = {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'm',
      output,
      usage: counts,
    }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(path.endsWith('/responses') ? own : chat))
  }
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as SentBody
    sent.push(body)
    for (const watcher of watchers) watcher()
    const reply = () => answer(response, request.url ?? '', body)
    if (isReleased) reply()
    else waiting.push(reply)
  })
  server = http
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const release = (): void => {
    isReleased = true
    for (const reply of waiting) reply()
  }
  return { origin: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, sent, watchers, release }
}

const PRICES = (['input_token', 'output_token'] as const).map((meter) => ({
  model: 'long',
  meter,
  amount: '10',
  per: 1_000_000,
}))

/** Starts a gateway whose model writes 128,000 tokens at most, at $10 for a million. */
async function startWith(account: Omit<NewAccount, 'id'>, dollars: string, options: Partial<GatewayOptions> = {}) {
  const vendor = await startVendor()
  const gateway = await startGateway({
    vendors: [openai({ apiKey: 'vendor-key', baseURL: vendor.origin })],
    models: [
      {
        id: 'long',
        kind: 'chat',
        vendor: 'openai',
        upstream: 'gpt-5.4',
        limits: { maxOutputTokens: MAX_ANSWER_TOKENS },
      },
    ],
    prices: { currency: 'USD', prices: PRICES },
    ...options,
  })
  started = gateway
  await gateway.gateway.accounts.create({ id: 'acct_b', ...account })
  if (dollars !== '0') await gateway.gateway.accounts.credit('acct_b', dollars)
  const { key } = await gateway.gateway.keys.create({ accountId: 'acct_b' })
  const post = (body: unknown, path = '/v1/chat/completions') =>
    gateway.post(path, body, { authorization: `Bearer ${key}` })
  /** Sends calls together and lets the vendor answer when each has reached it or was rejected. */
  const postTogether = async (count: number, body: unknown = chatBody('long', 'hi'), path?: string) => {
    let ended = 0
    const releaseAll = () => {
      if (vendor.sent.length + ended === count) vendor.release()
    }
    vendor.watchers.push(releaseAll)
    const answers = Array.from({ length: count }, async () => {
      const response = await post(body, path)
      ended += 1
      releaseAll()
      await response.text()
      return response
    })
    return Promise.all(answers)
  }
  const bill = (): bigint =>
    vendor.sent.reduce((sum, { max_completion_tokens: chat, max_output_tokens: other, n = 1 }) => {
      const tokens = (chat ?? other ?? MAX_ANSWER_TOKENS) * n + 1
      return sum + BigInt(tokens) * NANO_PER_OUTPUT_TOKEN
    }, 0n)
  return { ...gateway, vendor, post, postTogether, bill }
}

const stores: readonly (readonly [string, () => Partial<GatewayOptions>])[] = [
  ['memory', () => ({})],
  ['SQLite', () => ({ store: sqliteStore({ path: ':memory:' }) })],
]

describe.each(stores)('six calls at once without a bound, in %s', (_name, options) => {
  test.each([
    ['a balance of $1', {}, '1', DOLLAR],
    ['a balance of $100', {}, '100', 100n * DOLLAR],
    ['a cap of $1 a day', { spendingCap: { amount: DOLLAR, period: 'day' } }, '100', DOLLAR],
    ['a credit limit of $1', { billing: 'metered', creditLimit: DOLLAR }, '0', DOLLAR],
  ] as const)('cost the vendor no more than %s pays', async (_title, account, dollars, limit) => {
    const { postTogether, bill, gateway } = await startWith(account, dollars, options())
    const answers = await postTogether(6)
    const after = await gateway.accounts.get('acct_b')

    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(1)
    for (const { status } of answers) expect([200, 402]).toContain(status)
    expect(bill()).toBeLessThanOrEqual(limit)
    expect(after?.held).toBe(0n)
    expect(after?.creditHeld).toBe(0n)
    if (dollars !== '0') expect(after?.owed).toBe(0n)
    else expect(after?.owed).toBe(bill())
  })

  test('bounds each of several answers', async () => {
    const { postTogether, bill } = await startWith({}, '1', options())
    await postTogether(2, chatBody('long', 'hi', { n: 8 }))

    expect(bill()).toBeLessThanOrEqual(DOLLAR)
  })
})

describe('the bound of a call that sets none', () => {
  test.each([
    ['the longest answer where that costs at most 2 % of the balance', '100', MAX_ANSWER_TOKENS],
    ['16,384 tokens where the longest answer costs more', '10', 16_384],
    ['what half of a small balance pays', '0.1', 4_993],
  ])('is %s', async (_title, dollars, bound) => {
    const { post, vendor } = await startWith({}, dollars)
    vendor.release()
    const response = await post(chatBody('long', 'hi'))

    expect(response.status).toBe(200)
    expect(Number(response.headers.get('x-signalbox-max-output-tokens'))).toBe(vendor.sent[0]?.max_completion_tokens)
    if (dollars !== '0.1') expect(vendor.sent[0]?.max_completion_tokens).toBe(bound)
    else expect(Math.abs((vendor.sent[0]?.max_completion_tokens ?? 0) - bound)).toBeLessThan(20)
  })

  test('is rejected with 402 and both amounts if a cap pays for no useful answer', async () => {
    const { post } = await startWith({ spendingCap: { amount: 1_000_000n, period: 'day' } }, '100')
    const response = await post(chatBody('long', 'hi'))
    const { error } = (await response.json()) as { error: { message: string } }

    expect(response.status).toBe(402)
    expect(response.headers.get('x-signalbox-error-code')).toBe('spending_cap_reached')
    expect(error.message).toMatch(/^This request needs \$0\.00\d+, available \$0\.001; lower max_tokens or raise/)
  })

  test('is sent for an answer in the background, which costs no more than the balance', async () => {
    const { post, vendor, bill, gateway } = await startWith({}, '1')
    vendor.release()
    const response = await post({ model: 'long', input: 'hi', background: true }, '/v1/responses')
    expect(response.status).toBe(200)
    await vi.waitFor(() => expect(vendor.sent).toHaveLength(1), { timeout: 25_000, interval: 5 })
    await vi.waitFor(async () => expect((await gateway.accounts.get('acct_b'))?.held).toBe(0n), { timeout: 25_000 })

    expect(response.headers.get('x-signalbox-max-output-tokens')).toBe('16384')
    expect(bill()).toBeLessThanOrEqual(DOLLAR)
    expect((await gateway.accounts.get('acct_b'))?.owed).toBe(0n)
  })

  test('is not sent while billing is off', async () => {
    const { post, vendor } = await startWith({}, '0', { billing: 'off', prices: undefined })
    vendor.release()
    await post(chatBody('long', 'hi'))

    expect(vendor.sent[0]?.max_completion_tokens).toBeUndefined()
  })
})
